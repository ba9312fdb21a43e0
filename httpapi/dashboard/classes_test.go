package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
)

// TestClasses: all held deletions are counted, over several views when there are many. Classes beyond those
// told apart are counted as others.
func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 2500
		id := "one"
		read := func(_ context.Context, after string, limit int) (*bridge.Held, error) {
			from, _ := strconv.Atoi(after) // "" is the beginning
			h := &bridge.Held{ID: id}
			for i := from; i < min(all, from+limit); i++ {
				h.Items = append(h.Items, destination.HeldItem{Entity: fmt.Sprintf("http://example.org/%d", i), File: i == 7})
			}
			if from+limit < all {
				h.Next = strconv.Itoa(from + limit)
			}
			return h, nil
		}
		describe := func(_ context.Context, entity string) (Description, error) {
			time.Sleep(time.Millisecond) // virtual
			n, _ := strconv.Atoi(entity[len("http://example.org/"):])
			switch {
			case n == 8:
				return Description{}, errors.New("it cannot be read")
			case n == 9:
				return Description{}, nil
			case n < 1000:
				return Description{Types: []string{"http://example.org/Book"}}, nil
			}
			return Description{Types: []string{fmt.Sprintf("http://example.org/Class%d", n)}}, nil
		}
		var c counter
		see := func() Classes {
			t.Helper()
			told, err := c.classes(t.Context(), "sets/books", id, read, describe)
			if err != nil {
				t.Fatal(err)
			}
			return told
		}
		var seen []int64
		var told Classes
		for range 4 {
			told = see()
			seen = append(seen, told.Counted)
		}
		if want := []int64{1200, 2200, all, all}; !slices.Equal(seen, want) || !told.Whole {
			t.Errorf("counted %v, want %v: %+v", seen, want, told)
		}
		sum := told.Others + told.Files + told.Unread
		for _, class := range told.Shown {
			sum += class.Count
		}
		if first := told.Shown[0]; sum != all || told.Files != 1 || told.Unread != 1 || first.Name != "Book" || first.Count != 997 || len(first.Examples) != 3 || len(told.Shown) != shownClasses {
			t.Errorf("%d in %+v", sum, told)
		}
		id = "two"
		if told := see(); told.Counted != 1200 || told.Whole {
			t.Errorf("another run is held: %+v", told)
		}
	})
}
