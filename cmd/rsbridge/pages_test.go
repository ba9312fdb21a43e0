package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestPages runs the documentation. Each page is a script: a block of sh is run
// line by line, a block of yaml or turtle is the file that its first line names
// (rsbridge.yaml by default), a block of text is a part of what the last command
// printed, with … for anything. A command ends with exit code 0, or with the one
// that a comment behind it tells. Daemons run until the end of the page, or
// until <!-- stop -->. Hidden lines of a script stand in <!-- test: ... -->.
//
// Well-known addresses of the pages lead to stand-ins: localhost and the port of
// a product to an embedded store that answers at the paths of the product, with
// the graph http://example.org/books; https://data.example to a running source of
// the same books. The pages of one product meet the real one where it runs. A
// block marked skip is not run.
func TestPages(t *testing.T) {
	if testing.Short() {
		return // nothing here runs at once that no other test runs at once
	}
	root := teststores.Root(t)
	files := []string{filepath.Join(root, "README.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "reference" {
			return filepath.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	dir, skipped := t.TempDir(), 0
	var scripts []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := readPage(t, file, string(raw))
		skipped += p.skipped
		if p.commands == 0 {
			continue
		}
		name := filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), ".md")+".txtar")
		if err := os.WriteFile(name, []byte(p.script.String()+p.files.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, name)
	}
	if skipped > maxSkipped {
		t.Errorf("%d blocks are marked skip, at most %d", skipped, maxSkipped)
	}
	src := newSource(t)
	cmds := scriptCmds()
	maps.Copy(cmds, faultyCmds())
	maps.Copy(cmds, daemonCmds())
	cmds["prints"] = func(ts *testscript.TestScript, _ bool, args []string) {
		if out := ts.ReadFile("stdout") + ts.ReadFile("stderr"); !regexp.MustCompile("(?m)^\\s*" + args[0] + "\\s*$").MatchString(out) {
			ts.Fatalf("it printed no line %s:\n%s", args[0], out)
		}
	}
	testscript.Run(t, testscript.Params{
		Files: scripts,
		Cmds:  cmds,
		Setup: func(env *testscript.Env) error {
			env.Values[proxiesKey{}] = proxies{}
			env.Setenv("SOURCE", src)
			vars := map[string]string{"GRAPH": booksGraph, "REPOSITORY": "books", "READER": "reader", "WRITER": "writer", "PASSWORD": "secret"}
			for name, p := range products {
				if os.Getenv(p.env) != "" && strings.HasSuffix(env.WorkDir, "-"+strings.ToLower(name)) {
					realProduct(t, name, p, vars)
					continue
				}
				srv := httptest.NewServer(newProduct(t, p.paths))
				env.Defer(srv.Close)
				vars[name] = strings.TrimPrefix(srv.URL, "http://")
			}
			for name, value := range vars {
				env.Setenv(name, value)
			}
			return nil
		},
	})
}

// TestExamples reads the commands on the pages made from the code: each is one of
// ours, with flags and arguments that it takes.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(teststores.Root(t), "docs", "reference", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shBlock.FindAllStringSubmatch(string(raw), -1) {
			for _, m := range ourCommand.FindAllStringSubmatch(strings.ReplaceAll(block[1], "\\\n", " "), -1) {
				var args []string
				for _, arg := range shellWord.FindAllString(m[1], -1) {
					args = append(args, strings.Trim(arg, "'"))
				}
				n++
				root := (&app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}).root()
				c, rest, err := root.Find(args)
				if err == nil {
					err = c.ParseFlags(rest)
				}
				if err == nil && c.Args != nil {
					err = c.Args(c, c.Flags().Args())
				}
				if err != nil || c == root {
					t.Errorf("%s: rsbridge %s: %v", filepath.Base(file), strings.Join(args, " "), err)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d commands were looked at", n)
	}
}

var (
	shBlock    = regexp.MustCompile("(?s)```sh\n(.*?)```")
	ourCommand = regexp.MustCompile(`(?m)\brsbridge ([a-z](?:'[^']*'|[^\n&|>#])*)`)
	shellWord  = regexp.MustCompile(`'[^']*'|[^ ]+`)
)

// maxSkipped is how many blocks of all pages need what no test has: systemd, a
// real repository.
const maxSkipped = 1

// foreign are configurations of other programs: no commands.
var foreign = []string{"nginx", "apache", "caddy"}

// page is a Markdown page as a script.
type page struct {
	script, files strings.Builder
	commands      int
	skipped       int
	daemons       []string
}

