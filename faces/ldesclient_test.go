package faces

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// ldesClient is the npm client over an event stream.
type ldesClient struct {
	t      *testing.T
	lines  chan string
	stop   context.CancelFunc
	stderr strings.Builder
	state  map[string]event
	seen   map[string]bool
	twice  int // members that came again
	last   int // sequence of the last member
	sorted bool
	wait   func() error
}

func startLDESClient(t *testing.T, url, mode, order, state string) *ldesClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, "node", "testdata/ldes-client.mjs", teststores.Npm(t), url, mode, order)
	if state != "" {
		cmd.Args = append(cmd.Args, state)
	}
	c := &ldesClient{t: t, lines: make(chan string, 1000), stop: cancel, state: map[string]event{}, seen: map[string]bool{}, sorted: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &c.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var done sync.Once
	c.wait = sync.OnceValue(cmd.Wait)
	go func() {
		defer done.Do(func() { close(c.lines) })
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- line
		}
	}()
	t.Cleanup(func() {
		cancel()
		c.wait()
	})
	return c
}

// read takes members until n are there, or with n < 0 until the client ends.
func (c *ldesClient) read(n int) {
	c.t.Helper()
	for n < 0 || len(c.seen) < n {
		line, ok := <-c.lines
		if !ok {
			if err := c.wait(); err != nil || n >= 0 {
				c.t.Fatalf("the client ended: %v, after %d members, want %d\n%s", err, len(c.seen), n, c.stderr.String())
			}
			return
		}
		var m struct{ ID, Quads string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatal(err)
		}
		if m.ID == "" {
			continue
		}
		if c.seen[m.ID] {
			c.twice++
		}
		c.seen[m.ID] = true
		e := event{id: m.ID}
		for q, err := range codec.Read(strings.NewReader(m.Quads), rdfres.NQuads, rdfres.ReadOptions{}) {
			if err != nil {
				c.t.Fatalf("%v\n%s", err, m.Quads)
			}
			lex, _, _ := q.O.Literal()
			switch {
			case q.G != "":
				e.triples = append(e.triples, q.Triple)
			case q.P == rdfType:
				e.kind = strings.TrimPrefix(q.O.IRI(), nsAS)
			case q.P == asObject:
				e.entity = q.O.IRI()
			case q.P == rsbSequence:
				e.sequence, _ = strconv.Atoi(lex)
			}
		}
		if e.sequence < c.last {
			c.sorted = false
		}
		c.last = e.sequence
		if c.state[e.entity].sequence <= e.sequence {
			c.state[e.entity] = e
		}
	}
}

func (c *ldesClient) check(w *world) {
	c.t.Helper()
	have := 0
	for entity, e := range c.state {
		want, there := w.model[entity]
		if (e.kind == "Delete") == there {
			c.t.Fatalf("%s: the client has %v", entity, e)
		}
		if !there {
			continue
		}
		have++
		if got := shape(e.triples); !slices.Equal(got, shape(want)) {
			c.t.Fatalf("%s: the client has\n%v, want\n%v", entity, got, shape(want))
		}
	}
	if have != len(w.model) {
		c.t.Fatalf("the client has %d entities, want %d", have, len(w.model))
	}
}

// shape is a description with its blank nodes named by what it says.
func shape(ts []rdfres.Triple) []string {
	named, _, err := rdfres.NameBlanks(ts, rdfres.NameOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, t := range named {
		out = append(out, fmt.Sprint(t))
	}
	return out
}

// TestLDESClient lets ldes-client (npm) read an event stream whole, follow it,
// and read it again when retention has dropped most of the log.
func TestLDESClient(t *testing.T) {
	if testing.Short() {
		t.Skip("a client in a process that the race detector does not see; it runs without -short")
	}
	teststores.Npm(t)
	var base string
	w := newWorld(t, SetConfig{Base: func(context.Context) string { return base }, Changes: time.Hour, Versions: time.Hour})
	srv := httptest.NewServer(w.h)
	defer srv.Close()
	base = srv.URL
	url := base + "/data/ldes"
	r := rand.New(rand.NewPCG(9, 10))
	w.grow(600)

	c := startLDESClient(t, url, "follow", "none", t.TempDir())
	c.read(600)
	c.check(w)
	for range 8 {
		w.clock.add(time.Minute)
		w.change(r, 700, 60)
		head, _ := w.log.Head()
		c.read(int(head))
		c.check(w)
	}

	for _, order := range []string{"ascending", "descending"} {
		c := startLDESClient(t, url, "once", order, "")
		c.read(-1)
		c.check(w)
		if head, _ := w.log.Head(); len(c.seen) != int(head) {
			t.Errorf("%s: %d members, want %d", order, len(c.seen), head)
		}
	}

	// The log holds the last hour only, and is cut while the client follows.
	cut, before := 0, c.twice
	for range 25 {
		w.clock.add(3 * time.Minute)
		w.change(r, 700, 20)
		w.retain(time.Hour, time.Hour)
		head, _ := w.log.Head()
		c.read(int(head))
		c.check(w)
		v := w.log.View(t.Context())
		if tail, _ := v.Tail(); tail > 600 {
			cut++
		}
		v.Close()
	}
	c.stop()
	if cut == 0 {
		t.Error("the log was never cut")
	}
	// ldes-client looks at what it has emitted when it begins with a page, and notes
	// it when it is done: a member on two pages that come together comes twice.
	t.Logf("%d members came twice before the log was cut, %d in all", before, c.twice)
	for _, order := range []string{"none"} {
		c := startLDESClient(t, url, "once", order, "")
		c.read(-1)
		gone := 0
		for entity, e := range c.state { // deletions that left the log are not told to who never saw the entity
			if e.kind == "Delete" && w.model[entity] == nil {
				gone++
			}
		}
		c.check(w)
		t.Logf("after retention, %s: %d members, %d deletions", order, len(c.seen), gone)
	}
}
