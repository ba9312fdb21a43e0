package publish

import (
	"context"
	"errors"
	"strconv"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/patch"
)

// patchesOf reads the offered patches of a change from the records.
func patchesOf(ctx context.Context, r kv.Reader, sequence uint64) (ps []patch.Patch, err error) {
	for _, kind := range patch.Kinds {
		data, err := r.Get(ctx, keyOf(kind.ID, sequence))
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ps = append(ps, patch.Patch{Kind: kind, Data: data})
	}
	return ps, nil
}

func (a *place) patchAddress(sequence uint64, kind *patch.Kind) string {
	return a.url + "/patch/" + strconv.FormatUint(sequence, 10) + kind.Suffix
}
