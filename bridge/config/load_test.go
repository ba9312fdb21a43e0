package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/bridge/tables"
)

// An audit is a schedule, or a table of one and of whether it repairs.
func TestParseAudit(t *testing.T) {
	for audit, want := range map[string]tables.Audit{
		"":                             {Schedule: "@daily"},
		`audit: "@hourly"`:             {Schedule: "@hourly"},
		`audit: ""`:                    {},
		`audit: {repair: true}`:        {Schedule: "@daily", Repair: true},
		`audit: {schedule: "@weekly"}`: {Schedule: "@weekly"},
	} {
		cfg, err := config.Parse([]byte("stores: {m: {embedded: ./m}}\ndestinations:\n  copy:\n    source: http://x.example/\n    store: m\n    "+audit+"\n"), "test.yaml")
		if err != nil || cfg.Destinations["copy"].Audit != want {
			t.Errorf("%s: %+v %v", audit, cfg, err)
		}
	}
	for audit, want := range map[string]string{
		"audit: sometimes":             `test.yaml:6: destinations.copy.audit: "sometimes": is no schedule`,
		"audit: {schedule: sometimes}": `test.yaml:6: destinations.copy.audit: "sometimes": is no schedule`,
		"audit: {repair: perhaps}":     `test.yaml:6: destinations.copy.audit.repair: "perhaps": is neither true nor false`,
		"audit: {fix: true}":           "destinations.copy.audit.fix: is not known; allowed here: schedule, repair",
		"audit: [a, b]":                "destinations.copy.audit: must be one value",
	} {
		_, err := config.Parse([]byte("stores: {m: {embedded: ./m}}\ndestinations:\n  copy:\n    source: http://x.example/\n    store: m\n    "+audit+"\n"), "test.yaml")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", audit, err, want)
		}
	}
}

