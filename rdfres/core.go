package rdfres

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
)

// core cuts off the branches of a component that is no tree, and puts the remaining nodes in
// canonical order.
func (n *naming) core(limit int) ([]int32, error) {
	nodes := n.cutBranches()
	p := newPartition(n, nodes)
	p.refine()
	for p.splitTwins() {
		p.refine()
	}
	if p.cells == len(nodes) {
		return p.elems, nil
	}
	return n.orderTies(p, limit)
}

// cutBranches hashes and cuts off, round by round, the nodes with one remaining edge, until none is
// left. n.edges keeps the remaining edges. It returns the remaining nodes; all of them are hashed.
func (n *naming) cutBranches() []int32 {
	degree := make([]int, len(n.nodes))
	at := make([][]int32, len(n.nodes)) // by node: its edges
	for i, e := range n.edges {
		degree[e.from]++
		degree[e.to]++
		at[e.from] = append(at[e.from], int32(i))
		if e.to != e.from {
			at[e.to] = append(at[e.to], int32(i))
		}
	}
	gone := make([]bool, len(n.edges))
	cut := make([]bool, len(n.nodes))
	var round, next []int32
	for i, d := range degree {
		if d == 1 {
			round = append(round, int32(i))
		}
	}
	for len(round) > 0 {
		next = next[:0]
		for _, node := range round {
			n.hashNode(node)
		}
		for _, node := range round {
			i := at[node][slices.IndexFunc(at[node], func(i int32) bool { return !gone[i] })]
			e := n.edges[i]
			other, up := e.to, true
			if node == e.to {
				other, up = e.from, false
			}
			if degree[other] == 1 && len(round) == 2 && (round[0] == other || round[1] == other) {
				// The last two nodes of a tree without a root: they stay.
				next = next[:0]
				break
			}
			gone[i], cut[node] = true, true
			degree[node] = 0
			n.kids[other] = append(n.kids[other], kid{node, up, e.pred})
			if degree[other]--; degree[other] == 1 {
				next = append(next, other)
			}
		}
		// A node down to 0 in this round is the centre.
		next = slices.DeleteFunc(next, func(node int32) bool { return degree[node] != 1 })
		round, next = next, round
	}
	left := n.edges[:0]
	for i, e := range n.edges {
		if !gone[i] {
			left = append(left, e)
		}
	}
	n.edges = left
	var nodes []int32
	for i := range n.nodes {
		if !cut[i] {
			n.hashNode(int32(i))
			nodes = append(nodes, int32(i))
		}
	}
	return nodes
}

// coreBytes writes the core down: uvarint(number of nodes), their hashes in canonical order,
// uvarint(number of edges), then each edge as uvarint(from) str(P) uvarint(to), sorted by from, P,
// to. from and to are places in the canonical order.
func (n *naming) coreBytes(order []int32) []byte {
	rank := make([]int32, len(n.nodes))
	b := binary.AppendUvarint(nil, uint64(len(order)))
	for i, node := range order {
		rank[node] = int32(i)
		b = append(b, n.hash[node][:]...)
	}
	edges := make([]edge, len(n.edges))
	for i, e := range n.edges {
		edges[i] = edge{rank[e.from], rank[e.to], e.pred}
	}
	slices.SortFunc(edges, compareEdges)
	b = binary.AppendUvarint(b, uint64(len(edges)))
	for _, e := range edges {
		b = binary.AppendUvarint(b, uint64(e.from))
		b = appendField(b, string(e.pred))
		b = binary.AppendUvarint(b, uint64(e.to))
	}
	return b
}

// orderTies runs RDFC-1.0 on the core, with its cell as the only content of each node.
func (n *naming) orderTies(p *partition, limit int) ([]int32, error) {
	label := func(node int32) Term { return Term("_:n" + strconv.Itoa(int(node))) }
	quads := make([]Quad, 0, len(p.elems)+len(n.edges))
	for _, node := range p.elems {
		cell := Term(`"` + strconv.Itoa(int(p.cell[node])) + `"`)
		quads = append(quads, Quad{Triple: Triple{label(node), "<urn:rsbridge:cell>", cell}})
	}
	for _, e := range n.edges {
		quads = append(quads, Quad{Triple: Triple{label(e.from), e.pred, label(e.to)}})
	}
	c, err := newCanonizer(quads, CanonOptions{WorkLimit: limit})
	if err != nil {
		return nil, err
	}
	c.near = n.near
	if err := c.run(); err != nil {
		return nil, err
	}
	order := make([]int32, len(p.elems))
	for i, node := range p.elems { // the quads show the nodes in this order
		order[c.canon[i]] = node
	}
	return order, nil
}

// partition is an ordered partition of the core's nodes into cells of nodes not told apart so far.
// A cell is known by the index of its first node in elems. The order of cells, not of nodes within
// one, depends on the graph alone.
type partition struct {
	elems  []int32
	at     []int32 // by node: its index in elems
	cell   []int32 // by node: the cell it is in
	size   []int32 // by cell
	cells  int
	near   [][]mention // by node: its neighbours
	queue  []int32     // cells to split others by
	queued []bool      // by cell
	count  []int32     // by node, scratch
}

// mention is a neighbour and how it is joined: twice the rank of the predicate
// among those of the core, and one more when the edge leads to the neighbour.
type mention struct{ how, node int32 }

