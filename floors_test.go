package rsbridge_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/rsbridge/rsbridge/"

// floors is the plan of the house: a package may import packages of lower floors
// only. A new package must be entered here, and in the picture in
// docs/design.md.
var floors = map[string]int{
	"rdfres": 0, "rdfres/internal/chars": 0, "rdfres/internal/syntax": 0, "rdfres/jsonld": 0, "rdfres/rdfxml": 0, "rdfres/codec": 0,
	"resourcesync": 0, "jsonpatch": 0,
	"internal/jobs": 0, "internal/kv": 0, "internal/kv/guardfs": 0, "internal/kv/pebblekv": 0, "internal/kv/pgkv": 0, "internal/kv/kvtest": 0, "internal/kv/memkv": 0, "internal/kv/forward": 0,
	"internal/blob": 0, "internal/blob/fileblob": 0, "internal/blob/s3blob": 0, "internal/blob/blobtest": 0,
	"internal/accept": 0, "internal/access": 0, "internal/tlsfiles": 0, "internal/hosts": 0, "internal/login": 0, "internal/clip": 0, "internal/fairconn": 0, "internal/extsort": 0, "internal/inproc": 0, "internal/webguard": 0, "internal/version": 0, "internal/service": 0, "internal/flock": 0, "internal/webclient": 0, "internal/pace": 0, "internal/settings": 0, "internal/configfile": 0, "internal/ownfile": 0, "internal/xmlscan": 0, "internal/lru": 0, "internal/ordered": 0, "internal/repeats": 0, "internal/position": 0, "internal/attempts": 0, "internal/recentlog": 0, "internal/fence": 0,

	"changetrack": 1, "internal/telemetry": 1, "internal/sparql": 1, "internal/embedstore": 1, "internal/simulate": 1, "resourcesync/staticsite": 1, "resourcesync/check": 1,
	"publish/inventory": 1, "publish/naming": 1, "publish/partition": 1, "publish/catalogue": 1,
	"destination/ledger": 1, "destination/fetch": 1, "destination/item": 1,
	"sparqlsrc/dumpfile": 1,

	"sparqlsrc": 2, "content": 2, "publish": 2, "publish/patch": 2, "publish/packing": 2, "publish/kept": 2, "publish/offer": 2, "publish/search": 2, "publish/days": 2, "publish/pages": 2, "faces": 2, "destination": 2, "destination/feed": 2, "destination/live": 2, "destination/report": 2, "destination/pairs": 2, "destination/obtain": 2, "destination/keep": 2, "destination/apply": 2, "destination/audit": 2, "destination/sink": 2, "destination/sink/*sink": 2, "destination/sink/marks": 2,
	"push": 2, "push/hub": 2, "push/positions": 2,

	"bridge": 3, "bridge/config": 3, "bridge/records": 3, "bridge/holder": 3, "bridge/spaces": 3, "bridge/backup": 3, "bridge/vocabulary": 3, "bridge/retained": 3, "bridge/declared": 3, "bridge/versions": 3, "bridge/tables": 3, "bridge/paused": 3, "bridge/named": 3, "bridge/gateway": 3, "bridge/storelog": 3, "bridge/history": 3, "bridge/publishto": 3, "bridge/lastruns": 3, "bridge/runlines": 3, "bridge/sharedfiles": 3,

	"httpapi": 4, "httpapi/dashboard": 4, "httpapi/metrics": 4, "examples": 4, "examples/schemaorg": 4, "examples/expose": 4, "examples/mirror": 4, "examples/admin": 4, "examples/embed": 4,

	"cmd/rsbridge": 5,

	"internal/sparql/sparqltest": 6, "destination/sink/sinktest": 6, "internal/teststores": 6, "internal/teststores/withstores": 6, "internal/browsertest": 6, // for tests only
	"cmd/bench": 6, "internal/notices": 6, "internal/dist": 6, "rdfres/internal/rdftest": 6,
}

