package audit

import (
	"context"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// sawRewritten counts resources with literals in the store's own form.
func (a *pass) sawRewritten(ctx context.Context, rec *ledger.Record) {
	if !rec.Has(ledger.FlagRewritten) {
		return
	}
	w := &a.rewritten
	if w.n++; len(w.named) == 20 {
		return
	}
	w.named = append(w.named, keep.Difference{Entity: rec.Entity, Location: rec.Loc, Kind: "rewritten", Detail: ownForm})
	sts, err := a.RecordedStatements(ctx, ledger.HashOf(rec.Loc), rec)
	if err != nil {
		return // the audit tells the error
	}
	for _, st := range sts {
		if st.Recast && len(w.recast) < maxRecast {
			if w.recast == nil {
				w.recast = map[ledger.Hash]recast{}
			}
			w.recast[st.Hash] = recast{st.Triple, len(w.named) - 1}
		}
	}
}

// rewrittenOnes are resources with literals in the store's own form.
type rewrittenOnes struct {
	n      int64
	named  []keep.Difference
	recast map[ledger.Hash]recast
}

// recast is a statement in the store's own form, of a named resource.
type recast struct {
	sent  rdfres.Triple
	named int
}

const maxRecast = 1000

// shows names the mirror's form of a literal. The normal form is for comparing only.
func (w *rewrittenOnes) shows(h ledger.Hash, t rdfres.Triple) {
	if r, ok := w.recast[h]; ok && t.O != r.sent.O && w.named[r.named].Detail == ownForm {
		w.named[r.named].Detail = rewritingOf(r.sent, t.O)
	}
}

// ownForm is the finding about a resource with literals rewritten by the store.
const ownForm = "the store keeps literals of it in its own form"

// rewritingOf tells of one literal, with its datatype.
func rewritingOf(t rdfres.Triple, kept rdfres.Term) string {
	return fmt.Sprintf("%s, as %s for %s (%s)", ownForm, clip.Middle(string(kept)), clip.Middle(string(t.O)), clip.Middle(string(t.P)))
}
