package destination

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// meta is the record of a destination, as the engine reads it. The ledger keeps position
// and history unread.
type meta struct {
	ledger.Meta
	position
	history
}

// position is how far the source was read.
type position struct {
	feed.Position
	ByList      bool           `json:"by_list,omitempty"` // the baseline under way is taken from the Resource List: with its changes newer than a dump may be
	Resolved    resolvedSource `json:"resolved,omitzero"`
	Recheck     recheck        `json:"recheck,omitzero"`
	Gap         string         `json:"gap,omitempty"`
	GapFrom     *feed.Cursor   `json:"gap_from,omitempty"` // before the gap
	GapSince    time.Time      `json:"gap_since,omitzero"` // when it was met
	Unpublished unpublished    `json:"unpublished,omitzero"`
}

// history is how the last runs ended.
type history struct {
	LastSync  time.Time    `json:"last_sync,omitzero"`
	AskedAll  time.Time    `json:"asked_all,omitzero"` // AskedAll is the start of the last run that fetched each listed resource without a measure.
	LastAudit *AuditReport `json:"last_audit,omitempty"`
	LastError string       `json:"last_error,omitempty"`
	// Interrupted tells that the last sync was stopped before its end.
	Interrupted bool      `json:"interrupted,omitempty"`
	InSync      bool      `json:"in_sync"`
	Behind      time.Time `json:"behind,omitzero"`  // commit time of the oldest change not applied, at the last poll
	Damage      string    `json:"damage,omitempty"` // an audit found the store other than the records
}

// phase is the stage as a checkpoint has it.
func (m *meta) phase() string {
	if m.Stage == ledger.Following {
		return "current"
	}
	return string(m.Stage)
}

// openMeta reads position and history.
func openMeta(m ledger.Meta) (out meta, err error) {
	out.Meta = m
	if err = unseal(m.Position, &out.position); err == nil {
		err = unseal(m.History, &out.history)
	}
	return out, err
}

func unseal(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: meta: %w", ledger.ErrDamaged, err)
	}
	return nil
}

// sealed is the ledger's part, with position and history written into it.
func (m *meta) sealed() *ledger.Meta {
	m.Meta.Position, m.History = seal(m.position), seal(m.history)
	return &m.Meta
}

func seal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("destination: meta cannot be written: " + err.Error()) // plain fields only
	}
	return raw
}