// order lets rooms of one floor lean on each other: on lower numbers only. A room without a
// number has 0.
var order = map[string]int{
	"internal/ownfile": 0, "internal/kv": 0, "internal/kv/guardfs": 1, "internal/kv/memkv": 1, "internal/kv/forward": 1, "internal/kv/pebblekv": 2, "internal/kv/pgkv": 1, "internal/kv/kvtest": 3, "internal/jobs": 4, "internal/version": 0, "internal/webclient": 1, "internal/configfile": 1, "internal/access": 1, "internal/login": 2,
	"internal/xmlscan": 0, "resourcesync": 1, "internal/blob/fileblob": 1, "internal/blob/blobtest": 1, "internal/blob/s3blob": 2, "internal/fence": 1,
	"publish/naming": 0, "publish/catalogue": 1, "publish/offer": 0, "publish/pages": 1, "bridge/holder": 0, "bridge/backup": 1, "bridge/records": 1, "bridge/retained": 1, "bridge/named": 0, "bridge/gateway": 1, "bridge/storelog": 1, "bridge/config": 2, "bridge/sharedfiles": 2, "push/hub": 0, "push/positions": 1, "destination/item": 1,
	"rdfres/internal/chars": 0, "rdfres": 1, "rdfres/internal/syntax": 2, "rdfres/jsonld": 3, "rdfres/rdfxml": 3, "rdfres/codec": 4,
}

// inside is the order of the rooms of the destination on floor 2: those that it is made of
// are below it.
var inside = map[string]int{"destination/feed": 1, "destination/sink": 1, "destination/live": 2, "destination/report": 2, "destination/pairs": 2, "destination/obtain": 2, "destination/sink/marks": 2, "destination/sink/*sink": 3, "destination/keep": 4, "destination/apply": 5, "destination/audit": 5, "destination": 9}

// room is the entry of a package: all kinds of sinks have one, so a new kind needs none.
func room(name string) string {
	const sinks = "destination/sink/*sink"
	if is, _ := path.Match(sinks, name); is {
		return sinks
	}
	return name
}