// TestParseFaults holds that every fault of a file is told at once, with line,
// key, value and what is allowed.
func TestParseFaults(t *testing.T) {
	const file = `state: ./state
public: {listen: "127.0.0.1:80800", base_url: "http://x.example/?a=b"}
admin: {listen: 0.0.0.0:8081}
stores:
  one: {query: nonsense, timeout: soon}
  two: {embedded: ./a, query: http://x.example/, rate: -1, slow: -1s}
  four: {preset: rdf4j, url: "http://x.example/rdf4j-server"}
  five: {preset: oxigraph, url: "x.example:7878"}
sets:
  books:
    store: three
    hints: {modified: relative, full: never}
    format: xml
    schedul: "@daily"
    schedule: sometimes
    max_delete_ratio: 1.5
    select: {query: "SELECT ?s { ?s ?p ?o }"}
    describe: "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
  bounds: {store: one, strategy: classes, batch: 0, max_description_triples: 0, max_depth: 0, max_naming_work: 0}
  files: {dumps: ["*.nt"], strategy: whole}
  graphs: {store: one, strategy: hash, describe: graph}
  counted: {store: one, hints: {counts: [graph]}}
destinations:
  copy: {source: ftp://x.example/, store: one, graph: many, max_resource_bytes: 0, max_resource_triples: 0, select: {classes: Book}}
`
	_, err := config.Parse([]byte(file), "test.yaml")
	var ce *config.Error
	if !errors.As(err, &ce) {
		t.Fatalf("Parse gives %v, want a *ConfigError", err)
	}
	for _, want := range []string{
		`test.yaml:3: admin.listen: "0.0.0.0:8081": is not loopback, and there is no token`,
		`test.yaml:5: stores.one.query: "nonsense": is no http`,
		`test.yaml:5: stores.one.timeout: "soon": is no duration`,
		`test.yaml:6: stores.two: is either embedded or has addresses`,
		`test.yaml:7: stores.four.preset: "rdf4j": Eclipse RDF4J Server needs the repository`,
		`test.yaml:12: sets.books.hints.modified: "relative": is no IRI`,
		`test.yaml:12: sets.books.hints.full: "never": is no schedule`,
		`test.yaml:11: sets.books.store: "three": is not one of the stores: five, four, one, two`,
		`test.yaml:13: sets.books.format: "xml": is not one of jsonld, ntriples`,
		`test.yaml:14: sets.books.schedul: is not known; did you mean schedule?`,
		`test.yaml:15: sets.books.schedule: "sometimes": is no schedule`,
		`test.yaml:16: sets.books.max_delete_ratio: "1.5": is a share`,
		`test.yaml:17: sets.books.select.query: is no SELECT of ?entity: it does not select ?entity`,
		`test.yaml:18: sets.books.describe: WHERE does not use ?entity`,
		`test.yaml:6: stores.two.rate: "-1": is no number of 0 or more`,
		`test.yaml:6: stores.two.slow: "-1s": is no duration`,
		`test.yaml:19: sets.bounds.strategy: "classes": is not one of whole, graph-store, construct, select-tsv, select-json, select-xml, select-binary, predicates, hash, graphs, batches`,
		`test.yaml:19: sets.bounds.batch: "0": is 1 or more`,
		`test.yaml:19: sets.bounds.max_description_triples: "0": is 1 or more`,
		`test.yaml:19: sets.bounds.max_depth: "0": is 1 or more`,
		`test.yaml:19: sets.bounds.max_naming_work: "0": is 1 or more`,
		`test.yaml:20: sets.files.strategy: "whole": is for stores`,
		`test.yaml:21: sets.graphs.strategy: "hash": strategy hash is not for describe: graph`,
		`test.yaml:24: destinations.copy.max_resource_bytes: "0": is 1 or more`,
		`test.yaml:24: destinations.copy.max_resource_triples: "0": is 1 or more`,
		`test.yaml:24: destinations.copy.source: "ftp://x.example/": is no http`,
		`test.yaml:24: destinations.copy.graph: "many": is not one of single, per-entity`,
		`test.yaml:24: destinations.copy.store: "one": can only be read`,
		`test.yaml:24: destinations.copy.select.classes: "Book": is no class: "Book" is no absolute IRI`,
		`test.yaml:2: public.listen: "127.0.0.1:80800": is no address with a port`,
		`test.yaml:2: public.base_url: "http://x.example/?a=b": has a query or a fragment`,
		`test.yaml:8: stores.five.url: "x.example:7878": is no http or https address of a server`,
		`test.yaml:22: sets.counted.hints.counts: "graph": is for the named graphs of a set`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nin:\n%v", want, err)
		}
	}
}

// TestHalfLogins: a name without a password, a password without a name, and an empty secret are told by their keys.
func TestHalfLogins(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"full": "secret\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	full, empty := "password_file: "+filepath.Join(dir, "full"), "password_file: "+filepath.Join(dir, "empty")
	const missing, needs = ".username: is missing: a password goes with one", `.username: "me": needs `
	for _, x := range []struct{ store, login, want string }{
		{"username: me, " + full, "username: me, " + full, ""},
		{"username: me, password: secret", "username: me, password: secret", ""},
		{"username: me, " + empty, "", ""}, // a user without a password
		{full, "", "stores.s" + missing},
		{empty, "", "stores.s" + missing},
		{"password: secret", "", "stores.s" + missing},
		{"username: me", "", "stores.s" + needs + "stores.s.password_file too"},
		{"", full, "destinations.d.login" + missing},
		{"", "password: secret", "destinations.d.login" + missing},
		{"", "username: me", "destinations.d.login" + needs + "password or password_file too"},
		{"", "username: me, " + empty, "destinations.d.login.password_file: " + strconv.Quote(filepath.Join(dir, "empty")) + ": is empty"},
		{"", "token_file: " + filepath.Join(dir, "empty"), "destinations.d.login.token_file: " + strconv.Quote(filepath.Join(dir, "empty")) + ": is empty"},
		{"username: me, password_file: /none", "", "stores.s.password_file: \"/none\": cannot be read"},
	} {
		text := "{state: ./s, stores: {s: {query: \"http://s.example/q\", update: \"http://s.example/u\", " + x.store + "}}, " +
			"destinations: {d: {source: \"http://x.example/\", store: s, login: {" + x.login + "}}}}"
		_, err := config.Parse([]byte(text), "test.yaml")
		if (err == nil) != (x.want == "") || err != nil && (!strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%+v: %v", x, err)
		}
	}
	_, err := config.Parse([]byte("{state: ./s, stores: {s: {embedded: ./e, username: me, password: secret}}}"), "test.yaml")
	if err == nil || !strings.Contains(err.Error(), "stores.s: has no use for a username and a password") {
		t.Error(err)
	}
}

