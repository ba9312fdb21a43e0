package sparqlsink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// facts are the findings of a probe.
type facts struct {
	sparql.Capabilities
	IRIs Rewrites `json:"iris"`
}

// Findings are the facts of a probe in the form for the caller's records.
func Findings(caps sparql.Capabilities, iris Rewrites) *sink.Findings {
	raw, err := json.Marshal(facts{caps, iris})
	if err != nil {
		panic("sparqlsink: facts cannot be written: " + err.Error()) // plain fields only
	}
	return &sink.Findings{NormalForm: caps.NormalForm, Unanswered: caps.Unanswered, Facts: raw}
}

// Learn probes the store.
func (m *Mirror) Learn(ctx context.Context) (*sink.Findings, error) {
	at := sink.Shown(Of(m.Client).Address())
	caps, err := m.Client.Probe(ctx, sparql.ProbeOptions{Write: true, Brief: true})
	if err != nil {
		return nil, fmt.Errorf("probe the mirror %s: %w", at, err)
	}
	if !caps.Writable && m.updates() {
		return nil, unwritable(at, caps.WriteError)
	}
	for _, t := range caps.Unexplained {
		if lexical, lang, datatype := t.O.Literal(); lang == "" && (datatype == "" || datatype == xsdString) && !isASCII(lexical) {
			return nil, fmt.Errorf("the mirror %s does not keep text: letters beyond ASCII of an update came back as others (%s); is there something before it that takes UTF-8 for Latin-1?", at, clip.Middle(string(t.O)))
		}
	}
	m.Caps.Product = caps.Product
	iris, err := m.ProbeIRIs(ctx)
	if err != nil {
		return nil, fmt.Errorf("probe the IRIs of the mirror %s: %w", at, err)
	}
	m.Log.Info("mirror probed", "product", caps.Product, "version", caps.Version, "rules", strings.Join(caps.NormalForm.Rules, ", "), "transactional", caps.Transactional, "iris", iris.String())
	return Findings(caps, iris), nil
}

// unwritable explains a mirror without any write of a probe.
func unwritable(target string, cause error) error {
	var e *sparql.Error
	switch {
	case cause == nil:
		return fmt.Errorf("the mirror %s takes no SPARQL updates: a triple written into a scratch graph did not come back; check its update address and the rights of its user", target)
	case !errors.As(cause, &e):
		return fmt.Errorf("the mirror %s took no SPARQL update when it was probed: %w", target, cause)
	case e.Temporary || e.Status == http.StatusInsufficientStorage || errors.Is(e, context.DeadlineExceeded):
		return fmt.Errorf("the mirror %s takes no SPARQL updates at present: %w; nothing was changed, and the next run tries again", target, e)
	}
	return fmt.Errorf("the mirror %s takes no SPARQL updates: %w", target, e)
}

const xsdString = "http://www.w3.org/2001/XMLSchema#string"

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f })
}

// Take makes findings the ones to work with. It refuses a store with updates into
// another graph.
func (m *Mirror) Take(found *sink.Findings) error {
	var f facts
	if err := json.Unmarshal(found.Facts, &f); err != nil {
		return fmt.Errorf("findings of the probe: %w", err)
	}
	if g := m.Layout.Graph; g != "" && changes(f.IRIs.Update, g) {
		return fmt.Errorf("graph %s: the store %s (%s) changes this IRI in updates and would write into another graph; choose one without dot segments", g, sink.Shown(Of(m.Client).Address()), f.Product)
	}
	m.Caps, m.IRIs, m.Layout.NormalForm = f.Capabilities, f.IRIs, found.NormalForm
	m.speak(dialectOf(m.Client, f.Product))
	m.SetLimit()
	return nil
}

// Named is the store's own name in its last answer.
func (m *Mirror) Named() string { return m.server }