// forbidden imports and why.
var forbidden = []struct{ from, to, why string }{
	{"sparqlsrc", "destination", "source and destination meet only in ResourceSync documents over HTTP: our destination must follow any source"},
	{"publish", "destination", "source and destination meet only in ResourceSync documents over HTTP: our source must satisfy any destination"},
	{"destination", "publish", "source and destination meet only in ResourceSync documents over HTTP: our destination must follow any source"},
	{"destination", "changetrack", "a destination knows nothing of our source's inside"},
	{"destination", "sparqlsrc", "a destination knows nothing of our source's inside"},
	{"faces", "destination", "source and destination meet only in documents over HTTP"},
	{"faces", "resourcesync", "other protocols know nothing of ResourceSync; its documents are publish's"},
	{"faces", "internal/sparql", "pages are made from the log, never from a second query"},
	{"content", "destination", "source and destination meet only in ResourceSync documents over HTTP"},
	{"content", "resourcesync", "what is followed is no document; those are publish's"},
	{"content", "internal/sparql", "files are found in the log, never by a second query"},
	{"publish", "sparqlsrc", "documents are made from the log, never from a second query"},
	{"publish", "internal/sparql", "documents are made from the log, never from a second query"},
	{"publish/pages", "net/http", "pages answer no requests: publish gives them addresses, statuses and headers"},
	{"publish/search", "resourcesync", "an index of names knows no documents"},
	{"publish/kept", "internal/kv", "records are written by their owner"},
	{"publish/kept", "net/http", "kept files answer no requests"},
	{"publish/search", "net/http", "an index of names answers no requests"},
	{"changetrack", "internal/sparql", "the tracker compares what it is given; what to ask is sparqlsrc's"},
	{"resourcesync", "rdfres", "the framework's documents know nothing of RDF"},
	{"publish", "resourcesync/check", "rules are for people who look at a source; tests hold our documents to them"},
	{"destination/fetch", "internal/kv", "requests keep no records"},
	{"push/positions", "changetrack", "a position is a number; how far it is behind, the set tells"},
	{"destination/report", "internal/kv", "a report is of the present, and none is kept"},
	{"destination/live", "internal/kv", "what is heard is a hint, and none is kept"},
	{"destination/live", "destination/sink", "whoever hears of changes writes none"},
	{"destination/feed", "internal/kv", "a feed keeps a position alone, and its keeper writes it"},
	{"destination/feed", "internal/sparql", "a feed knows no stores"},
	{"destination/feed", "destination/sink", "a feed knows no mirror"},
	{"destination/feed", "destination/sink/*sink", "a feed knows no mirror"},
	{"destination/keep", "internal/sparql", "whose a mirror is, its sink tells"},
	{"destination/keep", "destination/obtain", "a record knows no requests"},
	{"destination/apply", "internal/sparql", "batches go to a mirror by its interfaces, of any kind"},
	{"destination/apply", "destination/sink/*sink", "batches go to a mirror by its interfaces, of any kind"},
	{"destination/audit", "destination/apply", "an audit changes no resource: what it finds the engine repairs"},
	{"destination/audit", "internal/sparql", "an audit reads a mirror by its interfaces, of any kind"},
	{"destination/audit", "destination/sink/*sink", "an audit reads a mirror by its interfaces, of any kind"},
	{"destination/obtain", "internal/kv", "what is obtained is verified, and recorded by others"},
	{"destination/obtain", "internal/sparql", "resources come by HTTP, from no store"},
	{"destination/pairs", "destination/sink", "pairs are of source and records; they know no mirror"},
	{"destination/sink", "internal/kv", "a sink keeps no records"},
	{"destination/sink/*sink", "internal/kv", "a sink keeps no records"},
	{"destination/sink/*sink", "destination/ledger", "a sink holds what it is told, and knows no records"},
	{"destination/sink/dumpsink", "internal/sparql", "a dump is no store"},
	{"destination/sink/filesink", "internal/sparql", "a folder is no store"},
	{"destination/sink/*sink", "destination/fetch", "a sink is told what to hold, and asks no source"},
	{"destination", "net/http", "the engine decides and applies: requests are the feed's and the obtainer's"},
	{"destination", "destination/fetch", "the engine decides and applies: requests are the feed's and the obtainer's"},
	{"destination/apply", "net/http", "batches are made of what was obtained"},
	{"destination/audit", "net/http", "an audit asks a feed and the obtainer"},
	{"destination", "internal/sparql", "the engine decides and applies: it knows mirrors, and no store"},
	{"destination", "destination/sink/sparqlsink", "the engine knows mirrors by their interfaces; the bridge opens each kind"},
	{"destination", "destination/sink/dumpsink", "the engine knows mirrors by their interfaces; the bridge opens each kind"},
	{"destination", "resourcesync/check", "a destination reads leniently and never judges"},
	{"push", "publish", "notifications are made from a published state, whoever publishes it"},
	{"push", "destination", "source and destination meet only in documents over HTTP"},
	{"push/hub", "changetrack", "a hub distributes payloads, whatever is in them"},
	{"push/hub", "resourcesync", "a hub distributes payloads, whatever is in them"},
	{"push/hub", "destination", "source and destination meet only in documents over HTTP"},
	{"bridge/config", "internal/kv", "a configuration opens no state"},
	{"bridge/config", "changetrack", "a configuration opens no state"},
	{"jsonpatch", "rdfres", "RFC 6902 knows nothing of RDF"},
}

