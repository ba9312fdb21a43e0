package keep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// form is the normal form of the ownership index of a space.
type form struct {
	Rules []string `json:"rules"`
	Busy  bool     `json:"busy,omitempty"` // it is being made anew
}

// ErrProbedAnew ends a run after another destination has replaced the normal form.
var ErrProbedAnew = errors.New("the mirror's store was probed anew during this run and keeps literals otherwise than it did: run again")

// FormOf is the record of a normal form.
func FormOf(rules []string, busy bool) []byte {
	raw, err := json.Marshal(form{Rules: append([]string{}, rules...), Busy: busy})
	if err != nil {
		panic("destination: form cannot be written: " + err.Error()) // plain fields only
	}
	return raw
}

// SameForm tells whether the ownership index is in the normal form of this run.
func (stand *Standing) SameForm(ctx context.Context) error {
	v, err := stand.Store.Get(ctx, ledger.Key(ledger.KindForm, stand.Space))
	if err == nil && !bytes.Equal(v, FormOf(stand.Mirror.Layout.NormalForm.Rules, false)) || errors.Is(err, kv.ErrNotFound) {
		return ErrProbedAnew
	}
	return err
}

// StateOf is the digest of the mirror's part of a resource, zero for none.
func (stand *Standing) StateOf(rec *ledger.Record) rdfres.Digest {
	switch {
	case rec == nil || rec.Has(ledger.FlagKept):
		return rdfres.Digest{}
	case stand.Mirror.Files != nil:
		return rec.Normal
	}
	return rec.Graph
}

// Holds tells of a resource with a part in the mirror.
func (stand *Standing) Holds(rec *ledger.Record) bool {
	return stand.Mirror.Files != nil || !rec.Has(ledger.FlagNotRDF)
}
