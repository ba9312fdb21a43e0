package attempts_test

import (
	"context"
	"testing"

	"github.com/rsbridge/rsbridge/internal/attempts"
)

// TestTell: the listener of a context hears of its own requests, whatever is made of the context;
// without a listener nobody is told.
func TestTell(t *testing.T) {
	attempts.Tell(t.Context(), attempts.Failed{Attempt: 2})
	var heard []attempts.Failed
	ctx := attempts.With(t.Context(), func(f attempts.Failed) { heard = append(heard, f) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	attempts.Tell(ctx, attempts.Failed{Attempt: 2, Why: "refused"})
	cancel()
	attempts.Tell(ctx, attempts.Failed{})
	if len(heard) != 2 || heard[0].Why != "refused" || heard[1] != (attempts.Failed{}) {
		t.Errorf("%+v", heard)
	}
}
