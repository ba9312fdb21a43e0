package bridge_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestKnownTriples: an RDF4J that passes questions on to a store which ends one branch
// early and gives the next is found out by what the last scan found.
func TestKnownTriples(t *testing.T) {
	var ts []rdfres.Triple
	for i := range 60 {
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%02d", i/2)), P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	ts = rdfres.SortUnique(ts)
	cut := 0
	st := sparqltest.New(ts...)
	st.Table = true
	marked := regexp.MustCompile("VALUES [?]s { (<[^>]*>) } } }$")
	st.Rewrite = func(_, query string, content []byte) []byte {
		m := marked.FindStringSubmatch(query)
		if m == nil {
			return content
		}
		table := sparqltest.NewTable("s", "p", "o")
		for _, t := range ts[:len(ts)-cut] {
			table.Row(t.S, t.P, t.O)
		}
		table.Row(rdfres.Term(m[1]), "", "")
		return table.End()
	}
	server := httptest.NewServer(st)
	defer server.Close()
	cfg := overEndpoint(t, server.URL+"/query")
	set := bridge.NewSet()
	set.Store, set.Schedule, set.Strategy = "source", "", "select-binary"
	cfg.Sets["data"] = set
	b := open(t, cfg)
	if rep := do[bridge.ScanReport](t, b, "scan", "data", nil); rep.Created != 30 {
		t.Fatalf("%+v", rep)
	}
	cut = 7
	var rep bridge.ScanReport
	if err := b.Do(context.WithoutCancel(t.Context()), "scan", "data", nil, &rep); err == nil || !strings.Contains(err.Error(), "own count") {
		t.Errorf("a part was taken for the whole: %+v, %v", rep, err)
	}
}

// overEndpoint is a configuration with a store, "source", that is only read, and no set.
func overEndpoint(t *testing.T, query string) *bridge.Config {
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(t.TempDir(), "state")
	cfg.Public = bridge.Public{BaseURL: "http://bridge.example"}
	cfg.Admin.Listen = ""
	store := bridge.NewStore()
	store.Query = query
	cfg.Stores["source"] = store
	return cfg
}

// TestCountsThatFail: a store that gives no counts for hints is read whole all the same.
func TestCountsThatFail(t *testing.T) {
	st := sparqltest.New(rdfres.Triple{S: "<http://example.org/e>", P: "<http://example.org/p>", O: `"1"`})
	st.Fault = func(_, query string) *sparqltest.Fault {
		if strings.Contains(query, "SUM") {
			return &sparqltest.Fault{Status: 400, Body: "too long"}
		}
		return nil
	}
	server := httptest.NewServer(st)
	defer server.Close()
	cfg := overEndpoint(t, server.URL+"/query")
	set := bridge.NewSet()
	set.Store, set.Schedule, set.Hints.Counts, set.Hints.Full = "source", "", []string{"class"}, ""
	cfg.Sets["data"] = set
	b := open(t, cfg)
	if rep := do[bridge.ScanReport](t, b, "scan", "data", nil); rep.Created != 1 {
		t.Errorf("%+v", rep)
	}
	var rep bridge.ScanReport
	if err := b.Do(t.Context(), "scan", "data", bridge.ScanArgs{Hints: true}, &rep); err == nil || !strings.Contains(err.Error(), "count by class") {
		t.Errorf("hints without counts: %+v, %v", rep, err)
	}
}