// owners of third-party modules: one module, one room.
var owners = map[string][]string{
	"github.com/cockroachdb/pebble": {"internal/kv/pebblekv", "internal/kv/guardfs", "internal/embedstore"},
	"github.com/jackc/pgx":          {"internal/kv/pgkv", "internal/teststores"},
	"github.com/coder/websocket":    {"push", "destination/live"},
	"github.com/minio/minio-go":     {"internal/blob/s3blob"},
	"github.com/robfig/cron":        {"internal/jobs"},
	"github.com/gin-gonic/gin":      {"httpapi"},
	"github.com/knakk/sparql":       {"internal/sparql"},
	"github.com/spf13/cobra":        {"cmd/rsbridge"},
	"golang.org/x/oauth2":           {"internal/login"},
	"go.yaml.in/yaml":               {"internal/configfile"},
	"github.com/coreos/go-systemd":  {"internal/service"},
	"github.com/prometheus":         {"internal/telemetry", "httpapi/metrics"},
	"go.opentelemetry.io":           {"internal/telemetry"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	Doc        string
	Name       string
}

func packages(t *testing.T) (out []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Doc,Name", "./...")
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath+"/" != module {
			out = append(out, p)
		}
	}
}

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		from := room(name)
		floor, known := floors[from]
		if !known {
			t.Errorf("%s is not in the floor plan: enter it in floors_test.go and in docs/design.md", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			to = room(to)
			switch {
			case floors[to] < floor:
			case floors[to] == floor && order[to] < order[from]:
			case floors[to] == floor && strings.HasPrefix(to, from+"/"): // a room of its own
			case floor == 2 && floors[to] == 2 && 0 < inside[to] && inside[to] < inside[from]:
			case floor == 4 && strings.HasPrefix(from, "examples/") && to == "examples/schemaorg" || floor == 4 && strings.HasPrefix(from, "examples/") && to == "httpapi":
			case floor == 6:
			default:
				t.Errorf("%s (floor %d) imports %s (floor %d): imports go down only", from, floor, to, floors[to])
			}
			if floor == 0 && strings.HasPrefix(from, "rdfres") && !strings.HasPrefix(to, "rdfres") {
				t.Errorf("%s imports %s: RDF and its formats stand alone", from, to)
			}
			if floors[to] == 6 && floor != 6 {
				t.Errorf("%s imports %s, which is for tests and tools", from, to)
			}
		}
		for _, f := range forbidden {
			if from == f.from || name == f.from {
				for _, imp := range p.Imports {
					if to := strings.TrimPrefix(imp, module); to == f.to || room(to) == f.to {
						t.Errorf("%s must not import %s, because %s", name, to, f.why)
					}
				}
			}
		}
		for _, imp := range p.Imports {
			for third, rooms := range owners {
				if strings.HasPrefix(imp, third) && !contains(rooms, from) {
					t.Errorf("%s imports %s, which is owned by %v", from, imp, rooms)
				}
			}
		}
	}
}

// TestComments holds every package to a comment that begins as the tools expect.
func TestComments(t *testing.T) {
	for _, p := range packages(t) {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command " + filepath.Base(p.ImportPath) + " "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: its comment begins %q, want %q", p.ImportPath, p.Doc, want)
		}
	}
}

// TestNouns holds the interfaces of a destination to ten methods. Those for other rooms stand in a file
// each, with what an implementer guarantees. Their signatures name types of their own room, of the ground, of the
// three nouns, and resources: an implementer imports little. The engine names no implementer of a feed.
func TestNouns(t *testing.T) {
	fset := token.NewFileSet()
	err := filepath.WalkDir("destination", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		room, nouns := filepath.ToSlash(filepath.Dir(path)), 0
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				for _, spec := range n.Specs {
					s, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					body, ok := s.Type.(*ast.InterfaceType)
					if !ok {
						continue
					}
					if m := body.Methods.NumFields(); m > 10 {
						t.Errorf("%s.%s: %d methods, at most 10", room, s.Name.Name, m)
					}
					if floors[room] == 6 || !s.Name.IsExported() {
						continue
					}
					if nouns++; nouns > 1 {
						t.Errorf("%s has more than one interface", path)
					}
					if doc := n.Doc.Text(); !strings.Contains(doc, "guarantees") {
						t.Errorf("%s.%s: its comment does not say what an implementer guarantees", room, s.Name.Name)
					}
					for _, other := range rooms(file, body) {
						if floors[other] > 0 && !contains([]string{"destination/feed", "destination/item", "destination/ledger", "destination/sink"}, other) {
							t.Errorf("%s.%s: an implementer imports %s too", room, s.Name.Name, other)
						}
					}
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && room == "destination" && x.Name == "feed" && (n.Sel.Name == "Source" || n.Sel.Name == "Documents") {
					t.Errorf("%s names feed.%s: the engine knows a feed by its interfaces", fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rooms are those named in an interface of a file.
func rooms(file *ast.File, body *ast.InterfaceType) (out []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := s.X.(*ast.Ident).Name
		for _, imp := range file.Imports {
			if to, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module); ours && path.Base(to) == name {
				out = append(out, room(to))
			}
		}
		return false
	})
	return out
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