// A fault of what no file says begins with its key.
func TestFaultsWithoutFile(t *testing.T) {
	cfg := config.New()
	cfg.Public.BaseURL = "ftp://x.example"
	if err := cfg.Complete(t.TempDir()); err == nil || err.Error() != "public.base_url: \"ftp://x.example\": is no http or https address" {
		t.Error(err)
	}
}

// A file is one mirror: several destinations are of one graph, and of a folder there is one.
func TestParseSinks(t *testing.T) {
	for rest, want := range map[string]string{
		`one: {dump: ./a.nq}}, destinations: {a: {store: one, graph_iri: "http://g.example/1", source: "http://x.example/"}, b: {store: one, graph_iri: "http://g.example/1", source: "http://y.example/"}}`:                                              "",
		`one: {dump: ./a.nq}}, destinations: {a: {store: one, graph_iri: "http://g.example/1", source: "http://x.example/"}, b: {store: one, graph_iri: "http://g.example/2", source: "http://y.example/", adopt: true}}`:                                 "a dump has one graph",
		`one: {files: ./a}}, destinations: {a: {store: one, source: "http://x.example/"}, b: {store: one, source: "http://y.example/"}}`:                                                                                                                  "a folder is for one",
		`one: {query: "http://s.example/q", update: "http://s.example/u"}}, destinations: {a: {store: one, graph_iri: "http://g.example/1", source: "http://x.example/"}, b: {store: one, graph_iri: "http://g.example/2", source: "http://y.example/"}}`: "",
	} {
		_, err := config.Parse([]byte("{state: ./state, stores: {"+rest+"}"), "test.yaml")
		if (err == nil) != (want == "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rest, err, want)
		}
	}
}

