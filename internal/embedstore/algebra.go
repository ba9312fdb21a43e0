package embedstore

// The algebra of SPARQL 1.1, section 18.2. Variables are slots of a row; a sub-select has slots of
// its own for all its variables, so a name means nothing beyond its scope.

// pterm is a position of a pattern: a variable, or a term.
type pterm struct {
	slot int    // -1 for a term
	term string // canonical N-Triples; for the default graph ""
}

func (t pterm) isVar() bool { return t.slot >= 0 }

type node interface{ isNode() }

type (
	// joinNode is the conjunction of its parts, with all filters true.
	joinNode struct {
		parts   []node
		filters []expr
	}
	// tripleNode is a triple pattern.
	tripleNode struct{ s, p, o pterm }
	// pathNode is a property path other than a single predicate.
	pathNode struct {
		s, o pterm
		path path
	}
	// optionalNode is LeftJoin(left, right, filters).
	optionalNode struct {
		left, right node
		filters     []expr
	}
	unionNode struct{ parts []node }
	minusNode struct{ left, right node }
	// graphNode is GRAPH.
	graphNode struct {
		g  pterm
		in node
	}
	// bindNode is Extend.
	bindNode struct {
		in   node
		slot int
		e    expr
	}
	valuesNode struct {
		slots []int
		rows  [][]string // "" is UNDEF
	}
	// selectNode is a sub-select; pairs leads from its slots to those outside.
	selectNode struct {
		q     *query
		inner []int
		outer []int
	}
)

func (*joinNode) isNode()     {}
func (*tripleNode) isNode()   {}
func (*pathNode) isNode()     {}
func (*optionalNode) isNode() {}
func (*unionNode) isNode()    {}
func (*minusNode) isNode()    {}
func (*graphNode) isNode()    {}
func (*bindNode) isNode()     {}
func (*valuesNode) isNode()   {}
func (*selectNode) isNode()   {}

// path is a property path.
type path interface{ isPath() }

type (
	linkPath    struct{ iri string } // term
	inversePath struct{ in path }
	seqPath     struct{ a, b path }
	altPath     struct{ a, b path }
	// repeatPath is * (min 0), + (min 1) and ? (min 0, once).
	repeatPath struct {
		in   path
		min  int
		once bool
	}
	// notPath is a negated property set.
	notPath struct{ forward, backward []string }
)

func (*linkPath) isPath()    {}
func (*inversePath) isPath() {}
func (*seqPath) isPath()     {}
func (*altPath) isPath()     {}
func (*repeatPath) isPath()  {}
func (*notPath) isPath()     {}

// expr is an expression.
type expr interface{ isExpr() }

type (
	varExpr   struct{ slot int }
	constExpr struct{ v value }
	// callExpr is an operator or a function by its name in upper case; casts
	// are named by the IRI of the datatype.
	callExpr struct {
		name string
		args []expr
	}
	existsExpr struct {
		not bool
		in  node
	}
	// aggExpr is the result of an aggregate of the query.
	aggExpr struct{ n int }
)

func (*varExpr) isExpr()    {}
func (*constExpr) isExpr()  {}
func (*callExpr) isExpr()   {}
func (*existsExpr) isExpr() {}
func (*aggExpr) isExpr()    {}

// aggregate is COUNT(DISTINCT ?x) and its like.
type aggregate struct {
	name     string
	arg      expr // nil for *
	distinct bool
	sep      string // of GROUP_CONCAT
}

type formKind byte

const (
	formSelect formKind = iota + 1
	formConstruct
	formAsk
	formDescribe
)

// projection is one column of a SELECT.
type projection struct {
	name string
	slot int
	e    expr // nil for a plain variable
}

type orderKey struct {
	e    expr
	desc bool
}

// query is a parsed query or sub-select.
type query struct {
	form     formKind
	where    node
	vars     []projection
	star     bool
	distinct bool
	reduced  bool

	grouped bool
	groupBy []projection // slot -1: the expression has no name
	aggs    []aggregate
	having  []expr
	orderBy []orderKey
	limit   int64 // -1: none
	offset  int64

	values *valuesNode // joined with the groups; nil without them

	construct template
	describe  []pterm
	from      fromClauses

	scope *scope
	slots int    // of the whole query; the topmost only
	base  string // likewise: the base of IRI()
}

// template is that of a CONSTRUCT.
type template struct {
	triples []tripleNode
	blanks  []int // slots of blank nodes in triples
}

// fromClauses are those of a query (FROM), or of an update (USING).
type fromClauses struct {
	given         bool
	graphs, named []string // terms
}

// scope gives the variables of one query their slots.
type scope struct {
	names map[string]int
	order []string
}

// ops of an update request.
type opKind byte

const (
	opInsertData opKind = iota + 1
	opDeleteData
	opModify
	opClear
	opDrop
	opCreate
	opLoad
	opAdd
	opMove
	opCopy
)

type quadPattern struct {
	tripleNode
	g pterm
}

// graphRef names the target of CLEAR and its like.
type graphRef struct {
	kind byte // 'g' one graph, 'd' default, 'n' all named, 'a' all
	term string
}

type operation struct {
	kind    opKind
	silent  bool
	del     []quadPattern
	ins     []quadPattern
	blanks  []int // slots of blank nodes in ins
	where   node
	using   fromClauses
	with    string
	a, b    graphRef
	slots   int
	base    string
	loadIRI string

	from, to int64 // of the group after WHERE, in the text
}
