package codec_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// bombs are short documents that stand for much: each is made of a long text, which is
// used many times.
var bombs = map[string]struct {
	format rdfres.Format
	make   func(long string, times int) string
}{
	"a prefix": {rdfres.Turtle, func(long string, times int) string {
		return "@prefix p: <http://e/" + long + "/> .\n" + repeat(times, "p:%d <http://e/p> 1 .\n")
	}},
	"a prefix of prefixes": {rdfres.TriG, func(long string, times int) string {
		return "@base <http://e/" + long + "/> .\n" + repeat(times, "@prefix p%d: <x> .\n")
	}},
	"a base": {rdfres.Turtle, func(long string, times int) string {
		return "@base <http://e/" + long + "/> .\n" + repeat(times, "<%d> <http://e/p> 1 .\n")
	}},
	"a base on a base": {rdfres.Turtle, func(long string, times int) string {
		return "@base <http://e/" + long + "/> .\n" + repeat(times, "@base <%d/> .\n")
	}},
	"a subject": {rdfres.Turtle, func(long string, times int) string {
		return "<http://e/" + long + "> <http://e/p> " + strings.TrimSuffix(repeat(times, "%d, "), ", ") + " ."
	}},
	"an xml:base": {rdfres.RDFXML, func(long string, times int) string {
		return rdfXML(`xml:base="http://e/`+long+`/"`, repeat(times, `<rdf:Description rdf:about="%d"><e:p>a</e:p></rdf:Description>`))
	}},
	"xml:base in xml:base": {rdfres.RDFXML, func(long string, times int) string {
		return rdfXML(`xml:base="http://e/`+long+`/"`, strings.Repeat(`<rdf:Description><e:p xml:base="a/">`, times)+strings.Repeat(`</e:p></rdf:Description>`, times))
	}},
	"rdf:ID": {rdfres.RDFXML, func(long string, times int) string {
		return rdfXML(`xml:base="http://e/`+long+`/"`, repeat(times, `<rdf:Description rdf:ID="a%d"/>`))
	}},
	"a namespace": {rdfres.RDFXML, func(long string, times int) string {
		return rdfXML(`xmlns:l="http://e/`+long+`/"`, "<rdf:Description>"+repeat(times, `<l:p%d>a</l:p%[1]d>`)+"</rdf:Description>")
	}},
	"an entity in text": {rdfres.RDFXML, func(long string, times int) string {
		return "<!DOCTYPE r [<!ENTITY l '" + long + "'>]>" + rdfXML("", "<rdf:Description><e:p>"+strings.Repeat("&l;", times)+"</e:p></rdf:Description>")
	}},
	"an entity in attributes": {rdfres.RDFXML, func(long string, times int) string {
		return "<!DOCTYPE r [<!ENTITY l '" + long + "'>]>" + rdfXML("", "<rdf:Description>"+strings.Repeat(`<e:p e:x="&l;" xmlns="http://e/&l;"/>`, times)+"</rdf:Description>")
	}},
	"entities of entities": {rdfres.RDFXML, func(string, int) string {
		s := "<!DOCTYPE r [<!ENTITY e0 'aaaaaaaaaa'>"
		for i := range 12 {
			s += fmt.Sprintf("<!ENTITY e%d '%s'>", i+1, strings.Repeat(fmt.Sprintf("&e%d;", i), 10))
		}
		return s + "]>" + rdfXML("", "<rdf:Description><e:p>&e12;</e:p></rdf:Description>")
	}},
	"a namespace of XML literals": {rdfres.RDFXML, func(long string, times int) string {
		return rdfXML(`xmlns:l="http://e/`+long+`/"`, `<rdf:Description><e:p rdf:parseType="Literal">`+strings.Repeat("<l:a/>", times)+`</e:p></rdf:Description>`)
	}},
	"a JSON-LD prefix": {rdfres.JSONLD, func(long string, times int) string {
		return `{"@context":{"p":"http://e/` + long + `/"},"http://e/p":[` + strings.TrimSuffix(repeat(times, `{"@id":"p:%d"},`), ",") + `]}`
	}},
	"JSON-LD terms": {rdfres.JSONLD, func(long string, times int) string {
		return `{"@context":{"p":"http://e/` + long + `/"` + repeat(times, `,"t%d":"p:%[1]d"`) + `},"@id":"http://e/s"}`
	}},
	"a JSON-LD vocabulary": {rdfres.JSONLD, func(long string, times int) string {
		return `{"@context":{"@vocab":"http://e/` + long + `/"}` + repeat(times, `,"t%d":1`) + `}`
	}},
	"a JSON-LD base": {rdfres.JSONLD, func(long string, times int) string {
		return `{"@context":{"@base":"http://e/` + long + `/"},"@graph":[` + strings.TrimSuffix(repeat(times, `{"@id":"%d","http://e/p":1}`+","), ",") + `]}`
	}},
	"a JSON-LD language and type": {rdfres.JSONLD, func(long string, times int) string {
		return `{"@context":{"v":{"@id":"http://e/v","@type":"http://e/` + long + `"}},"v":[` + strings.TrimSuffix(strings.Repeat(`"a",`, times), ",") + `]}`
	}},
	"JSON-LD contexts in a type": {rdfres.JSONLD, func(long string, times int) string {
		return `{"@context":{"p":"http://e/` + long + `/","T":{"@id":"http://e/T","@context":{` + strings.TrimSuffix(repeat(times, `"t%d":"p:%[1]d",`), ",") + `}}},"@graph":[` + strings.TrimSuffix(strings.Repeat(`{"@type":"T"},`, times), ",") + `]}`
	}},
	"a context from elsewhere": {rdfres.JSONLD, func(long string, times int) string {
		return `{"@context":"http://c/far","@graph":[` + strings.TrimSuffix(repeat(times, `{"@id":"long:%d","http://e/p":1}`+","), ",") + `]}`
	}},
	"a subject in expanded JSON-LD": {rdfres.JSONLD, func(long string, times int) string {
		return `[{"@id":"http://e/` + long + `","http://e/p":[` + strings.TrimSuffix(repeat(times, "%d,"), ",") + `]}]`
	}},
	"a subject that is named last": {rdfres.JSONLD, func(long string, times int) string {
		return `[{"http://e/p":[` + strings.TrimSuffix(repeat(times, "%d,"), ",") + `],"@id":"http://e/` + long + `"}]`
	}},
	"numbers": {rdfres.JSONLD, func(_ string, times int) string {
		return `[{"http://e/p":[` + strings.TrimSuffix(strings.Repeat("1,", 1000*times), ",") + `]}]`
	}},
	"spaces in an IRI": {rdfres.NTriples, func(long string, times int) string {
		return repeat(times, "<http://e/"+strings.Repeat(" ", 4*len(long)/times)+"> <http://e/p> \"%d\" .\n")
	}},
}