// What a scan would refuse is told by the reader too.
func TestParseSets(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		`graphs: [""]`:                                      "sets.data.graphs: an empty graph name",
		`graphs: ["*", "http://g/"]`:                        `sets.data.graphs: "*" means all graphs and stands alone`,
		`licence: "  "`:                                     `test.yaml:6: sets.data.licence: "  ": is blank`,
		`publisher: " "`:                                    `test.yaml:6: sets.data.publisher: " ": is blank`,
		`graphs: "relative"`:                                `sets.data.graphs: "relative" is no absolute IRI`,
		`graphs: "http://g/a b"`:                            "sets.data.graphs: sparql: IRI",
		`graphs: "urn:rsbridge:state"`:                      "sets.data.graphs: graph urn:rsbridge:state is of the bookkeeping",
		`select: {classes: [Book]}`:                         `sets.data.select.classes: "Book": is no class`,
		`select: {classes: ["foaf:Person"]}`:                `sets.data.select.classes: "foaf:Person": is no class: "foaf:Person" has a prefix: write the IRI in full`,
		`hints: {modified: "dct:modified"}`:                 `sets.data.hints.modified: "dct:modified": is no IRI of a property: "dct:modified" has a prefix`,
		`select: {classes: ["http://{"]}`:                   `sets.data.select.classes: "http://{": is no class`,
		`schedule: "@every 0s"`:                             "sets.data.schedule: \"@every 0s\": is no schedule (five fields, @hourly, @every 5m): 0s is less than a second",
		`schedule: "@every -5m"`:                            "-5m0s is less than a second",
		`hints: {full: "CRON_TZ=Europe/Berlin @every 1ms"}`: "1ms is less than a second",
		`locations: relative`:                               `test.yaml:6: sets.data.locations: location "relative/r/{name}{suffix}": want an absolute address`,
		`collection: relative`:                              `test.yaml:6: sets.data.collection: "relative" is no IRI`,
		`collections: [relative]`:                           `test.yaml:6: sets.data.collections: "relative" is no IRI`,
		`links: [related]`:                                  `test.yaml:6: sets.data.links: "related": want REL HREF`,
		`resourcelist: {part_entries: 50001}`:               `test.yaml:6: sets.data.resourcelist.part_entries: "50001": is at most 50000`,
		`changelist: {entries: 50001}`:                      `test.yaml:6: sets.data.changelist.entries: "50001": is at most 50000`,
		"title: x\n---\nstate: ./other":                     ": file: has a second document",
		"title: x\nadmin: {token_file: " + empty + "}":      "test.yaml:7: admin.token_file: \"" + empty + "\": is empty",
		`schedule: "CRON_TZ=Europe/Berlin @every 1h"`:       "",
		`schedule: "CRON_TZ=Europe/Berlin"`:                 "a time zone, and no schedule after it",
		`schedule: "TZ= "`:                                  "a time zone, and no schedule after it",
		`schedule: "0 0 31 2 *"`:                            "a time that never comes",
		`graphs: ["*"]`:                                     "",
	} {
		_, err := config.Parse([]byte("state: ./s\nstores: {a: {embedded: ./a}}\nsets:\n  data:\n    store: a\n    "+line+"\n"), "test.yaml")
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// Values that are in no range, and places that are taken.
func TestParseExtremes(t *testing.T) {
	for text, want := range map[string]string{
		"sets: {x: {store: a, max_delete_ratio: NaN}}":                                                             `sets.x.max_delete_ratio: "NaN": is no number`,
		"sets: {x: {store: a, content: {properties: http://p/, rate: Inf}}}":                                       `sets.x.content.rate: "Inf": is no number`,
		"sets: {a/b: {store: a}}":                                                                                  `sets.a/b: is no name: letters, digits, - and _, at most 64`,
		"sets: {api: {store: a}}":                                                                                  `sets.api: set name "api"`,
		"sets: {x: {store: a, hints: {query: \"SELECT ?entity WHERE { ?entity ?p ?o \"}}}":                         `sets.x.hints.query: is no SELECT that names entities: a brace is not closed: it is cut short`,
		"sets: {x: {store: a, hints: {query: \"SELECT ?s WHERE { ?s ?p ?o }\"}}}":                                  `sets.x.hints.query: is no SELECT that names entities: it does not select ?entity`,
		"sets: {x: {store: a, select: {query: \"SELECT ?entity { ?entity ?p ?o } }\"}}}":                           `sets.x.select.query: is no SELECT of ?entity: at byte 33: a brace closes that was not opened`,
		"destinations: {x: {store: a, source: http://s/, concurrency: 0}}":                                         `destinations.x.concurrency: "0": is between 1 and 256`,
		"destinations: {x: {store: a, source: http://s/, allow: [\"*\"]}}":                                         `destinations.x.allow: "*" is neither a host nor host:port`,
		"destinations: {x: {store: a, source: http://s/, concurrency: 257}}":                                       `destinations.x.concurrency: "257": is between 1 and 256`,
		"destinations: {x: {store: a, source: http://s/, allow: [other.example, \"not a host\"]}}":                 `destinations.x.allow: "not a host" is neither a host nor host:port`,
		"destinations: {x: {store: a, source: http://s/, files: ./s/stage/x}}":                                     `destinations.x.files: "/c/s/stage/x": is where the state keeps its own files`,
		"destinations: {x: {store: a, source: http://s/, graph_iri: relative}}":                                    `destinations.x.graph_iri: "relative": is no name of a graph`,
		"destinations: {x: {store: a, source: http://s/, graph_iri: \"http://g/{entity}\"}}":                       `destinations.x.graph_iri: "http://g/{entity}": is no name of a graph`,
		"destinations: {x: {store: a, source: http://s/, graph_iri: urn:rsbridge:state}}":                          `destinations.x.graph_iri: "urn:rsbridge:state": is no name of a graph`,
		"destinations: {x: {store: a, source: http://s/, graph: per-entity, graph_iri: \"{entity} x\"}}":           `destinations.x.graph_iri: "{entity} x": is no name of a graph`,
		"destinations: {x: {store: a, source: http://s/, graph: per-entity, graph_iri: \"http://g/?e={entity}\"}}": "",
		"destinations: {x: {store: a, source: http://s/, graph_iri: \"*\"}}":                                       `destinations.x.graph_iri: "*": is no name`,
		"public: {listen: 127.0.0.1:9}\nadmin: {listen: 127.0.0.1:9}":                                              `admin.listen: "127.0.0.1:9": is where the documents are served`,
		"public: {listen: 127.0.0.1:0}\nadmin: {listen: 127.0.0.1:0}":                                              "",
		"public: {base_url: \"http://who:secret@h.example\"}":                                                      `public.base_url: "http://...@h.example": names a user`,
		"stores: {a: {embedded: ./a}, b: {embedded: /c/x/../a/}}":                                                  `stores.b.embedded: "/c/x/../a/": is also the place of store a`,
		"stores: {a: {dump: ./d.nt}, b: {dump: ./d.nt}}":                                                           `stores.b.dump: "/c/d.nt": is also the place of store a`,
		"stores: {a: {dump: ./d.nt.zst}}":                                                                          `stores.a.dump: "/c/d.nt.zst": dumps are N-Triples (.nt) or N-Quads (.nq), each also with .gz`,
		"stores: {a: {files: ./d}, b: {files: ./d}}":                                                               `stores.b.files: "/c/d": is also the place of store a`,
		"stores: {a: {embedded: ./s}}":                                                                             `stores.a.embedded: "/c/s": is where the state keeps its own files`,
		"stores: {a: {embedded: ./s/tmp}}":                                                                         `stores.a.embedded: "/c/s/tmp": is where the state keeps its own files`,
		"stores: {a: {embedded: ./s/a}, b: {embedded: ./stage}, c: {files: ./s/files}}":                            "",
		"sets: {x: {store: a, graphs: [&g http://g/1]}, y: {store: a, graphs: [*g]}}":                              "",
		"sets: {x: {store: a, graphs: &g [http://g/1]}, y: {store: a, graphs: *g}}":                                "",
		"destinations: {x: {store: a, source: http://s/, concurrency: 256, files: ./f}}":                           "",
	} {
		if !strings.Contains(text, "stores:") {
			text += "\nstores: {a: {embedded: ./a}}"
		}
		_, err := config.Parse([]byte("state: ./s\n"+text+"\n"), "/c/test.yaml")
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if key, _, _ := strings.Cut(want, ":"); want != "" && err != nil && strings.Count(err.Error(), key+":") > 1 {
			t.Errorf("%s: told twice: %v", text, err)
		}
	}
}

// TestTokens: off loopback a token is not easy to guess, and never told.
func TestTokens(t *testing.T) {
	for token, strong := range map[string]bool{"": false, "a": false, "secret": false, "aaaaaaaaaaaaaaaaaaaaaaaa": false, "abababababababababab": false, "0123456789abcde": false, "9f86d081884c7d659a2feaa0c55ad015": true, "correct horse battery": true} {
		for listen, asks := range map[string]bool{"127.0.0.1:8081": false, "localhost:8081": false, "[::1]:8081": false, "0.0.0.0:8081": true, ":8081": true, "192.0.2.1:8081": true} {
			_, err := config.Parse([]byte("state: ./s\nadmin: {listen: \""+listen+"\", token: \""+token+"\"}\n"), "test.yaml")
			if bad := err != nil; bad != (asks && !strong) {
				t.Errorf("%s with %q: %v", listen, token, err)
			}
			if err != nil && token != "" && (!strings.Contains(err.Error(), "admin.token: is easy to guess") || !strings.Contains(err.Error(), "openssl rand") || len(token) > 1 && strings.Contains(err.Error(), token)) {
				t.Errorf("%s with %q: %v", listen, token, err)
			}
		}
	}
}

// What others call this machine is not told by an address of all its networks.
func TestBaseURLOfListen(t *testing.T) {
	for listen, want := range map[string]string{"127.0.0.1:8080": "http://127.0.0.1:8080", "data.example:80": "http://data.example:80", ":8080": "", "0.0.0.0:8080": "", "[::]:8080": "", "[::%lo]:8080": "", "[::ffff:0.0.0.0]:8080": "",
		"[::1]:8080": "http://[::1]:8080", "my_host:80": "http://my_host:80", "bücher.example:80": "http://bücher.example:80"} {
		c, err := config.Parse([]byte("state: ./s\npublic: {listen: \""+listen+"\"}\nstores: {a: {embedded: ./a}}\nsets: {b: {store: a}}\n"), "test.yaml")
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("public.base_url: is needed: all published addresses begin with it, and public.listen %q names no host; give the address that others use", listen))):
			t.Errorf("%s: %v", listen, err)
		case want != "" && (err != nil || c.Public.BaseURL != want):
			t.Errorf("%s: %v, want %s", listen, err, want)
		}
	}
}

