package sparqltest

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

type solution map[string]rdfres.Term

// parser evaluates a query while it reads it, a filter once for each row. One goroutine has it: the race
// detector leaves out what is called most.
type parser struct {
	s    *Store
	toks []string
	at   int
	all  string
}

func (s *Store) parse(q string) (*parser, error) {
	p := &parser{s: s, all: q}
	for q = skip(q); q != ""; q = skip(q) {
		n := token(q)
		if n == 0 {
			return nil, fmt.Errorf("cannot read the query at %.60q", q)
		}
		p.toks = append(p.toks, q[:n])
		q = q[n:]
	}
	return p, nil
}

// skip goes over white space and comments.
func skip(q string) string {
	for {
		q = strings.TrimLeft(q, " \t\r\n\f")
		if !strings.HasPrefix(q, "#") {
			return q
		}
		_, q, _ = strings.Cut(q, "\n")
	}
}

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	word    = letters + digits + "_"
)

// token is the length of the token at the beginning of q, 0 if there is none.
func token(q string) int {
	run := func(from int, of string) int { // the end of those characters
		return len(q) - len(strings.TrimLeft(q[from:], of))
	}
	pair := len(q) > 1 && slices.Contains([]string{"&&", "||", "!=", "<=", ">="}, q[:2])
	switch c := q[0]; {
	case c == '<':
		if end := strings.IndexAny(q[1:], "<>\"{}|^`\\ \t\r\n\f"); end >= 0 && q[1+end] == '>' {
			return end + 2
		}
		if pair {
			return 2
		}
		return 1
	case pair:
		return 2
	case c == '"':
		return literal(q)
	case c == '?' || c == '$':
		if n := run(1, word); n > 1 {
			return n
		}
	case strings.HasPrefix(q, "_:"):
		if n := run(2, word+".-"); n > 2 {
			return n
		}
	case strings.IndexByte(letters, c) >= 0:
		n := run(1, word)
		if strings.HasPrefix(q[n:], ":") {
			n = run(n+1, word)
		}
		return n
	case strings.IndexByte(digits, c) >= 0:
		return run(1, digits)
	case strings.IndexByte("{}().,;*=!>", c) >= 0:
		return 1
	}
	return 0
}

// literal is the length of the literal at the beginning of q, 0 if it has no end.
func literal(q string) int {
	n := 1
	for n < len(q) && q[n] != '"' {
		if q[n] == '\\' {
			n++
		}
		n++
	}
	if n++; n > len(q) {
		return 0
	}
	switch rest := q[n:]; {
	case strings.HasPrefix(rest, "@"):
		if lang := len(rest) - len(strings.TrimLeft(rest[1:], letters+digits+"-")); lang > 1 {
			n += lang
		}
	case strings.HasPrefix(rest, "^^<"):
		if end := strings.IndexByte(rest, '>'); end >= 0 {
			n += end + 1
		}
	}
	return n
}

//go:norace
func (p *parser) peek() string {
	if p.at < len(p.toks) {
		return p.toks[p.at]
	}
	return ""
}

//go:norace
func (p *parser) next() string {
	t := p.peek()
	p.at++
	return t
}

//go:norace
func (p *parser) take(word string) bool {
	if strings.EqualFold(p.peek(), word) {
		p.at++
		return true
	}
	return false
}

//go:norace
func (p *parser) must(words ...string) {
	for _, w := range words {
		if !p.take(w) {
			panic(fmt.Errorf("unexpected %q, wanted %q", p.peek(), w))
		}
	}
}

