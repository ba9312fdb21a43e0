package teststores

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// byPredicate reads what a pattern of ?s, ?p and ?o gives in Virtuoso, one
// predicate at a time, so that no answer meets the row limit, as N-Triples. It
// fails the test where one does.
func (s Server) byPredicate(t testing.TB, pattern string) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, p := range s.rows(t, "SELECT DISTINCT ?p WHERE { "+pattern+"}") {
		rows := s.rows(t, "SELECT DISTINCT ?s ?o WHERE { "+strings.ReplaceAll(pattern, "?p", "<"+p["p"].Value+">")+"}")
		if len(rows) >= 10000 {
			t.Fatalf("%d rows of <%s> are at Virtuoso's limit: the test needs another way of reading", len(rows), p["p"].Value)
		}
		for _, r := range rows {
			fmt.Fprintf(&out, "%s <%s> %s .\n", r["s"].nt(), p["p"].Value, r["o"].nt())
		}
	}
	return out.Bytes()
}

type resultTerm struct {
	Type, Value, Datatype string
	Lang                  string `json:"xml:lang"`
}

func (v resultTerm) nt() string {
	switch v.Type {
	case "uri":
		return "<" + v.Value + ">"
	case "bnode":
		return "_:" + strings.TrimPrefix(v.Value, "nodeID://")
	}
	if v.Datatype == "http://www.w3.org/2001/XMLSchema#boolean" { // 1 in JSON, true in N-Triples
		v.Value = strings.NewReplacer("1", "true", "0", "false").Replace(v.Value)
	}
	escaped := `"` + strings.NewReplacer("\\", "\\\\", `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(v.Value) + `"`
	switch {
	case v.Lang != "":
		return escaped + "@" + v.Lang
	case v.Datatype != "":
		return escaped + "^^<" + v.Datatype + ">"
	}
	return escaped
}

func (s Server) rows(t testing.TB, query string) []map[string]resultTerm {
	t.Helper()
	raw := s.do(t, http.MethodGet, s.own().Query+"?query="+url.QueryEscape(query), "", nil)
	var doc struct {
		Results struct {
			Bindings []map[string]resultTerm `json:"bindings"`
		} `json:"results"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatalf("%s: %v: %.300s", query, err, raw)
	}
	return doc.Results.Bindings
}