// What is no host, nobody can listen at or ask.
func TestNoHosts(t *testing.T) {
	for public, want := range map[string]string{
		`listen: "*:8080"`:                                "public.listen: \"*:8080\": is no address with a port",
		`listen: "0:8080"`:                                "public.listen: \"0:8080\": is no address with a port",
		`listen: "bad host!:8080"`:                        "public.listen: \"bad host!:8080\": is no address with a port",
		`listen: "h.example:99999"`:                       "public.listen: \"h.example:99999\": is no address with a port",
		`listen: ":8080", base_url: "http://*:80"`:        "public.base_url: \"http://*:80\": names no host that others could ask",
		`listen: ":8080", base_url: "http://[::]:80"`:     "public.base_url: \"http://[::]:80\": names no host that others could ask",
		`listen: ":8080", base_url: "http://0"`:           "public.base_url: \"http://0\": names no host that others could ask",
		`listen: ":8080", base_url: "http://h:99999"`:     "public.base_url: \"http://h:99999\": is no http or https address",
		`listen: ":8080", base_url: "http://h.example/a"`: "",
	} {
		_, err := config.Parse([]byte("state: ./s\npublic: {"+public+"}\nstores: {a: {embedded: ./a}}\nsets: {b: {store: a}}\n"), "test.yaml")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", public, err, want)
		}
	}
}

