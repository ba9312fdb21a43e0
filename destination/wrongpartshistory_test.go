package destination

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestWrongParts follows sources with indexes, and lists in pages, young and old. Of one of them one document is
// wrong in one run: it lacks entries, is of before, or is another one. The next run leaves no trace of it.
func TestWrongParts(t *testing.T) {
	for seed := range teststores.Histories(20, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playWrongParts(t, uint64(seed))
		})
	}
}

// nextOf finds the next page of a list.
var nextOf = regexp.MustCompile(`rel="next"[^>]*href="([^"]*)"`)

// parts are the documents below indexes, and the further pages of lists.
func (f *fickle) parts() (out []string) {
	now := f.right[len(f.right)-1]
	for _, a := range slices.Sorted(maps.Keys(now)) {
		body := string(without(now[a].body, func(int) bool { return false }))
		var links []string
		if strings.Contains(body, "<sitemapindex") {
			links = locsOf(now[a].body, func(string) bool { return true })
		}
		for _, m := range nextOf.FindAllStringSubmatch(body, -1) {
			links = append(links, m[1])
		}
		for _, l := range links {
			if path := strings.TrimPrefix(l, foreignHost); now[path] != nil && !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

func playWrongParts(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 91))
	b, src, f, mir := newFickle(t, r, seed)
	var did []string
	pass := func(d time.Duration) {
		if src.pass(d); src.time().After(b.clock) {
			b.clock = src.time()
		}
	}
	sync := func(what string) (SyncReport, bool) {
		rep, err := b.open().Sync(context.Background(), SyncOptions{Full: what == "wrongly" && r.IntN(3) == 0})
		did = append(did, fmt.Sprintf("%s: in sync %t, held %q, failed %d, pending %d: %s (%v)", what, rep.InSync, rep.Held, rep.Failed, rep.Pending, rep.Why, err))
		return rep, slices.Equal(src.knowable(mir.lines(graphA)), src.knowable(src.lines()))
	}
	publish := func() {
		src.change()
		f.look()
		did = append(did, "published")
		pass(time.Duration(1+r.IntN(5)) * time.Second)
	}
	publish()
	sync("first")
	for range 8 {
		pass([]time.Duration{0, time.Minute, 5 * time.Hour, 9 * time.Hour, 50 * time.Hour}[r.IntN(5)])
		if r.IntN(4) > 0 {
			publish()
		}
		if r.IntN(3) == 0 {
			pass(10 * time.Hour)
		}
		parts := f.parts()
		if len(parts) == 0 {
			return
		}
		f.mu.Lock()
		f.phase++
		kinds := []kindOfWrong{wrongEmpty, wrongShort, wrongShort, wrongStale, wrongSwapped, wrongOther}
		f.only = map[string]kindOfWrong{parts[r.IntN(len(parts))]: kinds[r.IntN(len(kinds))]}
		f.told, f.further = map[string]string{}, map[string]furtherList{}
		f.mu.Unlock()
		sync("wrongly")
		did = append(did, fmt.Sprint("that was ", f.told))
		f.end()
		pass(time.Duration(1+r.IntN(100)) * time.Minute)
		for try := range 4 {
			rep, equal := sync("rightly")
			switch {
			case rep.InSync && !equal, try == 3 && !src.unequal() && !rep.InSync && rep.Held == "" && src.published():
				t.Fatalf("in sync %t, equal %t\n%s\nratio %g, source %s\n%s\nhas %s\nwants %s", rep.InSync, equal, strings.Join(did, "\n"), b.cfg.MaxDeleteRatio, b.cfg.Source, src, mir.lines(graphA), src.lines())
			}
			if rep.InSync {
				break
			}
			pass(2 * time.Hour)
		}
	}
}
