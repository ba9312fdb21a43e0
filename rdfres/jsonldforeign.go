package rdfres

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/piprate/json-gold/ld"
)

// decodeForeign reads JSON-LD with a context: json-gold expands it, and what it
// expands to is read by our own reader. Contexts that are not in the document
// come from o.Context. json-gold lower-cases language tags.
func decodeForeign(data []byte, o ReadOptions) (triples []Triple, named []Quad, err error) {
	scan := jsonScanner{data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
	why := scan.skipValue(0)
	if scan.peek(); why == "" && scan.pos < len(scan.data) {
		why = "something stands after the document"
	}
	if why != "" {
		return nil, nil, &SyntaxError{Name: o.Name, Format: JSONLD, Reason: why}
	}
	parts := [][]byte{scan.data} // whose contexts do not meet
	if scan = (jsonScanner{data: scan.data}); scan.peek() == '[' {
		parts = nil
		scan.each(func([]byte, bool) string {
			at := scan.pos
			why := scan.skipValue(0)
			parts = append(parts, scan.data[at:scan.pos])
			return why
		})
	}
	r := jsonldReader{opts: o, known: &interner{slots: make([]Term, internSlots)}}
	for _, part := range parts {
		// json-gold resolves relative IRIs with net/url, which makes Z%C3%BCrich of Zürich and
		// / of //. So they are left to our reader, but where a base stands deep in the document.
		plain, base, err := expandForeign(part, o, true)
		if err != nil && !errors.Is(err, ErrRemoteContext) {
			plain, base, err = expandForeign(part, o, false)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("rdfres: read jsonld %s: %w", o.Name, err)
		}
		r.jsonScanner, r.opts.Base = jsonScanner{data: plain}, base
		if why := r.document(); why != "" {
			return nil, nil, &SyntaxError{Name: o.Name, Format: JSONLD, Reason: "after its expansion: " + why}
		}
	}
	return r.triples, r.named, nil
}

// expandForeign gives the expanded document, and the base of what is relative in it. With
// lift json-gold is not told of a base.
func expandForeign(data []byte, o ReadOptions, lift bool) (plain []byte, own string, err error) {
	defer func() {
		if p := recover(); p != nil { // a document must not end the process
			err = fmt.Errorf("the expansion failed: %v", p)
		}
	}()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // a float64 has no room for long integers
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, "", err
	}
	opts := ld.NewJsonLdOptions(o.Base)
	if own = o.Base; lift {
		var ok bool
		if own, ok = liftBase(doc, o.Base); !ok {
			return nil, "", errDeepBase
		}
		opts.Base = ""
	} else {
		new(baseMembers).find(doc)
	}
	loader := &contextLoader{read: o.Context, base: o.Base, had: map[string]map[string]any{}}
	opts.DocumentLoader = loader
	expanded, err := ld.NewJsonLdProcessor().Expand(doc, opts)
	if loader.err != nil {
		return nil, "", loader.err
	}
	if err != nil {
		return nil, "", err
	}
	if expanded == nil {
		return []byte("[]"), own, nil
	}
	plain, err = json.Marshal(expanded)
	return plain, own, err
}

var errDeepBase = errors.New("a relative base or vocabulary stands deep in the document")

// baseMembers are what a document says of its base.
type baseMembers struct {
	bases    []map[string]any // contexts with @base
	relative map[string]any   // a context with a @vocab that is relative
	vocabs   int
	resets   int // contexts that put back the first base
}

// find walks through a document. On the way @version becomes what json-gold compares it
// with.
func (b *baseMembers) find(v any) {
	if list, isList := v.([]any); isList {
		for _, x := range list {
			b.find(x)
		}
	}
	members, _ := v.(map[string]any)
	for name, x := range members {
		switch name {
		case "@version":
			if n, isNumber := x.(json.Number); isNumber {
				members[name], _ = n.Float64()
			}
		case "@base":
			b.bases = append(b.bases, members)
		case "@vocab":
			b.vocabs++
			if text, isText := x.(string); isText && !strings.Contains(text, ":") {
				b.relative = members
			}
		case "@context":
			if list, isList := x.([]any); x == nil || isList && slices.Contains(list, nil) {
				b.resets++
			}
		}
		b.find(x)
	}
}