var (
	fence     = regexp.MustCompile("^```(\\w*) ?(\\w*)$")
	hidden    = regexp.MustCompile(`(?s)^<!-- test: (.*?) -->`)
	exitCode  = regexp.MustCompile(`# exit code (\d+)`)
	trailing  = regexp.MustCompile(`\s+#\s.*$`)
	daemonCmd = regexp.MustCompile(`^rsbridge (run|expose|mirror|store serve)\b`)
	variable  = regexp.MustCompile(`\$\{[A-Z0-9]+\}`)
	inYAML    = regexp.MustCompile(`^# (\S+\.(?:yaml|ttl|nt|json|rq))\b`)
	wellKnown = strings.NewReplacer("http://example.org/mirror", "${GRAPH}-copy", booksGraph, "${GRAPH}", "repositories/books", "repositories/${REPOSITORY}", "repository: books", "repository: ${REPOSITORY}",
		"username reader", "username ${READER}", "username: reader", "username: ${READER}", "username writer", "username ${WRITER}", "username: writer", "username: ${WRITER}", "printf secret", "printf ${PASSWORD}",
		"https://data.example", "${SOURCE}", "localhost:3030", "${FUSEKI}", "localhost:8080", "${RDF4J}", "localhost:8890", "${VIRTUOSO}",
		"localhost:7878", "${OXIGRAPH}", "127.0.0.1:8080", "127.0.0.1:${PUB}", "127.0.0.1:7878", "127.0.0.1:${STORE}", "127.0.0.1:8081", "127.0.0.1:${ADM}")
)

func readPage(t *testing.T, file, text string) *page {
	t.Helper()
	p := &page{}
	p.script.WriteString("port PUB ADM STORE\n")
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		rest := strings.Join(lines[i:], "")
		if m := hidden.FindStringSubmatch(rest); m != nil {
			p.script.WriteString(wellKnown.Replace(m[1]) + "\n")
			i += strings.Count(m[0], "\n")
			continue
		}
		if strings.HasPrefix(rest, "<!-- stop -->") {
			p.stop()
			continue
		}
		m := fence.FindStringSubmatch(strings.TrimSpace(lines[i]))
		if m == nil {
			continue
		}
		var block strings.Builder
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			block.WriteString(lines[i])
		}
		switch {
		case slices.Contains(foreign, m[1]):
		case m[1] == "sh" && m[2] == "skip", m[1] != "" && !slices.Contains([]string{"sh", "yaml", "turtle", "json", "text"}, m[1]):
			p.skipped++
		case m[1] == "sh":
			p.sh(block.String())
		case m[1] == "yaml", m[1] == "turtle", m[1] == "json":
			p.file(m[1], block.String())
		case m[1] == "text" && p.commands > 0:
			p.output(block.String())
		}
	}
	p.stop()
	return p
}

func (p *page) sh(block string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(block, "\\\n", " "), "\n") {
		want := "0"
		if m := exitCode.FindStringSubmatch(line); m != nil {
			want = m[1]
		}
		line = strings.TrimSpace(trailing.ReplaceAllString(line, ""))
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "make ") {
			continue
		}
		p.commands++
		if strings.Contains(line, "curl -N ") { // a stream without an end
			line, want = strings.Replace(line, "curl -N ", "curl -N --max-time 1 ", 1), "28"
		}
		m := daemonCmd.FindStringSubmatch(line)
		line = strings.ReplaceAll(wellKnown.Replace(line), "curl ", "curl -fsS ")
		if m == nil || strings.Contains(line, "--once") {
			fmt.Fprintf(&p.script, "exits %s sh -c %s\n", want, quoted(line))
			if strings.HasPrefix(line, "rsbridge init ") {
				p.script.WriteString("exec sh -c 'sed -i -e s/:80[89][02468]/:$PUB/ -e s/:80[89][13579]/:$ADM/ *.yaml'\n")
			}
			continue
		}
		name := fmt.Sprintf("daemon%d", p.commands)
		p.daemons = append(p.daemons, name)
		ready := "serving"
		switch m[1] {
		case "expose":
			line, ready = line+" --listen 127.0.0.1:${PUB} --admin 127.0.0.1:${ADM}", "published: http"
		case "mirror":
			line, ready = line+" --admin 127.0.0.1:0", "synced"
		case "store serve":
			line = line + " --listen 127.0.0.1:${STORE}"
		case "run":
			ready = "msg=serving"
		}
		fmt.Fprintf(&p.script, "exec sh -c %s &%s&\nuntil '%s' cat %s.log\n", quoted("exec "+line+" >"+name+".log 2>&1"), name, ready, name)
	}
}

// quoted is a word of a script, with the addresses filled in.
func quoted(line string) string {
	return "'" + variable.ReplaceAllString(strings.ReplaceAll(line, "'", "''"), "'$0'") + "'"
}

func (p *page) file(kind, text string) {
	name := "rsbridge.yaml"
	if m := inYAML.FindStringSubmatch(text); m != nil {
		name = m[1]
	}
	if kind == "yaml" {
		if !strings.Contains("\n"+text, "\npublic:") {
			text += "public: {listen: \"127.0.0.1:${PUB}\"}\n"
		}
		if !strings.Contains("\n"+text, "\nadmin:") {
			text += "admin: {listen: \"127.0.0.1:${ADM}\"}\n"
		}
	}
	p.commands++
	part := fmt.Sprintf("block%d", p.commands)
	fmt.Fprintf(&p.script, "expand %s\nexec cp %s %s\n", part, part, name)
	fmt.Fprintf(&p.files, "-- %s --\n%s", part, wellKnown.Replace(text))
	if kind == "yaml" {
		fmt.Fprintf(&p.script, "exec sh -c 'rsbridge check -c %s || test $? != 2'\n", name) // it reads well; what it names may come later
	}
}