// query answers a query.
func (s *Store) query(out *bytes.Buffer, h http.Header, text, accept string) (mediaType string, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("query: %v in %.300s", e, text)
		}
	}()
	p, err := s.parse(text)
	if err != nil {
		return "", err
	}
	for {
		if p.take("PREFIX") {
			name, iri := p.next(), p.next()
			for i, t := range p.toks {
				if local, ok := strings.CutPrefix(t, name); ok && i >= p.at {
					p.toks[i] = iri[:len(iri)-1] + local + ">"
				}
			}
			continue
		}
		if !p.take("BASE") {
			break
		}
		p.next()
	}
	switch {
	case p.take("ASK"):
		rows := p.group("", []solution{{}})
		fmt.Fprintf(out, `{"head":{},"boolean":%v}`, len(rows) > 0)
		return "application/sparql-results+json", nil
	case strings.EqualFold(p.peek(), "SELECT"):
		vars, rows := p.selectQuery("", []solution{{}})
		label := s.labels()
		if s.RowLimit > 0 && len(rows) > s.RowLimit {
			rows = rows[:s.RowLimit]
			if s.TellLimit {
				h.Set("X-SPARQL-MaxRows", strconv.Itoa(s.RowLimit))
			}
		}
		table := make([][]rdfres.Term, len(rows))
		for i, r := range rows {
			for _, v := range vars {
				table[i] = append(table[i], label(r[v]))
			}
		}
		if accept == TableType && s.Table {
			w := NewTable(vars...)
			for _, row := range table {
				w.Row(row...)
			}
			out.Write(w.End())
			return TableType, nil
		}
		if strings.HasPrefix(accept, "text/tab-separated-values") && !s.NoTSV {
			if s.VirtuosoTSV {
				fmt.Fprintf(out, "%q\n", vars)
			} else {
				writeTSV(out, vars, table)
			}
			return "text/tab-separated-values; charset=utf-8", nil
		}
		if strings.HasPrefix(accept, "application/sparql-results+xml") {
			writeXML(out, vars, table)
			return "application/sparql-results+xml", nil
		}
		if !strings.Contains(accept, "json") {
			return "", fmt.Errorf("no format of %s", accept)
		}
		return "application/sparql-results+json", writeJSON(out, vars, table)
	case p.take("CONSTRUCT"):
		if s.NoConstruct {
			return "", fmt.Errorf("no CONSTRUCT here")
		}
		p.must("{", "?s", "?p", "?o", "}", "WHERE")
		rows := p.modifiers(p.group("", []solution{{}}))
		var ts []rdfres.Triple
		for _, r := range rows {
			ts = append(ts, rdfres.Triple{S: r["s"], P: r["p"], O: r["o"]})
		}
		ts = rdfres.SortUnique(ts)
		s.shuffle(len(ts), func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
		label := s.labels()
		for _, t := range s.limit(ts) {
			t.S, t.O = label(t.S), label(t.O)
			out.Write(t.AppendLine(nil))
		}
		return "application/n-triples", nil
	}
	return "", fmt.Errorf("unknown query %.60q", text)
}

// selectQuery evaluates a SELECT, also as a subquery.
func (p *parser) selectQuery(graph string, in []solution) (vars []string, rows []solution) {
	p.must("SELECT")
	distinct := p.take("DISTINCT")
	countOf, countAs := "", ""
	for !strings.EqualFold(p.peek(), "WHERE") && !strings.EqualFold(p.peek(), "FROM") && p.peek() != "{" {
		switch {
		case p.take("("):
			p.must("COUNT", "(")
			if p.take("DISTINCT") {
				countOf = "distinct "
			}
			countOf += p.next()
			p.must(")", "AS")
			countAs = p.next()[1:]
			p.must(")")
		case p.take("*"):
		default:
			vars = append(vars, p.next()[1:])
		}
	}
	from := []string{}
	for p.take("FROM") {
		if p.take("NAMED") {
			p.next() // the graphs of a variable are all: good enough
			continue
		}
		from = append(from, rdfres.Term(p.next()).IRI())
	}
	p.take("WHERE")
	if len(from) > 0 {
		at := p.at
		seen := map[string]bool{}
		for _, g := range from { // merged graphs: good enough for what one graph answers
			p.at = at
			for _, r := range p.group(g, clones(in)) {
				if k := fmt.Sprint(r); !seen[k] {
					seen[k] = true
					rows = append(rows, r)
				}
			}
		}
	} else {
		rows = p.group(graph, in)
	}
	p.s.shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	if p.take("GROUP") {
		p.must("BY")
		v := p.next()[1:]
		n := map[rdfres.Term]int{}
		for _, r := range rows {
			n[r[v]]++
		}
		out := []solution{}
		for key, n := range n {
			out = append(out, solution{v: key, countAs: number(n)})
		}
		return []string{v, countAs}, out
	}
	if countAs != "" {
		n := len(rows)
		if v, ok := strings.CutPrefix(countOf, "distinct "); ok {
			set := map[rdfres.Term]bool{}
			for _, r := range rows {
				set[r[v[1:]]] = true
			}
			n = len(set)
		}
		return []string{countAs}, []solution{{countAs: number(n)}}
	}
	if distinct {
		seen := map[string]bool{}
		var kept []solution
		for _, r := range rows {
			key := ""
			for _, v := range vars {
				key += string(r[v]) + "\x00"
			}
			if len(vars) == 0 { // DISTINCT *
				key = fmt.Sprint(r)
			}
			if !seen[key] {
				seen[key] = true
				kept = append(kept, r)
			}
		}
		rows = kept
	}
	return vars, p.modifiers(rows)
}

