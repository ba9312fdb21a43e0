package embedstore

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// target is the graph of a request of the Graph Store Protocol.
type target struct {
	graph string // IRI; "" is the default graph
	all   bool   // no parameter: every graph
}

func targetOf(r *http.Request) (target, error) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return target{}, refuse(http.StatusBadRequest, "the address: %w", err)
	}
	graphs, def := params["graph"], params.Has("default")
	switch {
	case strings.HasPrefix(r.URL.Path, "/data/"): // the graph with this address
		if len(graphs) > 0 || def {
			return target{}, refuse(http.StatusBadRequest, "the request names more than one graph: give its own address, or a parameter to /data")
		}
		graphs = []string{endpointOf(r)}
	case len(graphs) == 0:
		return target{all: !def}, nil
	case len(graphs) > 1 || def:
		return target{}, refuse(http.StatusBadRequest, "the request names more than one graph: give either default or one graph=IRI")
	case graphs[0] == "default":
		return target{}, nil
	}
	g := graphs[0]
	if !hasScheme(g) {
		return target{}, refuse(http.StatusBadRequest, "graph=%q is not an absolute IRI", g)
	}
	if err := rdfres.NewIRI(g).Check(); err != nil {
		return target{}, refuse(http.StatusBadRequest, "graph=%q: %w", g, err)
	}
	if err := rdfres.CheckIRI(rdfres.NewIRI(g)); err != nil {
		return target{}, refuse(http.StatusBadRequest, "graph: %w", err)
	}
	return target{graph: g}, nil
}

const dataMethods = "GET, HEAD, PUT, POST, DELETE"

func (s *Store) serveData(w *response, r *http.Request) error {
	t, err := targetOf(r)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.getData(w, r, t)
	case http.MethodPut, http.MethodPost:
		return s.putData(w, r, t)
	case http.MethodDelete:
		return s.deleteData(w, r, t)
	}
	return notAllowed(r, dataMethods)
}

func (s *Store) getData(w *response, r *http.Request, t target) error {
	offers := graphOffers
	if t.all {
		offers = datasetOffers
	}
	f, ok := negotiate(r.Header.Values("Accept"), offers)
	if !ok {
		return notAcceptable(offers)
	}
	snap, err := s.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	n, err := snap.Count(Pattern{G: graphTerm(t.graph), AnyGraph: t.all})
	if err != nil {
		return err
	}
	if t.graph != "" && n == 0 {
		return refuse(http.StatusNotFound, "there is no graph <%s> (a graph without triples is not kept)", t.graph)
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", rdfres.Format(f).ContentType())
	w.Header().Set("X-Triples", strconv.FormatInt(n, 10))
	if r.Method == http.MethodHead {
		return nil
	}
	return snap.dump(r.Context(), w, rdfres.Format(f), DumpOptions{Graph: t.graph, All: t.all})
}

func graphTerm(iri string) rdfres.Term {
	if iri == "" {
		return ""
	}
	return rdfres.NewIRI(iri)
}

// putData stores the document of the body, or all documents of a form. A POST to the
// store itself makes a new graph of triples; a document of quads names its graphs.
func (s *Store) putData(w *response, r *http.Request, t target) error {
	ct, err := bodyType(r)
	if err != nil {
		return err
	}
	form := ct == "multipart/form-data"
	f, ok := rdfres.FormatByMediaType(ct)
	if !ok && !form {
		return refuse(http.StatusUnsupportedMediaType, "Content-Type %q: send one of %s, or several as multipart/form-data", ct, allFormats())
	}
	quads := f == rdfres.NQuads || f == rdfres.TriG || f == rdfres.JSONLD
	switch made := t.all && r.Method == http.MethodPost && !quads; {
	case made:
		t = target{graph: endpointOf(r) + "/" + newUUID()}
	case t.all && form:
		return refuse(http.StatusBadRequest, "a form of documents replaces one graph: give default, or graph=IRI")
	}
	base := t.graph
	if base == "" {
		base = endpointOf(r)
	}
	scope := scopeOne
	if t.all {
		scope = scopeAll
	}
	replace := r.Method == http.MethodPut
	res, err := s.loadAll(r.Context(), t.graph, f, replace, scope, func(ctx context.Context, l *load) error {
		if form {
			return l.readForm(ctx, r, base)
		}
		return l.read(ctx, f, r.Body, LoadOptions{Base: base, Name: "the body"})
	})
	if err != nil {
		return err
	}
	if res.created && !t.all && t.graph != "" && res.added > 0 {
		at := t.graph
		if !strings.HasPrefix(at, endpointOf(r)) {
			at = "?" + url.Values{"graph": {t.graph}}.Encode()
		}
		w.Header().Set("Location", at)
		w.WriteHeader(http.StatusCreated)
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readForm reads the documents of a multipart/form-data body. A label of a blank node
// means nothing beyond its document.
func (l *load) readForm(ctx context.Context, r *http.Request, base string) error {
	parts, err := r.MultipartReader()
	if err != nil {
		return refuse(http.StatusBadRequest, "read the form: %w", err)
	}
	for l.part = 1; ; l.part++ {
		p, err := parts.NextPart()
		if err == io.EOF && l.part > 1 {
			return nil
		}
		if err != nil {
			return bodyError(fmt.Errorf("the form: %w", err))
		}
		ct, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		f, ok := rdfres.FormatByMediaType(ct)
		if !ok && (ct == "" || ct == "application/octet-stream") {
			f, ok = rdfres.FormatBySuffix(p.FileName())
		}
		if !ok {
			return refuse(http.StatusUnsupportedMediaType, "part %d of the form, %q of type %q: send each as one of %s", l.part, p.FormName(), ct, allFormats())
		}
		if err := l.read(ctx, f, p, LoadOptions{Base: base, Name: fmt.Sprintf("part %d of the form", l.part)}); err != nil {
			return err
		}
	}
}

func (s *Store) deleteData(w *response, r *http.Request, t target) error {
	op := "CLEAR DEFAULT"
	switch {
	case t.all:
		op = "CLEAR ALL"
	case t.graph != "":
		snap, err := s.Snapshot()
		if err != nil {
			return err
		}
		n, err := snap.Count(Pattern{G: graphTerm(t.graph)})
		snap.Close()
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(http.StatusNotFound, "there is no graph <%s>", t.graph)
		}
		op = "CLEAR GRAPH " + string(graphTerm(t.graph))
	}
	if err := s.Update(r.Context(), op); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
