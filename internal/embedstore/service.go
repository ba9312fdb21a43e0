package embedstore

import (
	"net/http"
	"strconv"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const (
	serviceNS = "http://www.w3.org/ns/sparql-service-description#"
	formatNS  = "http://www.w3.org/ns/formats/"
	voidNS    = "http://rdfs.org/ns/void#"
)

// describedGraphs is how many named graphs a service description lists.
const describedGraphs = 1000

// describeService answers a query address without a query: SPARQL 1.1 Service
// Description.
func (s *Store) describeService(w *response, r *http.Request, endpoint string) error {
	f, ok := negotiate(r.Header.Values("Accept"), serviceOffers)
	if !ok {
		return notAcceptable(serviceOffers)
	}
	ts, err := s.service(endpoint)
	if err != nil {
		return err
	}
	text, err := codec.Encode(rdfres.Format(f), endpoint, ts)
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", rdfres.Format(f).ContentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method == http.MethodHead {
		return nil
	}
	_, err = w.Write(text)
	return err
}

var serviceOffers = []offer{
	{string(rdfres.Turtle), []string{"text/turtle", "application/x-turtle", "text/plain"}},
	{string(rdfres.RDFXML), []string{"application/rdf+xml", "application/xml", "text/xml"}},
	{string(rdfres.JSONLD), []string{"application/ld+json", "application/json"}},
	{string(rdfres.NTriples), []string{"application/n-triples"}},
}

func (s *Store) service(endpoint string) ([]rdfres.Triple, error) {
	var ts []rdfres.Triple
	sd := func(local string) rdfres.Term { return rdfres.NewIRI(serviceNS + local) }
	add := func(subject, p, o rdfres.Term) { ts = append(ts, rdfres.Triple{S: subject, P: p, O: o}) }
	triples := func(subject rdfres.Term, n int64) {
		add(subject, rdfType, sd("Graph"))
		add(subject, rdfres.NewIRI(voidNS+"triples"), rdfres.Term(typed(strconv.FormatInt(n, 10), "integer")))
	}
	me := rdfres.NewIRI(endpoint)
	add(me, rdfType, sd("Service"))
	add(me, sd("endpoint"), me)
	add(me, sd("supportedLanguage"), sd("SPARQL11Query"))
	for _, name := range []string{"SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV", "N-Triples", "Turtle", "RDF_XML", "JSON-LD"} {
		add(me, sd("resultFormat"), rdfres.NewIRI(formatNS+name))
	}
	const dataset, defaultGraph = rdfres.Term("_:dataset"), rdfres.Term("_:default")
	add(me, sd("defaultDataset"), dataset)
	add(dataset, rdfType, sd("Dataset"))
	add(dataset, sd("defaultGraph"), defaultGraph)
	snap, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	n, err := snap.Count(Pattern{})
	if err != nil {
		return nil, err
	}
	triples(defaultGraph, n)
	listed := 0
	terms := newTermReader(snap.v, nil)
	defer terms.close()
	var fault error
	err = graphCounts(snap.v, func(g id, n int64) bool {
		if g == 0 {
			return true
		}
		var name string
		if name, fault = terms.term(g); fault != nil {
			return false
		}
		at, graph := rdfres.Term("_:named"+strconv.Itoa(listed)), rdfres.Term("_:graph"+strconv.Itoa(listed))
		add(dataset, sd("namedGraph"), at)
		add(at, rdfType, sd("NamedGraph"))
		add(at, sd("name"), rdfres.Term(name))
		add(at, sd("graph"), graph)
		triples(graph, n)
		listed++
		return listed < describedGraphs
	})
	if fault != nil {
		return nil, fault
	}
	return ts, err
}