func number(n int) rdfres.Term {
	return rdfres.NewLiteral(strconv.Itoa(n), "", "http://www.w3.org/2001/XMLSchema#integer")
}

func clones(in []solution) []solution {
	out := make([]solution, len(in))
	for i, s := range in {
		out[i] = maps.Clone(s)
	}
	return out
}

func (p *parser) modifiers(rows []solution) []solution {
	for {
		switch {
		case p.take("ORDER"):
			p.must("BY", "STR", "(")
			v := p.next()[1:]
			p.must(")")
			sort.SliceStable(rows, func(i, j int) bool { return plain(rows[i][v]) < plain(rows[j][v]) })
		case p.take("OFFSET"): // before LIMIT
			n, _ := strconv.Atoi(p.next())
			rows = rows[min(n, len(rows)):]
		case p.take("LIMIT"):
			n, _ := strconv.Atoi(p.next())
			rows = rows[:min(n, len(rows))]
		default:
			return rows
		}
	}
}

// plain is STR() of a term.
func plain(t rdfres.Term) string {
	switch t.Kind() {
	case rdfres.KindIRI:
		return t.IRI()
	case rdfres.KindLiteral:
		lexical, _, _ := t.Literal()
		return lexical
	}
	return string(t)
}

// group evaluates { ... } for each of the solutions so far.
func (p *parser) group(graph string, in []solution) []solution {
	p.must("{")
	if strings.EqualFold(p.peek(), "SELECT") {
		_, rows := p.selectQuery(graph, []solution{{}})
		p.must("}")
		return join(in, rows)
	}
	rows := in
	var filters []int
	for !p.take("}") {
		switch {
		case p.at >= len(p.toks):
			panic("no closing brace")
		case p.take("."):
		case p.take("VALUES"):
			v := p.next()[1:]
			p.must("{")
			var values []solution
			for !p.take("}") {
				values = append(values, solution{v: rdfres.Term(p.next())})
			}
			if p.s.TooMany > 0 && len(values) > p.s.TooMany {
				panic("Too many arguments")
			}
			rows = join(rows, values)
		case p.take("FILTER"):
			filters = append(filters, p.at)
			p.skipFilter()
		case p.take("GRAPH"):
			g := p.next()
			at := p.at
			if g[0] == '<' {
				rows = p.group(rdfres.Term(g).IRI(), rows)
				break
			}
			var out []solution
			for _, name := range p.names() {
				var bound []solution
				for _, r := range rows {
					if b := r[g[1:]]; b == "" || b == rdfres.NewIRI(name) {
						c := maps.Clone(r)
						c[g[1:]] = rdfres.NewIRI(name)
						bound = append(bound, c)
					}
				}
				p.at = at
				out = append(out, p.group(name, bound)...)
			}
			if p.at == at {
				p.group("\x00none", nil)
			}
			rows = out
		case p.peek() == "{":
			start := rows
			rows = p.group(graph, clones(start))
			for p.take("UNION") {
				rows = append(rows, p.group(graph, clones(start))...)
			}
		default:
			rows = p.match(graph, rows, p.next(), p.next(), p.next())
		}
	}
	end := p.at
	for _, f := range filters {
		var kept []solution
		for _, r := range rows {
			p.at = f
			if p.filter(graph, r) {
				kept = append(kept, r)
			}
		}
		rows = kept
	}
	p.at = end
	return rows
}