// TestParseGood reads the example of the contract.
func TestParseGood(t *testing.T) {
	t.Setenv("RSBRIDGE_TEST_SECRET", "hush")
	const file = `
stores:
  local: {embedded: ./state/local, serve: true}
  fuseki: {query: http://127.0.0.1:3030/ds/query, update: http://127.0.0.1:3030/ds/update, username: u, password: "${RSBRIDGE_TEST_SECRET}", timeout: 90s}
sets:
  books:
    store: fuseki
    graphs: http://example.org/books
    schedule: "CRON_TZ=America/New_York 0 20 * * 0-4"
    changelist: {rotate: 12h}
destinations:
  copy: {source: http://127.0.0.1:8080, store: local, allow: [other.example]}
`
	cfg, err := config.Parse([]byte(file), "/etc/rsbridge/rsbridge.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Stores["local"].Embedded; got != "/etc/rsbridge/state/local" {
		t.Errorf("a relative path became %q", got)
	}
	if got := cfg.Stores["fuseki"].Password; got != "hush" || got.String() != "redacted" {
		t.Errorf("the password from the environment is %q and prints as %q", string(got), got)
	}
	if cfg.Public.BaseURL != "http://127.0.0.1:8080" || cfg.Sets["books"].MaxDeleteRatio != 0.2 || cfg.Sets["books"].Graphs[0] != "http://example.org/books" {
		t.Errorf("defaults: %+v", cfg)
	}
}
