package sparqlsink

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sinktest"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// product is a product's behaviour in front of the embedded store.
type product struct {
	server  string                   // its Server header
	path    string                   // of its addresses
	refuses func(body string) string // the answer to an update or upload it refuses, "" for none
	http.RoundTripper
}

func (p product) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if p.refuses != nil && !strings.HasSuffix(r.URL.Path, "/query") {
		if why := p.refuses(string(body)); why != "" {
			return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Server": {p.server}}, Body: io.NopCloser(strings.NewReader(why)), Request: r}, nil
		}
	}
	res, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Header.Set("Server", p.server)
	}
	return res, err
}

// open is an empty store of the product, as a sink.
func (p product) open(t *testing.T) sink.Sink {
	t.Helper()
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.RoundTripper = store.Transport()
	at := "http://embedded" + p.path
	c, err := sparql.New(sparql.Endpoint{Name: "mirror", Query: at + "/query", Update: at + "/update", GraphStore: at + "/data", Transport: p})
	if err != nil {
		t.Fatal(errors.Join(err, store.Close()))
	}
	return &owned{Of(c), store}
}

var anyIRI = regexp.MustCompile(`<[^<> ]*>`)

// longIRI is one that Virtuoso would cut.
func longIRI(body string) string {
	for _, iri := range anyIRI.FindAllString(body, -1) {
		if len(iri) > virtuosoLongest+2 {
			return "too long: " + iri
		}
	}
	return ""
}

// The promises of a sink hold in each dialect: a store with its quirk takes whatever the dialect does
// not refuse.
func TestDialects(t *testing.T) {
	for name, p := range map[string]product{
		"virtuoso": {server: "Virtuoso/07.20.3240 (Linux)", refuses: longIRI},
		"rdf4j":    {server: "Jetty(12.0)", path: "/repositories/r"},
	} {
		for shape, layout := range map[string]sink.Layout{"single": {Graph: "http://ex.org/g"}, "per-entity": {PerEntity: true, Template: "{entity}"}} {
			t.Run(name+" "+shape, func(t *testing.T) { sinktest.Run(t, layout, p.open) })
		}
	}
}