func (p *parser) names() []string {
	var out []string
	for g := range p.s.in.graphs {
		if g != "" {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out
}

func join(a, b []solution) []solution {
	var out []solution
	for _, x := range a {
	next:
		for _, y := range b {
			for k, v := range y {
				if x[k] != "" && x[k] != v {
					continue next
				}
			}
			m := maps.Clone(x)
			maps.Copy(m, y)
			out = append(out, m)
		}
	}
	return out
}

// match joins with a triple pattern.
//
//go:norace
func (p *parser) match(graph string, rows []solution, pattern ...string) []solution {
	ix := p.s.at(graph)
	var out []solution
	for _, r := range rows {
		var want [3]rdfres.Term
		for i, x := range pattern {
			switch {
			case x[0] == '?':
				want[i] = r[x[1:]]
			case x == "a":
				want[i] = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
			default:
				want[i] = rdfres.Term(x)
			}
		}
		list := ix.all
		if want[0] != "" {
			list = ix.byS[want[0]]
		} else if want[2] != "" {
			list = ix.byO[want[2]]
		}
	next:
		for _, t := range list {
			got := [3]rdfres.Term{t.S, t.P, t.O}
			for i := range pattern {
				if want[i] != "" && want[i] != got[i] {
					continue next
				}
			}
			m := maps.Clone(r)
			for i, x := range pattern {
				if x[0] == '?' {
					if b := m[x[1:]]; b != "" && b != got[i] {
						continue next
					}
					m[x[1:]] = got[i]
				}
			}
			out = append(out, m)
			if !slices.Contains(want[:], "") {
				break // nothing to bind: its doubles would only multiply
			}
		}
	}
	return out
}

func (p *parser) skipFilter() {
	_ = p.take("NOT") && p.take("EXISTS") || p.take("EXISTS")
	depth := 0
	for {
		switch t := p.next(); t {
		case "(", "{":
			depth++
		case ")", "}":
			if depth--; depth == 0 {
				return
			}
		case "":
			panic("filter without its end")
		}
	}
}

//go:norace
func (p *parser) filter(graph string, r solution) bool {
	if not := p.take("NOT"); not || p.take("EXISTS") {
		if not {
			p.must("EXISTS")
		}
		return (len(p.group("", []solution{maps.Clone(r)})) == 0) == not
	}
	p.must("(")
	v := p.or(r)
	p.must(")")
	return v == "true"
}

func truth(b bool) string { return strconv.FormatBool(b) }

//go:norace
func (p *parser) or(r solution) string {
	v := p.and(r)
	for p.take("||") {
		w := p.and(r)
		v = truth(v == "true" || w == "true")
	}
	return v
}

//go:norace
func (p *parser) and(r solution) string {
	v := p.compare(r)
	for p.take("&&") {
		w := p.compare(r)
		v = truth(v == "true" && w == "true")
	}
	return v
}

//go:norace
func (p *parser) compare(r solution) string {
	v := p.primary(r)
	switch {
	case p.take("="):
		return truth(v == p.primary(r))
	case p.take("!="):
		return truth(v != p.primary(r))
	case p.take(">"):
		return truth(v > p.primary(r))
	case p.take("<"):
		return truth(v < p.primary(r))
	}
	return v
}

//go:norace
func (p *parser) primary(r solution) string {
	t := p.next()
	switch {
	case t == "!":
		return truth(p.primary(r) != "true")
	case t == "(":
		v := p.or(r)
		p.must(")")
		return v
	case t[0] == '?':
		return string(r[t[1:]])
	case t[0] == '"':
		return plain(rdfres.NewLiteral(unquote(t), "", ""))
	case t[0] == '<':
		return t
	}
	p.must("(")
	args := []string{p.or(r)}
	for p.take(",") {
		args = append(args, p.or(r))
	}
	p.must(")")
	a, b := args[0], args[min(1, len(args)-1)]
	switch strings.ToLower(t) {
	case "isblank":
		return truth(rdfres.Term(a).Kind() == rdfres.KindBlank)
	case "isiri":
		return truth(rdfres.Term(a).Kind() == rdfres.KindIRI)
	case "isliteral":
		return truth(rdfres.Term(a).Kind() == rdfres.KindLiteral)
	case "str":
		return plain(rdfres.Term(a))
	case "lang":
		_, lang, _ := rdfres.Term(a).Literal()
		return lang
	case "datatype":
		_, _, datatype := rdfres.Term(a).Literal()
		return "<" + datatype + ">"
	case "strstarts":
		return truth(strings.HasPrefix(a, b))
	case "contains":
		return truth(strings.Contains(a, b))
	case "md5":
		sum := md5.Sum([]byte(a))
		return hex.EncodeToString(sum[:])
	case "concat":
		return strings.Join(args, "")
	case "if":
		if a == "true" {
			return b
		}
		return args[2]
	}
	panic("unknown function " + t)
}

func unquote(t string) string {
	end := strings.LastIndexByte(t, '"')
	lexical, _, _ := rdfres.Term(t[:end+1]).Literal()
	return lexical
}

func writeJSON(out *bytes.Buffer, vars []string, rows [][]rdfres.Term) error {
	bindings := make([]map[string]map[string]string, 0, len(rows))
	for _, row := range rows {
		b := map[string]map[string]string{}
		for i, t := range row {
			switch t.Kind() {
			case rdfres.KindIRI:
				b[vars[i]] = map[string]string{"type": "uri", "value": t.IRI()}
			case rdfres.KindBlank:
				b[vars[i]] = map[string]string{"type": "bnode", "value": t.Label()}
			case rdfres.KindLiteral:
				lexical, lang, datatype := t.Literal()
				b[vars[i]] = map[string]string{"type": "literal", "value": lexical}
				if lang != "" {
					b[vars[i]]["xml:lang"] = lang
				} else if !strings.HasSuffix(datatype, "#string") {
					b[vars[i]]["datatype"] = datatype
				}
			}
		}
		bindings = append(bindings, b)
	}
	return json.NewEncoder(out).Encode(map[string]any{"head": map[string]any{"vars": vars}, "results": map[string]any{"bindings": bindings}})
}

func writeXML(out *bytes.Buffer, vars []string, rows [][]rdfres.Term) {
	text := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // it does not fail
		return b.String()
	}
	out.WriteString(`<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>`)
	for _, v := range vars {
		fmt.Fprintf(out, `<variable name="%s"/>`, v)
	}
	out.WriteString("</head><results>")
	for _, row := range rows {
		out.WriteString("<result>")
		for i, t := range row {
			if t == "" {
				continue
			}
			fmt.Fprintf(out, `<binding name="%s">`, vars[i])
			switch t.Kind() {
			case rdfres.KindIRI:
				fmt.Fprintf(out, "<uri>%s</uri>", text(t.IRI()))
			case rdfres.KindBlank:
				fmt.Fprintf(out, "<bnode>%s</bnode>", text(t.Label()))
			default:
				lexical, lang, datatype := t.Literal()
				fmt.Fprintf(out, `<literal xml:lang="%s" datatype="%s">%s</literal>`, text(lang), text(datatype), text(lexical))
			}
			out.WriteString("</binding>")
		}
		out.WriteString("</result>")
	}
	out.WriteString("</results></sparql>")
}

// update runs INSERT DATA, DELETE DATA, DROP, CREATE and LOAD (which fails).
func (s *Store) update(text string) (err error) {
	before := map[string]map[rdfres.Triple]bool{}
	for g, ts := range s.in.graphs {
		before[g] = maps.Clone(ts)
	}
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("update: %v in %.300s", e, text)
		}
		if err != nil && !s.NotAtomic {
			s.in.graphs = before
		}
		clear(s.in.index)
	}()
	p, err := s.parse(text)
	if err != nil {
		return err
	}
	for p.at < len(p.toks) {
		switch {
		case p.take(";"):
		case p.take("INSERT"), p.take("DELETE"):
			insert := strings.EqualFold(p.toks[p.at-1], "INSERT")
			p.must("DATA", "{")
			for !p.take("}") {
				graph := ""
				inner := p.take("GRAPH")
				if inner {
					graph = rdfres.Term(p.next()).IRI()
					p.must("{")
				}
				for p.peek() != "}" && !strings.EqualFold(p.peek(), "GRAPH") {
					t := rdfres.Triple{S: s.constant(p.next()), P: s.constant(p.next()), O: s.constant(p.next())}
					p.take(".")
					if insert {
						s.add(graph, []rdfres.Triple{t})
					} else {
						delete(s.in.graphs[graph], t)
					}
				}
				if inner {
					p.must("}")
				}
			}
		case p.take("DROP"):
			p.take("SILENT")
			p.must("GRAPH")
			delete(s.in.graphs, rdfres.Term(p.next()).IRI())
		case p.take("CREATE"):
			p.must("GRAPH")
			if g := rdfres.Term(p.next()).IRI(); len(s.in.graphs[g]) > 0 {
				return fmt.Errorf("graph %s exists", g)
			}
		default:
			return fmt.Errorf("cannot do %q", p.peek())
		}
	}
	return nil
}

func (s *Store) constant(t string) rdfres.Term {
	got, err := rdfres.ParseTerm([]byte(t))
	if err != nil {
		panic(err)
	}
	return got
}