func newPartition(n *naming, nodes []int32) *partition {
	p := &partition{
		elems: slices.Clone(nodes), at: make([]int32, len(n.nodes)), cell: make([]int32, len(n.nodes)),
		size: make([]int32, len(nodes)), near: make([][]mention, len(n.nodes)), queued: make([]bool, len(nodes)),
		count: make([]int32, len(n.nodes)),
	}
	preds := make([]Term, 0, len(n.edges))
	for _, e := range n.edges {
		preds = append(preds, e.pred)
	}
	slices.Sort(preds)
	preds = slices.Compact(preds)
	for _, e := range n.edges {
		rank, _ := slices.BinarySearch(preds, e.pred)
		how := int32(2 * rank)
		p.near[e.from] = append(p.near[e.from], mention{how + 1, e.to})
		p.near[e.to] = append(p.near[e.to], mention{how, e.from})
	}
	for _, node := range nodes {
		slices.SortFunc(p.near[node], compareMentions)
	}
	slices.SortFunc(p.elems, func(a, b int32) int { return bytes.Compare(n.hash[a][:], n.hash[b][:]) })
	first := int32(0)
	for i, node := range p.elems {
		if i > 0 && n.hash[node] != n.hash[p.elems[i-1]] {
			first = int32(i)
		}
		p.at[node], p.cell[node] = int32(i), first
		if p.size[first]++; p.size[first] == 1 {
			p.cells++
			p.push(first)
		}
	}
	return p
}

func compareMentions(a, b mention) int {
	return cmp.Or(cmp.Compare(a.how, b.how), cmp.Compare(a.node, b.node))
}

func (p *partition) push(cell int32) {
	if !p.queued[cell] {
		p.queued[cell] = true
		p.queue = append(p.queue, cell)
	}
}

// refine splits cells until all nodes of a cell have equally many neighbours of each kind in each
// cell (colour refinement, with Hopcroft's rule that the largest fragment need not be looked at
// again).
func (p *partition) refine() {
	var reached []mention
	for len(p.queue) > 0 && p.cells < len(p.elems) {
		by := p.queue[0]
		p.queue = p.queue[1:]
		p.queued[by] = false
		reached = reached[:0]
		for _, node := range p.elems[by : by+p.size[by]] {
			reached = append(reached, p.near[node]...)
		}
		slices.SortFunc(reached, compareMentions)
		for len(reached) > 0 {
			k := 1
			for k < len(reached) && reached[k].how == reached[0].how {
				k++
			}
			p.splitBy(reached[:k])
			reached = reached[k:]
		}
	}
	p.queue = nil
	clear(p.queued)
}

// splitBy splits every cell with nodes in hit by the number of their mentions.
func (p *partition) splitBy(hit []mention) {
	var nodes []int32
	for _, m := range hit {
		if p.count[m.node]++; p.count[m.node] == 1 {
			nodes = append(nodes, m.node)
		}
	}
	slices.SortFunc(nodes, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.cell[a], p.cell[b]), cmp.Compare(p.count[a], p.count[b]))
	})
	for len(nodes) > 0 {
		k := 1
		for k < len(nodes) && p.cell[nodes[k]] == p.cell[nodes[0]] {
			k++
		}
		p.splitCell(p.cell[nodes[0]], nodes[:k], p.count)
		nodes = nodes[k:]
	}
	for _, m := range hit {
		p.count[m.node] = 0
	}
}

// splitCell splits one cell by key: nodes outside some come first (their key is 0), then some,
// sorted by key.
func (p *partition) splitCell(cell int32, some []int32, key []int32) {
	size := p.size[cell]
	rest := size - int32(len(some))
	if size == 1 || rest == 0 && key[some[0]] == key[some[len(some)-1]] {
		return
	}
	for i, node := range slices.Backward(some) { // move them to the end of the cell
		p.swap(p.at[node], cell+rest+int32(i))
	}
	was := p.queued[cell]
	starts := []int32{}
	if rest > 0 {
		starts = append(starts, cell)
		p.size[cell] = rest
	}
	for i, node := range some {
		if i == 0 || key[node] != key[some[i-1]] {
			start := cell + rest + int32(i)
			starts = append(starts, start)
			p.size[start] = 0
		}
		start := starts[len(starts)-1]
		p.size[start]++
		p.cell[node] = start
	}
	p.cells += len(starts) - 1
	largest := starts[0]
	for _, s := range starts {
		if p.size[s] > p.size[largest] {
			largest = s
		}
	}
	for _, s := range starts {
		if was || s != largest {
			p.push(s)
		}
	}
}

func (p *partition) swap(i, j int32) {
	p.elems[i], p.elems[j] = p.elems[j], p.elems[i]
	p.at[p.elems[i]], p.at[p.elems[j]] = i, j
}

// splitTwins tells apart nodes of one cell with the very same neighbours: any
// order among them is as good as any other. true when there were any.
func (p *partition) splitTwins() bool {
	found := false
	key := make([]int32, len(p.cell))
	for start := int32(0); int(start) < len(p.elems); {
		end := start + p.size[start]
		if end-start > 1 {
			nodes := slices.Clone(p.elems[start:end])
			slices.SortStableFunc(nodes, func(a, b int32) int { return slices.CompareFunc(p.near[a], p.near[b], compareMentions) })
			twins := false
			for i, node := range nodes {
				key[node] = 0
				if i > 0 && slices.Equal(p.near[node], p.near[nodes[i-1]]) {
					key[node] = key[nodes[i-1]] + 1
					twins = true
				}
			}
			if twins {
				slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(key[a], key[b]) })
				p.splitCell(start, nodes, key)
				found = true
			}
		}
		start = end
	}
	return found
}
