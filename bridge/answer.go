package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// answerRules is raised when descriptions or digests of the same triples become others.
const answerRules = 1

// answerRecord keeps the store's answer to the last complete scan, and the settings of its
// descriptions. The same answer with the same settings is the same state.
type answerRecord struct {
	Version     int    `json:"version"`
	Rules       int    `json:"rules"`
	Answer      string `json:"answer"`
	Fingerprint string `json:"fingerprint"` // of the set
	Bounds      bounds `json:"bounds"`      // likewise
	Sequence    uint64 `json:"sequence"`    // of the log with this state
}

func answerKey(set string) []byte { return []byte("answer/" + set) }

// knownAnswer is the answer of an unchanged store, "" for none, and its position in the
// log.
func (s *set) knownAnswer(ctx context.Context) (string, uint64, error) {
	raw, err := s.bridge.records.Get(ctx, answerKey(s.name))
	if errors.Is(err, kv.ErrNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("the last answer of the store of %s: %w", s.name, err)
	}
	var rec answerRecord
	if json.Unmarshal(raw, &rec) != nil { // then everything is compared
		return "", 0, nil
	}
	seq, _ := s.log.Head()
	if rec != (answerRecord{1, answerRules, rec.Answer, s.fingerprint(ctx), boundsOf(&s.cfg), seq}) {
		return "", 0, nil
	}
	return rec.Answer, seq, nil
}

// keepAnswer goes with the report of a complete scan.
func (s *set) keepAnswer(ctx context.Context, b kv.Batch, found *sparqlsrc.Scan, rep *ScanReport) error {
	if found.Answer() == "" || rep.Failed > 0 {
		b.Delete(answerKey(s.name))
		return nil
	}
	raw, err := json.Marshal(answerRecord{1, answerRules, found.Answer(), s.fingerprint(ctx), boundsOf(&s.cfg), rep.Sequence})
	if err == nil {
		b.Set(answerKey(s.name), raw)
	}
	return err
}
