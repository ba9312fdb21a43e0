package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// long is a description that no compression makes small.
func long(entity string, seed int) string {
	var s strings.Builder
	x := uint64(seed)*2654435761 + 1
	for range 200 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&s, "<http://ex.org/%s> <http://ex.org/v> \"%x\" .\n", entity, x)
	}
	return s.String()
}

// dumps is how often the package of the Resource Dump was asked for since the last call.
func (b *bench) dumps() int {
	b.src.mu.Lock()
	defer b.src.mu.Unlock()
	n := b.src.requests["/set/dump.zip"]
	clear(b.src.requests)
	return n
}

// A few resources of a source cost less one by one than by its dump, many do not; of
// classes only the descriptions tell. The plan says the same before.
func TestSelectWithDump(t *testing.T) {
	for _, c := range []struct {
		name     string
		prefixes []string
		classes  []string
		silent   bool // the dump does not tell its length
		dump     bool
	}{
		{name: "few", prefixes: []string{"http://ex.org/e77"}},
		{name: "few, length not told", prefixes: []string{"http://ex.org/e77"}, silent: true},
		{name: "none", prefixes: []string{"http://ex.org/none"}},
		{name: "many", prefixes: []string{"http://ex.org/e"}, dump: true},
		{name: "many, length not told", prefixes: []string{"http://ex.org/e"}, silent: true, dump: true},
		{name: "class", classes: []string{"http://ex.org/Person"}, dump: true},
		{name: "class and few", prefixes: []string{"http://ex.org/e77"}, classes: []string{"http://ex.org/Person"}, dump: true},
		{name: "everything", dump: true},
	} {
		if teststores.Unraced(t, 5) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours, s.dump, s.noLength = true, true, c.silent
			b.cfg.Select.Prefixes, b.cfg.Select.Classes = c.prefixes, c.classes
			for i := range 100 {
				s.put(fmt.Sprintf("e%d.nt", i), long(fmt.Sprintf("e%d", i), i))
			}
			b.dumps()
			dry := b.dry(SyncOptions{})
			if n := b.dumps(); n != 0 {
				t.Fatalf("the dry run asked %d times for the package", n)
			}
			rep := b.sync()
			if got := b.dumps() > 0; got != c.dump || !rep.InSync {
				t.Fatalf("dump %v, want %v: %s", got, c.dump, rep.Why)
			}
			kind := "resourcelist"
			if c.dump {
				kind = "resourcedump"
			}
			if p := dry.Plan; p.Documents[0].Kind != kind || dry.Why != rep.Why || !c.dump && dry.Created != rep.Created {
				t.Fatalf("planned %+v\nbecause %s\ndone because %s", p, dry.Why, rep.Why)
			}
			if a, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal || a.Resources != int64(len(b.in())) {
				t.Fatalf("%+v %v", a, err)
			}
			s.put("e7.nt", nt("e7", "changed"))
			s.put("none.nt", nt("none", "new"))
			b.sync()
			in := b.in()
			want := len(c.classes) == 0 && c.prefixes != nil && c.prefixes[0] == "http://ex.org/none"
			if got := slices.Contains(in, "none"); got != (want || c.name == "everything") {
				t.Fatalf("%v", in)
			}
		})
	}
}

// The rest of a baseline that was interrupted comes as costs less.
func TestRestOfBaselineWithDump(t *testing.T) {
	for _, c := range []struct {
		after  int64 // resources
		byList bool  // it had begun with the list, which may be newer than the dump
		kind   string
	}{{5, false, "resourcedump"}, {96, false, "resourcelist"}, {5, true, "resourcelist"}} {
		if teststores.Unraced(t, 4) {
			continue
		}
		b := newBench(t)
		s := b.src
		s.ours, s.dump = true, !c.byList
		b.cfg.Concurrency = 1
		b.cfg.MemoryBytes = 12 << 10 // a few in a batch
		for i := range 100 {
			s.put(fmt.Sprintf("e%02d.nt", i), long(fmt.Sprint("e", i), i))
		}
		d := b.open()
		d.mem.Crash = func(point string) error {
			if point == "written" && d.mem.Meta.Resources >= c.after {
				return errInjected
			}
			return nil
		}
		if _, err := d.Sync(context.Background(), SyncOptions{}); !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		b.dumps()
		s.dump = true
		dry := b.dry(SyncOptions{})
		rep := b.sync()
		if got := b.dumps() > 0; got != (c.kind == "resourcedump") || dry.Plan.Documents[0].Kind != c.kind {
			t.Fatalf("%+v: dump %v: %s\nforetold: %s", c, got, rep.Why, dry.Why)
		}
		b.equal()
	}
}
