package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/configfile"
)

// TestEffects: keys that contradict each other are faults, and keys without an effect are told, each at its line.
func TestEffects(t *testing.T) {
	const head = "public: {base_url: \"http://a.example\"}\nstores:\n  own: {embedded: ./own}\n  out: {files: ./out}\n"
	for _, tc := range []struct{ text, against, idle string }{
		{"  far: {query: \"http://s.example/q\", username: me, password: a, password_file: ./a}", "5: stores.far.password: stands beside password_file: keep one of them", ""},
		{"  far: {query: \"http://s.example/q\", rate: 5, query_rows: 5}", "", "5: stores.far.query_rows: has no effect without embedded"},
		{"  far: {files: ./far, rate: 5}", "", "5: stores.far.rate: has no effect without embedded, query or url"},
		{"  far.away: {query: \"http://s.example/q\", rate: 5}", "5: stores.far.away: is no name", ""},
		{"admin: {token: 0123456789abcdefg, token_file: ./a}", "5: admin.token: stands beside token_file: keep one of them", ""},
		{"admin: {listen: \"\", token: 0123456789abcdefg}", "", "5: admin.token: has no effect without listen"},
		{"sets:\n  s: {store: own, dumps_order: time, publish: [changelist], resourcedump: {schedule: \"@daily\"}}", "", "6: sets.s.dumps_order: has no effect without dumps\n6: sets.s.resourcedump.schedule: has no effect without publish: resourcedump or changedump"},
		{"sets:\n  s: {store: own, publish: [changedump], resourcedump: {schedule: \"@daily\"}, hints: {query: \"SELECT ?entity { ?entity a ?c }\", overlap: 1m}}", "", ""},
		{"destinations:\n  d:\n    source: http://b.example\n    store: own\n    login: {scopes: [a]}", "", "9: destinations.d.login.scopes: has no effect without token_url"},
		{"destinations:\n  d:\n    source: http://b.example\n    store: own\n    live: {mode: off, poll: 1m}\n    login:\n      token: a\n      token_file: ./a", "11: destinations.d.login.token: stands beside token_file: keep one of them", ""},
		{"destinations:\n  d: {source: \"http://b.example\", store: own, live: {mode: off, poll: 1m}}", "", "6: destinations.d.live.poll: has no effect without live.mode: auto, websub, websocket or events"},
	} {
		cfg, err := Parse([]byte(head+tc.text+"\n"), t.TempDir()+"/c.yaml")
		var wrong *Error
		switch found := errors.As(err, &wrong); {
		case tc.against != "" && (!found || !strings.Contains(err.Error(), "c.yaml:"+tc.against)):
			t.Errorf("%s\n: %v, want %s", tc.text, err, tc.against)
		case tc.against == "" && err != nil:
			t.Errorf("%s\n: %v", tc.text, err)
		case err != nil:
			continue
		}
		var idle []string
		for _, f := range cfg.Idle() {
			_, at, _ := strings.Cut(f.String(), "c.yaml:")
			idle = append(idle, at)
		}
		if got := strings.Join(idle, "\n"); got != tc.idle {
			t.Errorf("%s\n: %s\nwant %s", tc.text, got, tc.idle)
		}
	}
}

// TestEffectsNameKeys: a rule names keys that there are.
func TestEffectsNameKeys(t *testing.T) {
	c := &Config{Stores: map[string]Store{"x": {}}, Sets: map[string]Set{"x": {}}, Destinations: map[string]Destination{"x": {}}}
	for _, e := range effects {
		conditions := e.needs
		if e.against != "" {
			conditions = append(conditions, e.against)
		}
		for _, key := range append(conditions, e.keys...) {
			key, _, _ = strings.Cut(key, "=")
			path, root := strings.CutPrefix(key, "/")
			if !root {
				path = strings.Replace(e.table, "*", "x", 1) + "." + key
			}
			if _, ok := configfile.At(c, path); !ok {
				t.Errorf("no key %s", path)
			}
		}
	}
}