func (p *page) output(text string) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		want := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*")
		fmt.Fprintf(&p.script, "prints %s\n", quoted(strings.ReplaceAll(want, "127\\.0\\.0\\.1:808[01]", "127\\.0\\.0\\.1:[0-9]+")))
	}
}

func (p *page) stop() {
	for _, name := range p.daemons {
		fmt.Fprintf(&p.script, "kill -INT %s\nwait %s\n", name, name)
	}
	p.daemons = nil
}

const booksGraph = "http://example.org/books"

// products are the stores of the pages: paths of queries, of updates, of graphs;
// the variable with the address of the real one.
var products = map[string]product{
	"FUSEKI":   {[3]string{"/ds/query", "/ds/update", "/ds/data"}, teststores.EnvFuseki, teststores.Fuseki},
	"RDF4J":    {[3]string{"/rdf4j-server/repositories/books", "/rdf4j-server/repositories/books/statements", "/rdf4j-server/repositories/books/rdf-graphs/service"}, teststores.EnvRDF4J, teststores.RDF4J},
	"VIRTUOSO": {[3]string{"/sparql-auth", "/sparql-auth", "/sparql-graph-crud-auth"}, teststores.EnvVirtuoso, teststores.Virtuoso},
	"OXIGRAPH": {[3]string{"/query", "/update", "/store"}, teststores.EnvOxigraph, teststores.Oxigraph},
}

type product struct {
	paths  [3]string
	env    string
	server func(testing.TB) teststores.Server
}

// realProduct fills in the real store of a name, with the books in a graph of the test's
// own. What the page writes there is removed at the end of the test.
func realProduct(t *testing.T, name string, p product, vars map[string]string) {
	s := p.server(t)
	base, err := url.Parse(os.Getenv(p.env))
	if err != nil {
		t.Fatal(err)
	}
	vars[name], vars["GRAPH"] = base.Host, s.Graph
	if name == "RDF4J" {
		vars["REPOSITORY"] = base.Path[strings.LastIndex(base.Path, "/")+1:]
	}
	if s.Username != "" {
		vars["READER"], vars["WRITER"], vars["PASSWORD"] = s.Username, s.Username, s.Password
	}
	s.Put(t, s.Graph, "text/turtle", strings.NewReader(books(12)))
	t.Cleanup(func() {
		for _, graph := range []string{s.Graph + "-mirror", s.Graph + "-copy"} {
			s.Clear(t, graph)
			s.Run(t, "DELETE { GRAPH <urn:rsbridge:state> { ?s ?p ?o } } WHERE { GRAPH <urn:rsbridge:state> { ?s <urn:rsbridge:terms#graph> \""+graph+"\" ; ?p ?o } }")
		}
	})
}

// books are some in a graph of their own.
func books(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<http://example.org/book/%d> a <http://schema.org/Book> ; <http://schema.org/name> \"Book %d\" ; <http://purl.org/dc/terms/modified> \"2026-01-01T00:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n", i+1, i+1)
	}
	return b.String()
}

// newProduct is an embedded store with some books that answers at the paths of a
// product.
func newProduct(t *testing.T, paths [3]string) http.Handler {
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	h := store.Handler()
	at := func(path string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			r.URL.Path = path
			if path != "/data" && r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/sparql-update") {
				r.URL.Path = "/update"
			}
			h.ServeHTTP(w, r)
		}
	}
	mux := http.NewServeMux()
	mux.Handle(paths[0], at("/query"))
	if paths[1] != paths[0] {
		mux.Handle(paths[1], at("/update"))
	}
	mux.Handle(paths[2], at("/data"))
	put := httptest.NewRequest(http.MethodPut, paths[2]+"?graph="+url.QueryEscape(booksGraph), strings.NewReader(books(12)))
	put.Header.Set("Content-Type", "text/turtle")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, put)
	if w.Code/100 != 2 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return mux
}

// newSource starts a source of some books, and gives its address.
func newSource(t *testing.T) string {
	t.Helper()
	pub, adm := freeAddr(t), freeAddr(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "rsbridge.yaml")
	text := fmt.Sprintf("state: ./state\npublic: {listen: %q}\nadmin: {listen: %q}\nstores: {origin: {embedded: ./origin}}\nsets:\n  books: {store: origin, prefix: \"http://example.org/\", schedule: \"@every 24h\"}\n", pub, adm)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(in string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(in), &out, &out); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, &out)
		}
	}
	command(books(12), "store", "load", filepath.Join(dir, "origin"), "--format", "turtle", "-")
	command("", "scan", "-c", conf)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"run", "-c", conf}, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	}()
	t.Cleanup(func() { stop(); soon(t, "the end of the source", ended) })
	if err := poll(ctx, func() bool {
		res, err := http.Get("http://" + pub + "/.well-known/resourcesync")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}); err != nil {
		t.Fatal(err)
	}
	return "http://" + pub
}
