package ledger

import (
	"context"
	"fmt"
)

// sampleSize is the number of resources looked for in a mirror without its checkpoint.
const sampleSize = 20

// ShowsSome looks in the mirror for a sample of the resources, and counts them. It ends with the first
// one there.
func (l *Ledger) ShowsSome(ctx context.Context, shows func(Hash, *Record) (could, there bool, err error)) (there bool, asked int, err error) {
	for loc, rec := range l.Records(ctx, l.store) {
		if rec.Err != nil {
			return false, asked, rec.Err
		}
		could, there, err := shows(loc, rec.Record)
		if err != nil {
			return false, asked, fmt.Errorf("ask whether the mirror is the one of before: %w", err)
		}
		if could {
			asked++
		}
		if there || asked == sampleSize {
			return there, asked, nil
		}
	}
	return false, asked, nil
}
