package embedstore

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/rsbridge/rsbridge/rdfres"
)

// target is what a request of the Graph Store Protocol is about.
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
	case len(graphs) == 0 && !def:
		return target{all: true}, nil
	case len(graphs) == 0:
		return target{}, nil
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

func (s *Store) putData(w *response, r *http.Request, t target) error {
	ct, err := bodyType(r)
	if err != nil {
		return err
	}
	f, ok := rdfres.FormatByMediaType(ct)
	if !ok {
		return refuse(http.StatusUnsupportedMediaType, "Content-Type %q: send one of %s", ct, allFormats())
	}
	base := t.graph
	if base == "" {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		base = scheme + "://" + r.Host + r.URL.EscapedPath()
	}
	o := LoadOptions{Replace: r.Method == http.MethodPut, Base: base, Name: "the body"}
	scope := scopeOne
	if t.all {
		scope = scopeAll
	}
	res, err := s.load(r.Context(), t.graph, f, r.Body, o, scope)
	if err != nil {
		return err
	}
	if res.created && !t.all && t.graph != "" && res.added > 0 {
		w.Header().Set("Location", "?"+url.Values{"graph": {t.graph}}.Encode())
		w.WriteHeader(http.StatusCreated)
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
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
