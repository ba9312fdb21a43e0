package rdfres

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/piprate/json-gold/ld"
)

// decodeForeign reads JSON-LD with a context: json-gold expands it, and what it
// expands to is read by our own reader. Contexts that are not in the document
// are refused with ErrRemoteContext. json-gold lower-cases language tags.
func decodeForeign(data []byte, o ReadOptions) (triples []Triple, named []Quad, err error) {
	defer func() {
		if p := recover(); p != nil { // a document must not end the process
			err = fmt.Errorf("rdfres: read jsonld %s: the expansion failed: %v", o.Name, p)
		}
	}()
	scan := jsonScanner{data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
	if why := scan.skipValue(0); why != "" {
		return nil, nil, &SyntaxError{Name: o.Name, Format: JSONLD, Reason: why}
	}
	var doc any
	if err := json.Unmarshal(scan.data, &doc); err != nil {
		return nil, nil, fmt.Errorf("rdfres: read jsonld %s: %w", o.Name, err)
	}
	loader := &noLoader{}
	opts := ld.NewJsonLdOptions(o.Base)
	opts.DocumentLoader = loader
	expanded, err := ld.NewJsonLdProcessor().Expand(doc, opts)
	if loader.asked != "" {
		return nil, nil, fmt.Errorf("rdfres: read jsonld %s: the document needs the context %s: %w; ask its source for JSON-LD without a context, or for another format", o.Name, loader.asked, ErrRemoteContext)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rdfres: read jsonld %s: %w", o.Name, err)
	}
	plain, err := json.Marshal(expanded)
	if err != nil {
		return nil, nil, fmt.Errorf("rdfres: read jsonld %s: %w", o.Name, err)
	}
	if expanded == nil {
		plain = []byte("[]")
	}
	r := jsonldReader{jsonScanner: jsonScanner{data: plain}, opts: o, known: &interner{slots: make([]Term, internSlots)}}
	if why := r.document(); why != "" {
		return nil, nil, &SyntaxError{Name: o.Name, Format: JSONLD, Reason: "after its expansion: " + why}
	}
	return r.triples, r.named, nil
}

// noLoader refuses to fetch and remembers what was asked for.
type noLoader struct{ asked string }

func (l *noLoader) LoadDocument(u string) (*ld.RemoteDocument, error) {
	if l.asked == "" {
		l.asked = u
	}
	return nil, ld.NewJsonLdError(ld.LoadingRemoteContextFailed, errors.New("not fetched"))
}
