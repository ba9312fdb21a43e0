package destination

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/internal/teststores"
	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// TestSteadyClocks follows sources without numbers whose clocks, and those of their
// servers and ours, are hours or months off but do not jump, which tell times to the
// millisecond, second or minute, in one list or in closed ones, and drop old changes.
func TestSteadyClocks(t *testing.T) {
	n := teststores.Histories(4, 20)
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playSteadyClock(t, uint64(seed))
		})
	}
}

func playSteadyClock(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 9))
	b := newQuietBench(t)
	s := b.src
	b.cfg.MaxDeleteRatio = 1
	real := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	offset := []time.Duration{0, time.Hour, -time.Hour, 26 * time.Hour, -26 * time.Hour, 300 * 24 * time.Hour, -300 * 24 * time.Hour}[r.IntN(7)]
	mine := []time.Duration{0, 0, 90 * time.Minute, -90 * time.Minute, 50 * time.Hour}[r.IntN(5)]
	unit := []time.Duration{time.Millisecond, time.Second, time.Minute}[r.IntN(3)]
	dateTold := r.IntN(4) > 0
	dateRight := r.IntN(3) == 0
	s.noHash = r.IntN(2) == 0
	parts := 0
	if r.IntN(2) == 0 {
		parts = 2 + r.IntN(6)
	}
	dated := r.IntN(2) == 0 // datetime, else lastmod
	hasList := r.IntN(4) > 0
	untils := r.IntN(2) == 0 || parts > 0
	now := func() time.Time { return real.Add(offset).Truncate(unit) }
	s.list = hasList
	s.changesFrom = now()
	begin := now()
	dropped := 0
	fail := ""
	s.hook = func(w http.ResponseWriter, req *http.Request) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if dateTold {
			d := real
			if !dateRight {
				d = real.Add(offset)
			}
			w.Header().Set("Date", d.UTC().Format(http.TimeFormat))
		}
		entries := func(first, last int) (es []rs.Entry) {
			for _, l := range s.log[first:last] {
				m := rs.Meta{Change: l.kind}
				if dated {
					m.DateTime = l.at
				}
				e := s.entryIn(s.folder, l.name, l.body, 0, m)
				e.LastMod = l.at
				es = append(es, e)
			}
			return es
		}
		boundary := func(i int) time.Time {
			if i == 0 {
				return begin
			}
			if i == dropped {
				return s.log[i].at
			}
			return s.log[i-1].at
		}
		switch {
		case req.URL.Path == "/set/changelist.xml" && parts == 0:
			s.serveXML(w, req, s.document(s.head(rs.ChangeList, rs.Meta{From: boundary(dropped)}), entries(dropped, len(s.log))))
		case req.URL.Path == "/set/changelist.xml":
			h := s.head(rs.ChangeList, rs.Meta{From: boundary(dropped)})
			h.Index = true
			var es []rs.Entry
			for i := dropped / parts; i*parts <= len(s.log); i++ {
				m := rs.Meta{From: boundary(i * parts), Length: -1}
				if (i+1)*parts < len(s.log) {
					m.Until = boundary((i + 1) * parts)
				}
				es = append(es, rs.Entry{Loc: s.url(fmt.Sprintf("/set/cl%d.xml", i)), HasMeta: true, Meta: m})
			}
			s.serveXML(w, req, s.document(h, es))
		case strings.HasPrefix(req.URL.Path, "/set/cl") && strings.HasSuffix(req.URL.Path, ".xml"):
			var i int
			if n, _ := fmt.Sscanf(req.URL.Path, "/set/cl%d.xml", &i); n != 1 {
				return false
			}
			m := rs.Meta{From: boundary(i * parts)}
			if (i+1)*parts < len(s.log) && untils {
				m.Until = boundary((i + 1) * parts)
			}
			s.serveXML(w, req, s.document(s.head(rs.ChangeList, m), entries(i*parts, min(len(s.log), (i+1)*parts))))
		case req.URL.Path == "/set/resourcelist.xml" && hasList:
			var es []rs.Entry
			for name, body := range s.bodies {
				_, at := s.lastOf(name, len(s.log))
				e := s.entry(name, body, 0, rs.Meta{})
				e.LastMod = at
				es = append(es, e)
			}
			s.serveXML(w, req, s.document(s.head(rs.ResourceList, rs.Meta{At: now()}), es))
		default:
			return false
		}
		return true
	}
	var trace []string
	step := func() {
		real = real.Add(time.Duration(r.IntN(3)) * time.Duration(r.IntN(2000)) * time.Millisecond)
		if r.IntN(10) == 0 {
			real = real.Add(time.Duration(r.IntN(600)) * time.Minute)
		}
		s.now = now().Add(-1500 * time.Millisecond) // tick adds it
		e := r.IntN(8)
		if r.IntN(4) == 0 {
			s.remove(fmt.Sprintf("e%d.nt", e))
		} else {
			s.put(fmt.Sprintf("e%d.nt", e), nt(fmt.Sprintf("e%d", e), fmt.Sprint(100+r.IntN(900))))
		}
		if n := len(s.log); n > 0 {
			trace = append(trace, fmt.Sprintf("%d %s %s at %s", n, s.log[n-1].kind, s.log[n-1].name, feed.Stamp(s.log[n-1].at)))
		}
	}
	for range 5 {
		step()
	}
	for round := range 14 {
		for range r.IntN(5) {
			step()
		}
		if hasList && r.IntN(5) == 0 {
			d := dropped + r.IntN(len(s.log)-dropped+1)
			if parts > 0 {
				d = d / parts * parts
			}
			if d < len(s.log) && d > dropped && s.log[d-1].at.Before(s.log[d].at) {
				dropped = d
				trace = append(trace, fmt.Sprintf("dropped %d", d))
			}
		}
		real = real.Add(time.Duration(r.IntN(5000)) * time.Millisecond)
		b.clock = real.Add(mine)
		rep, err := b.open().Sync(t.Context(), SyncOptions{})
		trace = append(trace, fmt.Sprintf("round %d sync: %s %v: %s", round, rep.Mode, rep.InSync, rep.Why))
		if err != nil {
			fail = err.Error()
			break
		}
		if rep.InSync {
			got, want := b.mir.lines(graphA), s.want()
			if strings.Join(got, "") != strings.Join(want, "") {
				fail = fmt.Sprintf("round %d: in sync, but\n got %q\nwant %q", round, got, want)
				break
			}
		} else if !strings.Contains(rep.Held, "gap") {
			fail = fmt.Sprintf("round %d: not in sync: %+v", round, rep)
			break
		}
	}
	if fail != "" {
		t.Errorf("offset %s mine %s unit %s dateTold %v right %v noHash %v parts %d dated %v list %v untils %v\n%s\n%s", offset, mine, unit, dateTold, dateRight, s.noHash, parts, dated, hasList, untils, strings.Join(trace, "\n"), fail)
	}
}
