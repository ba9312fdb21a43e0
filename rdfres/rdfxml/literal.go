package rdfxml

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// xmlLiteral reads the content of rdf:parseType="Literal" into an
// rdf:XMLLiteral: Exclusive XML Canonicalization with comments, as RDF/XML 1.1
// asks for (section 7.2.17).
func (p *rdfxmlParser) xmlLiteral() (rdfres.Term, error) {
	var b strings.Builder
	depth := len(p.scope)
	var rendered []xmlPrefix // by the open elements of the literal
	var marks []int          // how many there were before each of them
	most := int64(chars.MaxLine)
	if p.opts.MaxBytes > 0 {
		most = min(most, p.opts.MaxBytes)
	}
	for {
		t, err := p.token()
		if err != nil {
			return "", err
		}
		if int64(b.Len()) > most {
			return "", fmt.Errorf("rdfres: read %s %s: the literal at line %d expands to more than %d bytes: %w", rdfres.RDFXML, p.opts.Name, p.lex.text.line, most, rdfres.ErrTooLarge)
		}
		switch t := t.(type) {
		case xml.StartElement:
			marks = append(marks, len(rendered))
			if rendered, err = p.canonicalStart(&b, t, rendered); err != nil {
				return "", err
			}
		case xml.EndElement:
			if len(p.scope) == depth {
				p.pop()
				return rdfres.NewLiteral(b.String(), "", chars.RDF+"XMLLiteral"), nil
			}
			p.pop()
			rendered, marks = rendered[:marks[len(marks)-1]], marks[:len(marks)-1]
			b.WriteString("</" + rawName(t.Name) + ">")
		case xml.CharData:
			xmlTextEscapes.WriteString(&b, string(t))
		case xml.Comment:
			b.WriteString("<!--" + string(t) + "-->")
		case xml.ProcInst:
			b.WriteString("<?" + t.Target)
			if len(t.Inst) > 0 {
				b.WriteString(" " + string(t.Inst))
			}
			b.WriteString("?>")
		}
	}
}

var (
	xmlTextEscapes      = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;")
	xmlAttributeEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")
)

type xmlPrefix struct{ prefix, uri string }

// canonicalStart writes a start tag and gives the namespaces rendered
// at it: those above, and those used by this tag for the first time.
func (p *rdfxmlParser) canonicalStart(b *strings.Builder, t xml.StartElement, above []xmlPrefix) ([]xmlPrefix, error) {
	scope := p.top()
	used := []xmlPrefix{{t.Name.Space, scope.name.Space}}
	type attribute struct {
		name xml.Name
		raw  string
		text string
	}
	var attrs []attribute
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		name, ok := p.resolve(a.Name, false)
		if !ok {
			return nil, p.errorf("the prefix of the attribute %s is not declared", rawName(a.Name))
		}
		if a.Name.Space != "" {
			used = append(used, xmlPrefix{a.Name.Space, name.Space})
		}
		attrs = append(attrs, attribute{name, rawName(a.Name), a.Value})
	}
	b.WriteString("<" + rawName(t.Name))
	now := above
	slices.SortFunc(used, func(a, b xmlPrefix) int { return strings.Compare(a.prefix, b.prefix) })
	for _, u := range slices.Compact(used) {
		if u.prefix == "xml" || renderedAs(above, u.prefix) == u.uri {
			continue
		}
		now = append(now, u)
		if u.prefix == "" {
			b.WriteString(` xmlns="` + xmlAttributeEscapes.Replace(u.uri) + `"`)
		} else {
			b.WriteString(` xmlns:` + u.prefix + `="` + xmlAttributeEscapes.Replace(u.uri) + `"`)
		}
	}
	slices.SortFunc(attrs, func(a, b attribute) int {
		return cmp.Or(strings.Compare(a.name.Space, b.name.Space), strings.Compare(a.name.Local, b.name.Local))
	})
	for _, a := range attrs {
		b.WriteString(" " + a.raw + `="` + xmlAttributeEscapes.Replace(a.text) + `"`)
	}
	b.WriteString(">")
	return now, nil
}

// renderedAs is the namespace of a prefix in the output so far.
func renderedAs(rendered []xmlPrefix, prefix string) string {
	for i := len(rendered) - 1; i >= 0; i-- {
		if rendered[i].prefix == prefix {
			return rendered[i].uri
		}
	}
	return ""
}
