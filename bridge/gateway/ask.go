package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Bounds of the one question before an update.
const (
	mostRows = 1000
	askTime  = 10 * time.Second
)

// ask asks the store for the bindings of an update, before it. More rows than the bound, a blank
// node, or no answer in time make it unknown.
func (g *Gateway) ask(ctx context.Context, t *embedstore.Touched) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	most := int64(mostRows)
	if m := g.Client.MaxRows(); m > 0 {
		most = min(most, m-1)
	}
	err := func() error {
		rows, err := g.Client.SelectAs(ctx, question(t.Bindings, most+1), sparql.ReadSelectJSON)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := int64(0)
		for row, err := range rows.Rows {
			if err != nil {
				return err
			}
			if n++; n > most {
				return fmt.Errorf("it has more than %d bindings", most)
			}
			for i, x := range row {
				subject := i < len(t.Bindings.Subjects)
				switch lexical, _, _ := x.Literal(); {
				case x == "": // not bound
				case subject && x.Kind() == rdfres.KindIRI:
					t.Subjects = append(t.Subjects, x.IRI())
				case subject && x.Kind() == rdfres.KindBlank, !subject && lexical != "false" && lexical != "0":
					return errors.New("it touches blank nodes")
				}
			}
		}
		return nil
	}()
	if err != nil {
		g.Log.Debug("what an update touches is not known", "why", err)
		t.Unknown = true
	}
}

// question asks for the subjects, and whether there are blank nodes among the objects.
func question(b *embedstore.Bindings, limit int64) string {
	var q strings.Builder
	q.WriteString(b.Prologue + "\nSELECT DISTINCT")
	for _, v := range b.Subjects {
		q.WriteString(" ?" + v)
	}
	n := 0
	for _, v := range b.Others {
		if slices.Contains(b.Subjects, v) {
			continue
		}
		name := fmt.Sprintf("rsbridge%d", n)
		for n++; strings.Contains(b.Pattern, name); n++ {
			name = fmt.Sprintf("rsbridge%d", n)
		}
		q.WriteString(" (isBlank(?" + v + ") AS ?" + name + ")")
	}
	if len(b.Subjects)+n == 0 { // the graphs alone are variable
		q.WriteString(" (false AS ?rsbridge)")
	}
	fmt.Fprintf(&q, "%s WHERE %s\nLIMIT %d", b.Dataset, b.Pattern, limit)
	return q.String()
}

// readDocument reads the touched entities from a request of the Graph Store Protocol.
func readDocument(r *http.Request, body []byte) embedstore.Touched {
	unknown := embedstore.Touched{Unknown: true}
	params := r.URL.Query()
	graph := params.Get("graph")
	if len(params) != 1 || params.Has("graph") && (len(params["graph"]) != 1 || graph == "" || graph == "default") || !params.Has("graph") && !params.Has("default") {
		return unknown
	}
	var t embedstore.Touched
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		kind, media, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		f, ok := rdfres.FormatByMediaType(kind)
		if err != nil || !ok || media["charset"] != "" && !strings.EqualFold(media["charset"], "utf-8") {
			return unknown
		}
		t = embedstore.TouchedBy(codec.Read(bytes.NewReader(body), f, rdfres.ReadOptions{}), graph)
	}
	t.Graphs = append(t.Graphs, graph)
	switch r.Method {
	case http.MethodPost:
		return t
	case http.MethodPut, http.MethodDelete:
		at, err := sparql.EscapeIRI(graph)
		if err != nil || graph == "" { // the default graph may be shown as a union
			return unknown
		}
		t.Bindings = &embedstore.Bindings{Subjects: []string{"s"}, Others: []string{"o"}, Pattern: "{ GRAPH " + at + " { ?s ?p ?o } }"}
		return t
	}
	return unknown
}
