package publish

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
)

var headerLink = regexp.MustCompile(`<([^>]*)>((?:; [a-z]+="[^"]*")*)`)

// linksOf reads a Link header or a TimeMap: addresses by relation, and the
// parameters of each address. Several addresses of a relation are separated by
// spaces.
func linksOf(text string) (byRel, params map[string]string) {
	byRel, params = map[string]string{}, map[string]string{}
	for _, m := range headerLink.FindAllStringSubmatch(text, -1) {
		rel := ""
		for p := range strings.SplitSeq(m[2], "; ") {
			if v, ok := strings.CutPrefix(p, `rel="`); ok {
				rel = strings.TrimSuffix(v, `"`)
			}
		}
		byRel[rel] = strings.TrimSpace(byRel[rel] + " " + m[1])
		params[m[1]] += m[2]
	}
	return byRel, params
}

// TestMemento holds the answers to RFC 7089 header by header, at the address that
// negotiates and at one with a suffix: each is an original resource of its own.
func TestMemento(t *testing.T) {
	w := small(t) // versions at 12:00 (1), 13:00 (2), 14:00 (8)
	for _, suffix := range []string{"", ".ttl", ".jsonld", ".html"} {
		original, gate, timeMap := w.url("r/Berlin"+suffix), w.url("timegate/Berlin"+suffix), w.url("timemap/Berlin"+suffix)
		now := w.get(original)
		rel, _ := linksOf(now.Header().Get("Link"))
		if now.Code != 200 || rel["timegate"] != gate || rel["timemap"] != timeMap || rel["original"] != "" || now.Header().Get("Memento-Datetime") != "" {
			t.Errorf("%s: %d %v", original, now.Code, now.Header())
		}
		last := rel["memento"]
		seen := map[string]bool{}
		for _, tt := range []struct{ at, datetime string }{
			{"", "Fri, 01 May 2026 14:00:00 GMT"},
			{"Fri, 01 May 1999 14:00:00 GMT", "Fri, 01 May 2026 12:00:00 GMT"}, // the first
			{"Fri, 01 May 2026 12:00:00 GMT", "Fri, 01 May 2026 12:00:00 GMT"},
			{"Fri, 01 May 2026 12:59:59 GMT", "Fri, 01 May 2026 12:00:00 GMT"},
			{"Fri, 01 May 2026 13:00:00 GMT", "Fri, 01 May 2026 13:00:00 GMT"},
			{"Fri, 01 May 2026 14:00:00 GMT", "Fri, 01 May 2026 14:00:00 GMT"},
			{"Fri, 01 May 2037 14:00:00 GMT", "Fri, 01 May 2026 14:00:00 GMT"},
		} {
			res := w.get(gate, "Accept-Datetime", tt.at)
			rel, params := linksOf(res.Header().Get("Link"))
			if res.Code != 302 || res.Header().Get("Vary") != "Accept-Datetime" || res.Header().Get("Memento-Datetime") != "" || rel["original"] != original || rel["timemap"] != timeMap || rel["last memento"] != last ||
				params[timeMap] != `; rel="timemap"; type="application/link-format"; from="Fri, 01 May 2026 12:00:00 GMT"; until="Fri, 01 May 2026 14:00:00 GMT"` ||
				params[last] != `; rel="last memento"; datetime="Fri, 01 May 2026 14:00:00 GMT"` ||
				params[rel["first memento"]] != `; rel="first memento"; datetime="Fri, 01 May 2026 12:00:00 GMT"` {
				t.Errorf("%s at %q: %d %v", gate, tt.at, res.Code, res.Header())
			}
			memento := res.Header().Get("Location")
			seen[memento] = true
			m := w.get(memento)
			rel, _ = linksOf(m.Header().Get("Link"))
			if m.Code != 200 || m.Header().Get("Memento-Datetime") != tt.datetime || m.Header().Get("Content-Type") != now.Header().Get("Content-Type") ||
				rel["original"] != original || rel["timegate"] != gate || rel["timemap"] != timeMap || rel["memento"] != "" {
				t.Errorf("%s: %d %v, want %s", memento, m.Code, m.Header(), tt.datetime)
			}
			if same := w.get(memento, "If-None-Match", m.Header().Get("Etag")); same.Code != 304 || same.Header().Get("Memento-Datetime") != tt.datetime {
				t.Errorf("%s with its ETag: %d %v", memento, same.Code, same.Header())
			}
		}
		m := w.get(timeMap)
		rel, params := linksOf(m.Body.String())
		if m.Header().Get("Content-Type") != "application/link-format" || rel["original"] != original || rel["timegate"] != gate || rel["self"] != timeMap || !seen[rel["first memento"]] || !seen[rel["memento"]] || rel["last memento"] != last || len(params) != 6 {
			t.Errorf("%s: %v\n%s", timeMap, m.Header(), m.Body)
		}
	}
	for _, at := range []string{"soon", "2026-05-01T12:00:00Z"} {
		if res := w.get(w.url("timegate/Berlin"), "Accept-Datetime", at); res.Code != 400 || res.Header().Get("Vary") != "Accept-Datetime,Accept" && !slices.Contains(res.Header().Values("Vary"), "Accept-Datetime") {
			t.Errorf("at %q: %d %v", at, res.Code, res.Header())
		}
	}
	for _, path := range []string{"timegate/Nobody", "timemap/Nobody", "timegate/Nobody.ttl", "timegate/%zz", "timemap/Berlin?first=x", "timemap/Berlin?first=99999"} {
		u, err := url.Parse(w.url(path))
		if err != nil {
			continue // nothing that can be sent
		}
		if res := w.get(u.String()); res.Code != 404 {
			t.Errorf("%s: %d", path, res.Code)
		}
	}
	// what was deleted answers 410 and leads to its versions
	gone := w.get(w.url("r/gone.ttl"))
	rel, _ := linksOf(gone.Header().Get("Link"))
	if gone.Code != 410 || rel["timegate"] != w.url("timegate/gone.ttl") || rel["timemap"] != w.url("timemap/gone.ttl") {
		t.Errorf("deleted: %d %v", gone.Code, gone.Header())
	}
	for _, at := range []string{"", "Fri, 01 May 2026 12:30:00 GMT", "Fri, 01 May 2030 12:30:00 GMT"} {
		res := w.get(rel["timegate"], "Accept-Datetime", at)
		if m := w.get(res.Header().Get("Location")); res.Code != 302 || m.Code != 200 || m.Header().Get("Memento-Datetime") != "Fri, 01 May 2026 12:00:00 GMT" {
			t.Errorf("what was deleted, at %q: %d %v, %d", at, res.Code, res.Header(), m.Code)
		}
	}
}

