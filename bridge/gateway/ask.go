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
// node, new ones that nothing would lead to, or no answer in time make it unknown.
func (g *Gateway) ask(ctx context.Context, t *embedstore.Touched) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	most := int64(mostRows)
	if m := g.Client.MaxRows(); m > 0 {
		most = min(most, m-1)
	}
	err := func() error {
		text, columns := question(t.Bindings, most+1)
		rows, err := g.Client.SelectAs(ctx, text, sparql.ReadSelectJSON)
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
				if i < len(columns) && !columns[i].read(t, x) {
					return errors.New(columns[i].wrong)
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

// column is a column of the answer.
type column struct {
	read  func(*embedstore.Touched, rdfres.Term) bool // false: the update is unknown
	wrong string
}

const (
	touchesBlank = "it touches blank nodes"
	leadsNowhere = "nothing leads to its new blank nodes"
)

func isTrue(x rdfres.Term) bool {
	lexical, _, _ := x.Literal()
	return lexical == "true" || lexical == "1"
}

func isFalse(x rdfres.Term) bool {
	lexical, _, _ := x.Literal()
	return x == "" || lexical == "false" || lexical == "0"
}

// question asks for the subjects, whether there are blank nodes among the objects, and whether
// what leads to new blank nodes does so.
func question(b *embedstore.Bindings, limit int64) (text string, columns []column) {
	var q strings.Builder
	q.WriteString(b.Prologue + "\nSELECT DISTINCT")
	for _, v := range b.Subjects {
		q.WriteString(" ?" + v)
		c := column{wrong: touchesBlank, read: func(t *embedstore.Touched, x rdfres.Term) bool {
			if x.Kind() == rdfres.KindIRI {
				t.Subjects = append(t.Subjects, x.IRI())
			}
			return x == "" || x.Kind() != rdfres.KindBlank
		}}
		columns = append(columns, c)
	}
	n := 0
	test := func(function, v string, c column) {
		name := fmt.Sprintf("rsbridge%d", n)
		for n++; strings.Contains(b.Pattern, name); n++ {
			name = fmt.Sprintf("rsbridge%d", n)
		}
		fmt.Fprintf(&q, " (%s(?%s) AS ?%s)", function, v, name)
		columns = append(columns, c)
	}
	for _, v := range b.Others {
		if !slices.Contains(b.Subjects, v) {
			test("isBlank", v, column{wrong: touchesBlank, read: func(_ *embedstore.Touched, x rdfres.Term) bool { return isFalse(x) }})
		}
	}
	for _, v := range b.Leading { // without a binding there is no answer
		test("isIRI", v, column{wrong: leadsNowhere, read: func(_ *embedstore.Touched, x rdfres.Term) bool { return isTrue(x) }})
	}
	if len(columns) == 0 { // the graphs alone are variable
		q.WriteString(" (false AS ?rsbridge)")
	}
	fmt.Fprintf(&q, "%s WHERE %s\nLIMIT %d", b.Dataset, b.Pattern, limit)
	return q.String(), columns
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
