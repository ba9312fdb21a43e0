package main

import (
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// proposal is what init has found.
type proposal struct {
	initArgs
	public, admin string   // addresses of the listeners
	notes         []string // of the store to expose, in comments
	graphStore    string
	graphs        string // lines of YAML
	part          sparql.Part
	survey        sparql.Survey
	sets          []string // Capability Lists of the source
	mirror        []string // lines of the store of the mirror
	mirrorGraph   bool     // its default graph holds something
}

// text is the configuration. YAML reads the JSON-like strings of %q.
func (p *proposal) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# rsbridge configuration. All keys and their defaults: docs/reference/configuration.md
state: ./state                     # log, representations, cursors, documents
public: {listen: %s}   # the documents; base_url: if others see another address
admin: {listen: %s}    # API and dashboard; off loopback a token_file is needed

stores:
`, p.public, p.admin)
	publishes := p.endpoint != "" || p.dumps != "" || p.source == ""
	switch {
	case p.endpoint != "":
		for _, n := range p.notes {
			b.WriteString("  " + n + "\n")
		}
		fmt.Fprintf(&b, "  origin:\n    query: %q\n", p.endpoint)
		if p.graphStore != "" {
			fmt.Fprintf(&b, "    graph_store: %q\n", p.graphStore)
		}
		lines := credentials(p.from.username, besideConfig(p.out, p.from.passwordFile), p.from.passwordFile)
		if p.from.password != "" {
			lines = append(lines, fmt.Sprintf("password: %q   # better: password_file", p.from.password))
		}
		for _, line := range lines {
			b.WriteString("    " + line + "\n")
		}
		if len(lines) == 0 {
			b.WriteString("    # username: and password_file: if it asks for them\n")
		}
	case publishes && p.dumps == "":
		fmt.Fprintf(&b, "  origin: {embedded: ./origin}   # load it: rsbridge store load ./origin FILE, or PUT to http://%s/stores/origin/data?default\n", p.admin)
	}
	if len(p.mirror) > 0 {
		comment := ""
		if strings.HasPrefix(p.into, "embedded:") {
			comment = "   # SPARQL at http://" + p.admin + "/stores/mirror/query"
		}
		fmt.Fprintf(&b, "  mirror: {%s}%s\n", strings.Join(p.mirror, ", "), comment)
	}
	text := strings.TrimSuffix(b.String(), "\nstores:\n")
	b.Reset()
	b.WriteString(text)
	if publishes {
		p.writeSet(&b)
	}
	if len(p.mirror) > 0 {
		p.writeDestination(&b)
	}
	return b.String()
}

func (p *proposal) writeSet(b *strings.Builder) {
	fmt.Fprintf(b, "\nsets:\n  data:                            # published below http://%s/data/\n", p.public)
	if p.endpoint != "" {
		b.WriteString("    # " + said(p.survey) + "\n")
	}
	if p.dumps != "" {
		fmt.Fprintf(b, "    dumps: [%q]   # the newest complete file is the state\n", p.dumps)
	} else {
		b.WriteString("    store: origin\n")
	}
	b.WriteString("    " + p.graphs + "\n    # select: {classes: [], prefixes: []}   # default: every subject that is an IRI\n")
	if p.survey.Prefix != "" {
		fmt.Fprintf(b, "    prefix: %q  # removed from entity IRIs to make readable addresses\n", p.survey.Prefix)
	} else {
		b.WriteString("    # prefix: http://example.org/  # removed from entity IRIs to make readable addresses\n")
	}
	b.WriteString("    schedule: \"@every 5m\"           # the first scan begins when the daemon starts\n")
}

// said tells what was found, in a line.
func said(s sparql.Survey) string {
	text := "Its entities were not counted in time"
	if s.Entities >= 0 {
		text = fmt.Sprintf("Entities: %d", s.Entities)
	}
	for i, c := range s.Classes {
		text += []string{". Largest classes: ", ", "}[min(i, 1)] + fmt.Sprintf("%s (%d)", c.Class, c.Entities)
	}
	return oneLine(text)
}

func (p *proposal) writeDestination(b *strings.Builder) {
	source, set := p.source, "# set: NAME                    # when the source has several"
	switch {
	case source == "":
		source, set = "http://"+p.public, "set: data"
	case len(p.sets) > 1:
		set = fmt.Sprintf("set: %q   # one of %d; another: %s", p.sets[0], len(p.sets), p.sets[1])
	}
	fmt.Fprintf(b, "\ndestinations:\n  mirror:\n    source: %q\n    %s\n    store: mirror\n", source, set)
	if p.mirrorGraph {
		b.WriteString("    graph_iri: \"urn:mirror:data\"   # its default graph holds something else\n")
	}
	b.WriteString("    schedule: \"@every 1m\"\n    audit: \"@daily\"\n")
}
