package resourcesync

import (
	"io"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// Parser reads a document element by element and warns of nothing. Package check uses it to report
// faults forgiven by a Reader.
type Parser struct {
	*xmlscan.Scanner
	d decoder
}

// NewParser begins with a document at an address, with a Content-Type. A document in another form
// is read as its equal in XML, and slips name the form; after a slip with Feed there is no
// document. slip is called for slips in the document itself, as in xmlscan.Options.
func NewParser(r io.Reader, location, contentType string, slip func(kind error, message string)) (p *Parser, slips []Slip, err error) {
	r, slips, err = inXML(r, location, contentType, 0)
	if err != nil {
		return nil, nil, err
	}
	s := newScanner(r, location, 0, 256<<10, slip)
	return &Parser{Scanner: s, d: decoder{s: s, base: location}}, slips, nil
}

func newScanner(r io.Reader, location string, maxBytes int64, maxValue int, slip func(kind error, message string)) *xmlscan.Scanner {
	return xmlscan.New(r, xmlscan.Options{
		MaxBytes: maxBytes, MaxValue: maxValue, Spaces: spaceOf, Slip: slip,
		Undeclared: undeclared,
		Fail: func(line int, kind error, message string) error {
			if kind == xmlscan.ErrElement {
				kind = ErrInvalid
			}
			return &DocumentError{Location: location, Line: line, Kind: kind, Message: message}
		},
	})
}

// undeclared gives namespaces to undeclared prefixes. rs is ours. Elements of others are left out,
// unless they could be ours under another prefix.
func undeclared(n *xmlscan.Name) string {
	switch local := string(n.Local); {
	case string(n.Prefix) == "rs":
		return NamespaceRS
	case local == "md" || local == "ln":
		return ""
	}
	return "undeclared:" + string(n.Prefix)
}

// Meta reads the rs:md of the current tag into m.
func (p *Parser) Meta(m *Meta) error { return p.d.meta(p.Attrs, m) }

// Link reads the rs:ln of the current tag into l. ok is false without rel or href.
func (p *Parser) Link(l *Link) (ok bool, err error) { return p.d.link(p.Attrs, l) }

// Address resolves the address in a loc.
func (p *Parser) Address(loc []byte) (string, error) { return p.d.address("loc", loc) }

// CheckRoot gives a Reader's error for the current root element.
func (p *Parser) CheckRoot() error { return (&Reader{d: p.d}).checkRoot() }

// Signs of old dialects.
type Signs struct {
	Meta            bool // the root has an rs:md
	DLib            bool // an element is in the namespace of the D-Lib form
	WasResourceSync bool // the capability was called resourcesync
}

// Settle works out the dialect of a root, as far as it is known.
func (p *Parser) Settle(h *Head, signs Signs) {
	r := Reader{d: p.d, head: *h, signs: signs}
	_ = r.settle() // no error in lenient reading
	*h = r.head
}
