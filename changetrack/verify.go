package changetrack

import (
	"context"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Verify reads the current representations of a set and compares each with its digest.
// It returns how many there are.
func (v *View) Verify(ctx context.Context) (n int64, err error) {
	for st, err := range v.Current(rdfres.Digest{}, rdfres.Digest{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return n, err
		}
		if err := v.verify(st.Entity, st.Current); err != nil {
			return n, fmt.Errorf("verify %s: %w", st.Entity, err)
		}
		n++
	}
	return n, nil
}

func (v *View) verify(entity string, want *Version) error {
	blob, err := v.Representation(entity, want.Sequence)
	if err == kv.ErrNotFound {
		return fmt.Errorf("its representation is not there: %w", errDamaged)
	}
	if err != nil {
		return err
	}
	data, err := blob.Bytes()
	if err != nil {
		return err
	}
	if got := rdfres.ComputeFixity(data, false, false); got.SHA256 != want.Fixity.SHA256 || got.Length != want.Fixity.Length {
		return fmt.Errorf("its representation has SHA-256 %s, want %s: %w", got.SHA256, want.Fixity.SHA256, errDamaged)
	}
	return nil
}