// liftBase takes the base out of the context at the top of a document, and resolves a
// vocabulary that is relative. ok is false, and the document spoiled, where that does not
// tell the base of all that is relative. What json-gold resolves by itself then is below
// a base that is absolute.
func liftBase(doc any, base string) (own string, ok bool) {
	var found baseMembers
	found.find(doc)
	top, _ := doc.(map[string]any)
	contexts, several := top["@context"].([]any)
	if !several && top["@context"] != nil {
		contexts = []any{top["@context"]}
	}
	if slices.Contains(contexts, nil) {
		found.resets--
	}
	own = base
	lifted := 0
	for _, c := range contexts {
		if c == nil {
			own = base
		}
		c, _ := c.(map[string]any)
		ref, there := c["@base"]
		if !there {
			continue
		}
		text, isText := ref.(string)
		switch _, part := c["@propagate"]; {
		case part, !isText && ref != nil:
			return "", false
		case ref == nil:
			own = ""
		default:
			if own, ok = ResolveIRI(own, text); !ok {
				return "", false
			}
		}
		delete(c, "@base")
		lifted++
	}
	for _, c := range found.bases {
		if ref, there := c["@base"]; there {
			if text, _ := ref.(string); !hasScheme(text) {
				return "", false
			}
		}
	}
	if lifted > 0 && found.resets > 0 {
		return "", false
	}
	if c := found.relative; c != nil {
		ref, _ := c["@vocab"].(string)
		vocab, ok := ResolveIRI(own, ref)
		if _, term := c[ref]; term || !ok || found.vocabs > 1 || len(found.bases) > lifted {
			return "", false
		}
		c["@vocab"] = vocab
	}
	return own, true
}

// maxContexts is how often contexts may be asked for while a document is expanded: they may
// name each other in a circle, which json-gold would follow.
const maxContexts = 256

// contextLoader gives json-gold the contexts that are not in the document.
type contextLoader struct {
	read  func(address string) (doc []byte, at string, err error)
	base  string // of the document
	had   map[string]map[string]any
	asked int
	err   error // the first
}

func (l *contextLoader) LoadDocument(address string) (*ld.RemoteDocument, error) {
	if absolute, ok := ResolveIRI(l.base, address); ok {
		address = absolute
	}
	doc, err := l.load(address)
	if err != nil {
		if l.err == nil {
			l.err = fmt.Errorf("%w: %w", ErrRemoteContext, err)
		}
		return nil, ld.NewJsonLdError(ld.LoadingRemoteContextFailed, err)
	}
	return &ld.RemoteDocument{DocumentURL: address, Document: doc}, nil
}

// load gives a copy of a context that json-gold may add to, as it does to one that is imported.
func (l *contextLoader) load(address string) (map[string]any, error) {
	if l.read == nil {
		return nil, fmt.Errorf("%s is not fetched; ask its source for JSON-LD without a context, or for another format", address)
	}
	if l.asked++; l.asked > maxContexts {
		return nil, fmt.Errorf("%s: contexts are asked for more than %d times", address, maxContexts)
	}
	doc := l.had[address]
	if doc == nil {
		data, at, err := l.read(address)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &doc); err != nil {
			return nil, fmt.Errorf("%s is no JSON object: %w", address, err)
		}
		anchor(doc, at)
		var found baseMembers
		if found.find(doc); found.relative != nil { // json-gold would lose a # at its end
			return nil, fmt.Errorf("the vocabulary of %s is relative", address)
		}
		l.had[address] = doc
	}
	doc = maps.Clone(doc)
	if c, ok := doc["@context"].(map[string]any); ok {
		doc["@context"] = maps.Clone(c)
	}
	return doc, nil
}

// anchor makes the addresses of further contexts that a context at an address names
// absolute, which json-gold would take as relative to the document.
func anchor(v any, at string) {
	absolute := func(v any) any {
		if text, ok := v.(string); ok {
			if iri, ok := ResolveIRI(at, text); ok {
				return iri
			}
		}
		return v
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			anchor(x, at)
		}
	case map[string]any:
		for name, x := range v {
			if list, ok := x.([]any); ok && name == "@context" {
				for i := range list {
					list[i] = absolute(list[i])
				}
			} else if name == "@context" || name == "@import" {
				v[name] = absolute(x)
			}
			anchor(v[name], at)
		}
	}
}