// TestMementoAfterRetention: a TimeGate leads to no version that retention has
// dropped, though the change that ended it is still in the log.
func TestMementoAfterRetention(t *testing.T) {
	w := small(t)
	before := w.clock.now().Add(-90 * time.Minute) // after the first version ended
	_, err := w.log.Retain(t.Context(), w.clock.now().Add(-100*time.Hour), before)
	w.must(err)
	w.must(w.pub.Retain(t.Context(), "data"))
	w.publish()
	res := w.get(w.url("timegate/Berlin"), "Accept-Datetime", "Fri, 01 May 2026 12:30:00 GMT")
	if m := w.get(res.Header().Get("Location")); m.Code != 200 || m.Header().Get("Memento-Datetime") != "Fri, 01 May 2026 13:00:00 GMT" {
		t.Errorf("%d %v leads to %d %v", res.Code, res.Header(), m.Code, m.Header())
	}
	for _, path := range []string{"timegate/gone", "timemap/gone"} {
		if res := w.get(w.url(path)); res.Code != 404 {
			t.Errorf("%s, of which no version is kept: %d", path, res.Code)
		}
	}
}

// TestLongTimeMap: the TimeMap of very many versions leads to parts that list each
// once, in order.
func TestLongTimeMap(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples})
	w.tune = func(s *set) { s.sizes.timeMapVersions = 4 }
	w.reopen()
	for i := range 11 {
		w.clock.add(time.Minute)
		w.scan(map[string]int{berlin: i}, false, rdfres.NTriples)
		if i == 3 { // as many as one lists
			w.publish()
			if rel, _ := linksOf(w.get(w.url("timemap/" + naming.Encode(berlin, ""))).Body.String()); rel["timemap"] != "" || rel["last memento"] == "" {
				t.Errorf("the TimeMap of four: %v", rel)
			}
		}
	}
	w.publish()
	index, params := linksOf(w.get(w.url("timemap/" + naming.Encode(berlin, ""))).Body.String())
	parts := strings.Fields(index["timemap"])
	if len(parts) != 3 || index["original"] == "" || index["timegate"] == "" || index["memento"] != "" {
		t.Fatalf("index: %v", index)
	}
	if got, want := params[parts[1]], `; rel="timemap"; type="application/link-format"; from="Fri, 01 May 2026 12:05:00 GMT"; until="Fri, 01 May 2026 12:08:00 GMT"`; got != want {
		t.Errorf("the second part is %s, want %s", got, want)
	}
	var got []string
	for _, p := range parts {
		text := w.get(p).Body.String()
		rel, params := linksOf(text)
		if rel["self"] != p || rel["original"] != index["original"] {
			t.Errorf("%s: %v", p, rel)
		}
		for _, m := range headerLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(params[m[1]], "memento") {
				got = append(got, strings.TrimPrefix(params[m[1]][strings.Index(params[m[1]], "rel="):], "rel="))
			}
		}
	}
	var want []string
	for i := range 11 {
		rel := map[int]string{0: "first memento", 10: "last memento"}[i]
		if rel == "" {
			rel = "memento"
		}
		want = append(want, fmt.Sprintf("%q; datetime=%q", rel, httpTime(time.Date(2026, 5, 1, 12, 1+i, 0, 0, time.UTC))))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the parts list\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
