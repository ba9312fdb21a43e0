package faces

import (
	"bufio"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Media types of event-stream pages.
const (
	trigType   = "application/trig"
	nquadsType = "application/n-quads"
	turtleType = "text/turtle"
	ntType     = "application/n-triples"
)

// Namespaces of the pages' vocabularies.
const (
	nsRDF  = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	nsXSD  = "http://www.w3.org/2001/XMLSchema#"
	nsLDES = "https://w3id.org/ldes#"
	nsTREE = "https://w3id.org/tree#"
	nsAS   = "https://www.w3.org/ns/activitystreams#"
	nsDCT  = "http://purl.org/dc/terms/"
	nsRSB  = "urn:rsbridge:terms#"
)

// prefixes of TriG pages, in the order of their declarations.
var prefixes = [][2]string{{"as", nsAS}, {"dct", nsDCT}, {"ldes", nsLDES}, {"rsb", nsRSB}, {"tree", nsTREE}, {"xsd", nsXSD}}

// voc makes the terms of a vocabulary.
func voc(ns, name string) rdfres.Term { return rdfres.Term("<" + ns + name + ">") }

var (
	rdfType       = voc(nsRDF, "type")
	asObject      = voc(nsAS, "object")
	asPublished   = voc(nsAS, "published")
	asCreate      = voc(nsAS, "Create")
	asUpdate      = voc(nsAS, "Update")
	asDelete      = voc(nsAS, "Delete")
	rsbSequence   = voc(nsRSB, "sequence")
	rsbGraph      = voc(nsRSB, "graph")
	rsbRewritten  = voc(nsRSB, "rewritten")
	treeMember    = voc(nsTREE, "member")
	treeView      = voc(nsTREE, "view")
	treeNode      = voc(nsTREE, "node")
	treeNodeClass = voc(nsTREE, "Node")
	treeRelation  = voc(nsTREE, "relation")
	treePath      = voc(nsTREE, "path")
	treeValue     = voc(nsTREE, "value")
	treeGTE       = voc(nsTREE, "GreaterThanOrEqualToRelation")
	treeLTE       = voc(nsTREE, "LessThanOrEqualToRelation")
	ldesStream    = voc(nsLDES, "EventStream")
	ldesImmutable = voc(nsLDES, "immutable")
	ldesRetention = voc(nsLDES, "retentionPolicy")
	ldesPolicy    = voc(nsLDES, "RetentionPolicy")
	literalTrue   = rdfres.NewLiteral("true", "", nsXSD+"boolean")
	dctTitle      = voc(nsDCT, "title")
)

// quadWriter writes statements as N-Quads or TriG. In TriG it joins neighbours of one graph and
// subject. Terms in canonical N-Triples are terms of TriG.
type quadWriter struct {
	w       *bufio.Writer
	lines   bool // N-Quads, N-Triples
	g, s, p rdfres.Term
	open    bool // a statement awaits its end
}

func newQuadWriter(w *bufio.Writer, mediaType string) *quadWriter {
	q := &quadWriter{w: w, lines: mediaType == nquadsType || mediaType == ntType}
	if !q.lines {
		for _, p := range prefixes {
			w.WriteString("@prefix " + p[0] + ": <" + p[1] + "> .\n")
		}
	}
	return q
}

// add writes a statement into a graph, "" the default one. Errors stay in w.
func (q *quadWriter) add(g, s, p, o rdfres.Term) {
	if q.lines {
		q.w.WriteString(string(s) + " " + string(p) + " " + string(o))
		if g != "" {
			q.w.WriteString(" " + string(g))
		}
		q.w.WriteString(" .\n")
		return
	}
	switch {
	case q.open && g == q.g && s == q.s && p == q.p:
		q.w.WriteString(" , ")
	case q.open && g == q.g && s == q.s:
		q.w.WriteString(" ;\n\t" + predicate(p) + " ")
	default:
		if g != q.g {
			q.end()
			if g != "" {
				q.w.WriteString(short(g) + " {\n")
			}
		} else if q.open {
			q.w.WriteString(" .\n")
		}
		q.w.WriteString(short(s) + " " + predicate(p) + " ")
	}
	q.w.WriteString(short(o))
	q.g, q.s, q.p, q.open = g, s, p, true
}

// end closes the open statement and graph.
func (q *quadWriter) end() {
	if q.open {
		q.w.WriteString(" .\n")
	}
	if q.g != "" {
		q.w.WriteString("}\n")
	}
	q.g, q.s, q.p, q.open = "", "", "", false
}

func predicate(p rdfres.Term) string {
	if p == rdfType {
		return "a"
	}
	return short(p)
}

// short writes IRIs of our vocabularies, and literals of XML Schema types, with
// their prefix.
func short(t rdfres.Term) string {
	s := string(t)
	head, iri := "", s
	if s[0] == '"' {
		at := strings.LastIndex(s, `"^^<`)
		if at < 0 {
			return s
		}
		head, iri = s[:at+3], s[at+3:]
	}
	if iri[0] != '<' {
		return s
	}
	for _, p := range prefixes {
		if name, ok := strings.CutPrefix(iri[1:len(iri)-1], p[1]); ok && plainName(name) {
			return head + p[0] + ":" + name
		}
	}
	return s
}

// plainName tells whether Turtle takes a name as it is: letters, digits and inner hyphens.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && (c >= '0' && c <= '9' || c == '-' && i < len(s)-1)) {
			return false
		}
	}
	return s != ""
}

// clean gives a term every reader accepts. An IRI of the store may hold characters not allowed in
// IRIs. Escaped in N-Triples they make some readers refuse the whole page, so clean percent-encodes
// them.
func clean(t rdfres.Term) (rdfres.Term, bool) {
	if rdfres.CheckIRI(t) == nil {
		return t, false
	}
	s, head := string(t), ""
	if s[0] == '"' {
		at := strings.LastIndex(s, `"^^<`)
		head, s = s[:at+3], s[at+3:]
	}
	var b strings.Builder
	b.WriteString(head)
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+5 < len(s) && s[i+1] == 'u' && s[i+2] == '0' && s[i+3] == '0' {
			b.WriteString("%" + strings.ToUpper(s[i+4:i+6]))
			i += 5
			continue
		}
		b.WriteByte(s[i])
	}
	return rdfres.Term(b.String()), true
}
