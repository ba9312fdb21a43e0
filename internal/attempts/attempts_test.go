package attempts_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/internal/attempts"
)

// TestRequests: the listener of a context hears of the oldest wait among its requests, until its
// place answers or its attempts end. Answers of other places change nothing.
func TestRequests(t *testing.T) {
	alone := attempts.Begin(t.Context(), "store a") // nobody listens
	alone.Fail(attempts.Failed{Attempt: 2})
	alone.End(true)

	var heard []int
	ctx := attempts.With(t.Context(), func(f attempts.Failed) { heard = append(heard, f.Attempt) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	begin := func(place string) *attempts.Request { return attempts.Begin(ctx, place) }
	fail := func(r *attempts.Request, attempt int) { r.Fail(attempts.Failed{Attempt: attempt}) }
	hears := func(what string, want ...int) {
		t.Helper()
		if !slices.Equal(heard, want) {
			t.Errorf("%s: heard %v, want %v", what, heard, want)
		}
		heard = nil
	}
	write, beside, read := begin("store a"), begin("store a"), begin("web b")
	fail(write, 2)
	hears("a store waits", 2)
	begin("web b").End(true)
	hears("another place answers")
	begin("store a").End(false)
	hears("a request without waits ends there")
	fail(read, 12)
	fail(beside, 22)
	hears("younger waits")
	fail(write, 3)
	hears("the next attempt of the oldest", 3)
	write.End(false)
	hears("its attempts end", 12)
	read.End(true)
	hears("the next oldest is answered", 22)
	fail(beside, 23)
	begin("store a").End(true)
	hears("another request is answered at the same place", 23, 0)
	beside.End(true)
	hears("an ended wait")
}
