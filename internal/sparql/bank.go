package sparql

import (
	_ "embed"
	"fmt"
	"strings"

	bank "github.com/knakk/sparql"
)

//go:embed queries.rq
var queries string

var probes = NewBank(queries)

// Bank holds query templates by name: text/template over SPARQL, each after a line "# tag: NAME".
// It is the safe part of knakk/sparql; its Repo would change http.DefaultClient.
type Bank struct{ queries bank.Bank }

// NewBank reads templates.
func NewBank(text string) Bank { return Bank{bank.LoadBank(strings.NewReader(text))} }

// Prepare fills a template. All values in data must be escaped (EscapeIRI, EscapeTerm,
// EscapeString) or patterns of our own.
func (b Bank) Prepare(name string, data any) (string, error) {
	q, err := b.queries.Prepare(name, data)
	if err != nil {
		return "", fmt.Errorf("sparql: query template %q: %w", name, err)
	}
	return q, nil
}