func repeat(times int, format string) string {
	var b strings.Builder
	for i := range times {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func rdfXML(attributes, content string) string {
	return `<rdf:RDF xmlns:rdf="` + chars.RDF + `" xmlns:e="http://e/" ` + attributes + `>` + content + `</rdf:RDF>`
}

// TestExpansionIsBounded: what a document expands to counts towards the bound, in every
// format, and reading it takes at most six times the bound in memory.
func TestExpansionIsBounded(t *testing.T) {
	if alone(t) {
		return
	}
	const bound = 8 << 20
	for name, b := range bombs {
		doc := []byte(b.make(strings.Repeat("x", 512<<10), 4000))
		if len(doc) > bound {
			t.Errorf("%s: the document itself has %d bytes", name, len(doc))
		}
		far := []byte(`{"@context":{"long":"http://e/` + strings.Repeat("x", 512<<10) + `/"}}`)
		var err error
		peak := heapPeak(func() {
			_, err = codec.Decode(b.format, doc, rdfres.ReadOptions{MaxBytes: bound, Lax: true, Context: func(string) ([]byte, string, error) { return far, "http://c/far", nil }})
		})
		if !errors.Is(err, rdfres.ErrTooLarge) {
			t.Errorf("%s (%d bytes): %v", name, len(doc), err)
		}
		if peak > 6*bound {
			t.Errorf("%s: %d MiB of memory with a bound of %d", name, peak>>20, bound>>20)
		}
	}
}

// Where no bound is given a bomb ends as well.
func TestExpansionWithoutBound(t *testing.T) {
	for _, name := range []string{"a prefix", "an entity in text", "JSON-LD terms"} {
		b := bombs[name]
		var last error
		for _, err := range codec.Read(strings.NewReader(b.make(strings.Repeat("x", 4<<20), 1000)), b.format, rdfres.ReadOptions{}) {
			last = err
		}
		if !errors.Is(last, rdfres.ErrTooLarge) {
			t.Errorf("%s: %v", name, last)
		}
	}
}

// alone runs a test in a process of its own, whose collector stops all else: beside it, a reader
// makes more garbage the busier the machine is. It is false there, and true in the caller.
func alone(t *testing.T) bool {
	const stops = "gcstoptheworld=2"
	if strings.Contains(os.Getenv("GODEBUG"), stops) {
		return false
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), "GODEBUG="+stops)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return true
}

// heapPeak is how much the heap grows at most while f runs.
func heapPeak(f func()) (peak int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // garbage does not count
	runtime.GC()
	before := read()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(time.Millisecond); ; {
			peak = max(peak, read()-before)
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	<-ended
	return peak
}

// TestLongLiteral: a document that is nearly as long as the bound takes at most six times
// the bound while it is read, though it is one literal, with escapes.
func TestLongLiteral(t *testing.T) {
	if alone(t) {
		return
	}
	const bound = 24 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // the program has a soft limit of memory
	text := strings.Repeat("0123456789 abcdef \\\\ é\n", (bound-4096)/26)
	oneLine := strings.ReplaceAll(text, "\n", `\n`)
	for f, doc := range map[rdfres.Format]string{
		rdfres.NTriples: `<http://e/s> <http://e/p> "` + oneLine + `" .`, rdfres.Turtle: `<http://e/s> <http://e/p> """` + text + `""" .`, rdfres.RDFXML: rdfXML("", "<rdf:Description><e:p>"+strings.ReplaceAll(text, `\`, "/")+"</e:p></rdf:Description>"),
		rdfres.JSONLD: `{"http://e/p":"` + oneLine + `"}`, "foreign": `{"@context":{"p":{"@id":"http://e/p","@language":"en"}},"p":"` + oneLine + `"}`, "json": `{"@context":{"p":{"@id":"http://e/p","@type":"@json"}},"p":"` + strings.Repeat("0123456789é", (bound-4096)/12) + `"}`,
	} {
		body, name := []byte(doc), f
		if f == "foreign" || f == "json" {
			f = rdfres.JSONLD
		}
		doc = ""
		var ts []rdfres.Triple
		var err error
		peak := heapPeak(func() { ts, err = codec.Decode(f, body, rdfres.ReadOptions{MaxBytes: bound}) })
		if err != nil || len(ts) != 1 || len(ts[0].O) < bound/2 {
			t.Errorf("%s: %d triples, %v", name, len(ts), err)
		}
		if peak > 5*bound { // the document itself is held too
			t.Errorf("%s: %d MiB of memory with a bound of %d", name, peak>>20, bound>>20)
		}
	}
}

// crowds are documents of a length that are made of as many parts as it can have.
var crowds = map[string]struct {
	format rdfres.Format
	make   func(length int) string
}{
	"a long list":                {rdfres.JSONLD, crowd(`{"@id":"http://e/s","http://e/p":{"@list":[1`, ",1", "]}}")},
	"a long list, with context":  {rdfres.JSONLD, crowd(`{"@context":{"p":{"@id":"http://e/p","@container":"@list"}},"p":[1`, ",1", "]}")},
	"lists in a list":            {rdfres.JSONLD, crowd(`{"http://e/p":{"@list":[1`, `,{"@list":[]}`, "]}}")},
	"a long set":                 {rdfres.JSONLD, crowd(`{"http://e/p":{"@set":[1`, ",1", "]}}")},
	"a list that is dropped":     {rdfres.JSONLD, crowd(`[{"@list":[1`, ",1", "]}]")},
	"many nodes in reverse":      {rdfres.JSONLD, crowd(`{"@reverse":{"http://e/p":[{}`, ",{}", "]}}")},
	"many types":                 {rdfres.JSONLD, crowd(`{"@type":["a:b"`, `,"a:b"`, "]}")},
	"many types, with context":   {rdfres.JSONLD, crowd(`{"@context":{},"@type":["a:b"`, `,"a:b"`, "]}")},
	"many objects":               {rdfres.JSONLD, crowd(`{"http://e/p":[{}`, ",{}", "]}")},
	"many objects, with context": {rdfres.JSONLD, crowd(`{"@context":{"p":"http://e/p"},"p":[{}`, ",{}", "]}")},
	"many names":                 {rdfres.JSONLD, crowd(`{"a:":1`, `,"a:%x":1`, "}")},
	"many names, with context":   {rdfres.JSONLD, crowd(`{"@context":{"a":"http://e/"},"a:":1`, `,"a:%x":1`, "}")},
	"many terms":                 {rdfres.JSONLD, crowd(`{"@context":{"a":"http://e/"`, `,"a%x":"a:"`, `},"a:b":1}`)},
	"many arrays":                {rdfres.JSONLD, crowd(`{"@context":{"p":"http://e/p"},"p":[1`, `,[1]`, "]}")},
	"names that come last":       {rdfres.JSONLD, crowd(`[{}`, `,{"a:b":1,"@id":"a:%x"}`, "]")},
	"a JSON literal":             {rdfres.JSONLD, crowd(`{"@context":{"p":{"@id":"http://e/p","@type":"@json"}},"p":[1`, ",[]", "]}")},

	"many attributes":               {rdfres.RDFXML, crowdXML(`<rdf:Description rdf:about="http://e/s"`, ` e:p%x="v"`, "/>")},
	"many attributes of a property": {rdfres.RDFXML, crowdXML(`<rdf:Description><e:p`, ` e:p%x="v"`, "/></rdf:Description>")},
	"many namespaces":               {rdfres.RDFXML, crowdXML(`<rdf:Description`, ` xmlns:p%x="u:"`, "/>")},
	"namespaces of many elements":   {rdfres.RDFXML, crowdXML("", `<e:A xmlns:p%x="u:"/>`, "")},
	"many names of nodes":           {rdfres.RDFXML, crowdXML("", `<rdf:Description rdf:nodeID="anon-%x"/>`, "")},
	"many IDs":                      {rdfres.RDFXML, crowdXML("", `<rdf:Description rdf:ID="a%x"/>`, "")},
	"many elements":                 {rdfres.RDFXML, crowdXML("<rdf:Bag>", `<rdf:li/>`, "</rdf:Bag>")},
	"a long collection":             {rdfres.RDFXML, crowdXML(`<rdf:Description><e:p rdf:parseType="Collection">`, `<e:T/>`, "</e:p></rdf:Description>")},
	"an XML literal":                {rdfres.RDFXML, crowdXML(`<rdf:Description><e:p rdf:parseType="Literal">`, `<e:T/>`, "</e:p></rdf:Description>")},

	"many prefixes":        {rdfres.Turtle, crowd("", "@prefix a%x:<b:>.", "")},
	"short statements":     {rdfres.Turtle, crowd("", "<a:> <b:> _:%x.", "")},
	"many short objects":   {rdfres.Turtle, crowd("<a:> <b:> 1", ",%d", ".")},
	"many short names":     {rdfres.Turtle, crowd("@prefix a:<b:>.a:b a:b a:b", ",a:%x", ".")},
	"lines of another end": {rdfres.NTriples, crowd("", "_:a <b:> _:%x .\r", "")},
	"a long collection.":   {rdfres.Turtle, crowd("<a:> <b:> (", "1 ", ").")},
	"blank nodes":          {rdfres.TriG, crowd("<a:> <b:> 1", ",[]", ".")},
	"graphs":               {rdfres.TriG, crowd("", "<a:>{[]<b:>[]}", "")},
	"short lines":          {rdfres.NTriples, crowd("", "_:a <b:> _:%x .\n", "")},
	"short lines, varied":  {rdfres.NTriples, crowd("", "_:%x <b:> _:%[1]x .\n", "")},
	"short quads":          {rdfres.NQuads, crowd("", "_:%x <b:> _:c <g:> .\n", "")},
}

func crowd(begin, each, end string) func(int) string {
	return func(length int) string {
		b := strings.Builder{}
		b.Grow(length)
		b.WriteString(begin)
		for i := 0; b.Len() < length-len(end)-len(each)-20; i++ {
			if strings.Contains(each, "%") {
				fmt.Fprintf(&b, each, i)
			} else {
				b.WriteString(each)
			}
		}
		return b.String() + end
	}
}

func crowdXML(begin, each, end string) func(int) string {
	head, tail, _ := strings.Cut(rdfXML(`xml:base="http://e/"`, "|"), "|")
	return crowd(head+begin, each, end+tail)
}

// TestCrowds: a document of a length takes at most six times that in memory, itself included, and
// is read whole or refused.
func TestCrowds(t *testing.T) {
	if alone(t) {
		return
	}
	const bound = 4 << 20
	for name, c := range crowds {
		doc := []byte(c.make(bound - 100))
		var err error
		peak := heapPeak(func() {
			_, err = codec.Decode(c.format, doc, rdfres.ReadOptions{MaxBytes: bound, Lax: true, OneGraph: true})
		})
		if err != nil && !errors.Is(err, rdfres.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if peak += int64(len(doc)); peak > 6*bound {
			t.Errorf("%s: %d KiB of memory with a bound of %d", name, peak>>10, bound>>10)
		}
	}
}
