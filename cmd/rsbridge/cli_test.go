package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestCommandReference holds the pages of commands in docs/reference to the tree of commands.
func TestCommandReference(t *testing.T) {
	root := (&app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	want := cliReference(root)
	for name, want := range want {
		teststores.Reference(t, *update, name, want)
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		_, words, _ := strings.Cut(strings.TrimSuffix(c.Use, " [flags]"), " ")
		for n := range 3 { // what is missing is named, with its kind and an example
			if words == "" || strings.HasPrefix(words, "[") || c.HasSubCommands() || c.Args(c, make([]string, n)) == nil {
				break
			}
			if err := c.Args(c, make([]string, n)); strings.Contains(err.Error(), "()") || !strings.Contains(err.Error(), " for example: "+c.CommandPath()+" ") {
				t.Errorf("%s with %d arguments: %v", c.CommandPath(), n, err)
			}
		}
		if c.Short == "" || !c.HasSubCommands() && c.Parent() != nil && c.Parent().Name() != "completion" && c.Name() != "help" && c.Long+c.Example == "" {
			t.Errorf("%s says too little of itself", c.CommandPath())
		}
		for _, s := range c.Commands() {
			check(s)
		}
	}
	check(root)
}

// A default graph that holds what the named graphs hold, too, is called one that shows
// them only where that is known.
func TestDoctorInWords(t *testing.T) {
	for want, set := range map[string]func(*sparql.Examination){
		"shows the named graphs too\n":                           func(x *sparql.Examination) { x.Product = "Virtuoso" },
		"or holds the same triples (--write tells which)\n":      func(x *sparql.Examination) { x.Product = "Oxigraph" },
		"default graph shows the named graphs too\nother graphs": func(x *sparql.Examination) { x.Product, x.Written, x.Writable = "Oxigraph", true, true },
	} {
		x := sparql.Examination{}
		x.UnionDefault = true
		set(&x)
		var b strings.Builder
		if err := sayExamination(&b, x, nil); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s: %v", want, &b, err)
		}
	}
}

// Zeros that fill up the last block of a gzip file are told and ignored; what else
// follows it is an error, and so is one that ends too early.
func TestLoadPadded(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte("<http://e/s> <http://e/p> \"x\" .\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	whole := b.String()
	for _, c := range []struct {
		file, says string
		code       int
	}{
		{whole, "1 triples that were not there", 0},
		{whole + strings.Repeat("\x00", 512), "512 zeros behind its end are ignored", 0},
		{whole + "\x00\x00" + whole, "zeros follow its end, and then something else", 1},
		{whole + "more", "what follows its end is no gzip", 1},
		{whole[:len(whole)-4], "unexpected EOF", 1},
		{"", "unexpected EOF", 1},
	} {
		file := filepath.Join(t.TempDir(), "x.nt.gz")
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := inProcess(t, "store", "load", filepath.Join(t.TempDir(), "store"), file)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, %s", c.says, code, stderr)
		}
	}
}

func TestAuditInWords(t *testing.T) {
	r := destination.AuditReport{Name: "copy", Missing: 3, Different: 1, Rewritten: 3, Origins: 2, Unasked: 1, Named: []destination.Difference{
		{Kind: "missing", Entity: "a", Location: "http://e/a", Detail: "x\ny"}, {Kind: "missing", Location: "http://e/c", Detail: "w"}, {Kind: "rewritten", Entity: "b", Detail: "z"}}}
	var b strings.Builder
	sayAudit(&b, r)
	for _, want := range []string{"  missing: a: x y\n", "  missing: http://e/c: w\n",
		"  compared with the first source (via) too: 2 resources\n", "  not compared with the first source (via), whose host is not allowed: 1 resource\n",
		"  and 2 more that are missing, extra or different (GET /api/v1/destinations/copy/differences", "  and 2 more that the store rewrites\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	b.Reset()
	if sayAudit(&b, destination.AuditReport{}); strings.Contains(b.String(), "more") || strings.Contains(b.String(), "via") {
		t.Error(b.String())
	}
}

// What a sync leaves out is said, and what an audit has from two sides only once.
func TestSyncInWords(t *testing.T) {
	var b strings.Builder
	saySync(&b, destination.SyncReport{Name: "copy", Mode: "baseline", Why: "w", Unselected: 3, Unmapped: 1, MapErrors: 2, MapError: `http://ex.org/a.nt: YEAR("soon")`, Held: "gap: x"})
	sayAudit(&b, destination.AuditReport{Name: "copy", Held: "gap: y", SourceError: "gap: y"})
	for _, want := range []string{"gap: x\n", "gap: y\n", "  3 more are outside of what is selected\n", "  map makes nothing of 1 description, which", "  map has an expression without a value for 2 descriptions, as http://ex.org/a.nt: YEAR(\"soon\")\n"} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
