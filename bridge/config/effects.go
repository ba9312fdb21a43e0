package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/internal/configfile"
)

// effect is a rule for keys of a table that depend on others of it. A condition is a key with a value of its own, or
// KEY=VALUE: that value, alone or in a list. A leading slash is for a key from the root.
type effect struct {
	table   string   // "stores.*"; "*" is any name
	keys    []string // those of the rule
	against string   // a condition that contradicts them
	needs   []string // conditions of which one must hold, or the keys have no effect
}

// effects are the rules for keys beside each other. A key whose value is wrong in itself is found elsewhere.
var effects = []effect{
	{table: "admin", keys: []string{"token"}, against: "token_file"},
	{table: "admin", keys: []string{"token", "token_file"}, needs: []string{"listen"}},
	{table: "public", keys: []string{"tls", "client_connections", "robots"}, needs: []string{"listen"}},

	{table: "stores.*", keys: []string{"password"}, against: "password_file"},
	{table: "stores.*", keys: []string{"query_time", "query_memory", "query_rows"}, needs: []string{"embedded"}},
	{table: "stores.*", keys: []string{"timeout", "concurrency", "rate", "slow", "max_rows"}, needs: []string{"embedded", "query", "url"}},
	{table: "stores.*", keys: []string{"serve"}, needs: []string{"/public.listen"}},

	{table: "sets.*", keys: []string{"dumps_order", "dumps_proof", "dumps_settle"}, needs: []string{"dumps"}},
	{table: "sets.*", keys: []string{"batch"}, needs: []string{"store"}},
	{table: "sets.*", keys: []string{"hints.overlap"}, needs: []string{"hints.modified", "hints.query"}},
	{table: "sets.*", keys: []string{"hints.full"}, needs: []string{"hints.modified", "hints.query", "hints.counts"}},
	{table: "sets.*", keys: []string{"resourcelist.schedule", "resourcelist.part_entries"}, needs: []string{"publish=resourcelist"}},
	{table: "sets.*", keys: []string{"resourcedump.schedule"}, needs: []string{"publish=resourcedump", "publish=changedump"}},
	{table: "sets.*", keys: []string{"changedump.schedule", "changedump.patches"}, needs: []string{"publish=changedump"}},
	{table: "sets.*", keys: []string{"retention.archives"}, needs: []string{"archives.schedule"}},
	{table: "sets.*", keys: []string{"content.every", "content.per_run", "content.rate", "content.concurrency", "content.max_bytes", "content.dump_bytes", "content.timeout"}, needs: []string{"content.properties"}},
	{table: "sets.*", keys: []string{"contact"}, needs: []string{"faces=oai"}},

	{table: "destinations.*.login", keys: []string{"password"}, against: "password_file"},
	{table: "destinations.*.login", keys: []string{"token"}, against: "token_file"},
	{table: "destinations.*.login", keys: []string{"client_secret"}, against: "client_secret_file"},
	{table: "destinations.*.login", keys: []string{"scopes", "audience"}, needs: []string{"token_url"}},
	{table: "destinations.*", keys: []string{"live.callback"}, needs: []string{"live.mode=auto", "live.mode=websub"}},
	{table: "destinations.*", keys: []string{"live.poll"}, needs: []string{"live.mode=auto", "live.mode=websub", "live.mode=websocket", "live.mode=events"}},
	{table: "destinations.*", keys: []string{"audit.repair"}, needs: []string{"audit.schedule"}},
}

// beside gives the faults of written keys that contradict each other, and those that have no effect. Secrets are not
// read from their files yet.
func (c *Config) beside() (faults, idle []Finding) {
	for _, e := range effects {
		for _, table := range c.tables(e.table) {
			told := func(key, format string, args ...any) Finding {
				path := table + "." + key
				f := Finding{File: c.file, Line: c.line[path], Key: c.names.Of(path), Message: fmt.Sprintf(format, args...)}
				if c.declaredAt(path) != "" {
					f.File, f.Line = declared.File(c.Folder()), 0
				}
				return f
			}
			for _, key := range e.keys {
				v, known := configfile.At(c, table+"."+key) // a name with a dot, a fault of its own, leads nowhere
				if _, written := c.line[table+"."+key]; !written || !known || v.IsZero() {
					continue
				}
				if e.against != "" && c.holds(table, e.against) {
					faults = append(faults, told(key, "stands beside %s: keep one of them", e.against))
				}
				if len(e.needs) > 0 && !slices.ContainsFunc(e.needs, func(n string) bool { return c.holds(table, n) }) {
					idle = append(idle, told(key, "has no effect without %s", conditions(e.needs)))
				}
			}
		}
	}
	slices.SortStableFunc(idle, func(a, b Finding) int { return a.Line - b.Line })
	return faults, idle
}

// Idle are the keys without an effect.
func (c *Config) Idle() []Finding { return c.idle }

// tables are the paths of a table with any name.
func (c *Config) tables(path string) (all []string) {
	before, after, any := strings.Cut(path, ".*")
	if !any {
		return []string{path}
	}
	v, _ := configfile.At(c, before)
	for _, name := range v.MapKeys() {
		all = append(all, before+"."+name.String()+after)
	}
	slices.Sort(all)
	return all
}

// holds tells whether a condition holds beside the keys of a table.
func (c *Config) holds(table, condition string) bool {
	key, want, valued := strings.Cut(condition, "=")
	path, root := strings.CutPrefix(key, "/")
	if !root {
		path = table + "." + key
	}
	v, ok := configfile.At(c, path)
	switch {
	case !ok:
		return false
	case !valued && v.Kind() == reflect.Slice:
		return v.Len() > 0
	case !valued:
		return !v.IsZero()
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if v.Index(i).String() == want {
				return true
			}
		}
		return false
	}
	return v.String() == want
}

// conditions are those in words, such as "embedded, query or url", or "publish: resourcedump or changedump".
func conditions(all []string) string {
	var words []string
	before := ""
	for _, c := range all {
		key, value, valued := strings.Cut(strings.TrimPrefix(c, "/"), "=")
		switch {
		case !valued:
			value = key
		case key != before:
			value = key + ": " + value
		}
		words, before = append(words, value), key
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
