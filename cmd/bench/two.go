package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// The run of -two: an Oxigraph behind the update gateway and a Fuseki with its patch log, each with an
// rsbridge of its own, and a third one that mirrors both into one Fuseki. All are processes of their
// own. Each source changes livePace times a second.

const twoWait = time.Minute // for one change

// twoSource is one source of the run.
type twoSource struct {
	name, how string
	update    string // takes the updates
	data      string // its graph, as N-Triples
	graph     string // "" for the default graph
	daemon    *daemon
	mirror    string // its graph in the mirror
}

// runTwo measures, and keeps the results.
func runTwo(ctx context.Context, long time.Duration, out string) (err error) {
	if os.Getenv(teststores.EnvOxigraph) == "" || os.Getenv(teststores.EnvFuseki) == "" || os.Getenv(teststores.EnvJena) == "" {
		return errors.New("-two needs an Oxigraph, a Fuseki and the jar of Jena: make bench-two has them")
	}
	e, err := prepare("", 0)
	if err != nil {
		return err
	}
	defer e.close()
	sources, mirror, stop, err := e.two(ctx)
	defer stop()
	if err != nil {
		return err
	}
	n := int(long.Seconds() * livePace)
	lags := make([][]float64, len(sources))
	failed := make([]error, len(sources))
	loads := watchLoad(ctx)
	var wg sync.WaitGroup
	for i, s := range sources {
		wg.Go(func() { lags[i], failed[i] = s.follow(ctx, mirror, n) })
	}
	wg.Wait()
	load := loads()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, s := range sources {
		if err := s.equal(ctx, mirror); err != nil {
			return err
		}
	}
	machine := fmt.Sprintf("%d changes of each source in %v, all mirrored. Both mirrors were equal at the end. The %s. %s", n, long, load, os.Getenv(teststores.EnvVersions))
	fmt.Println(machine)
	for i, s := range sources {
		fmt.Printf("%s, %s: ms from the answer to an update until the mirror has it\n", s.name, s.how)
		for _, q := range []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1} {
			fmt.Printf("  %5.1f %%  %8.1f\n", 100*q, quantile(lags[i], q))
		}
		for _, of := range []struct {
			id, what string
			q, most  float64
		}{{"median", "median", 0.5, 250}, {"p99", "99th percentile", 0.99, 1000}} {
			got := quantile(lags[i], of.q)
			r := result{ID: "two-" + s.name + "-" + of.id, What: s.how + ", " + of.what, Value: got, Unit: "ms", Baseline: "allowed", Base: of.most, Ratio: got / of.most,
				Spread: [2]float64{got / of.most, got / of.most}, Runs: 1, Day: today(), Note: note, Limit: 1, Holds: got <= of.most}
			if i == 0 && of.id == "median" {
				r.Shape, r.Lines = &[2][]float64{steps(lags[0]), steps(lags[1])}, &[2]string{sources[0].how, sources[1].how}
			}
			if err := keep(out, machine, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// two starts the processes. stop ends them, however far they came.
func (e *env) two(ctx context.Context) (sources []*twoSource, mirror store, stop func(), err error) {
	var ends []func()
	stop = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	fuseki := os.Getenv(teststores.EnvFuseki)
	mirror = store{query: fuseki + "/query", update: fuseki + "/update", data: fuseki + "/data"}
	bare := oxigraph()
	logged, end, err := e.logged(ctx)
	if err != nil {
		return nil, mirror, stop, err
	}
	ends = append(ends, end)
	const graph = benchGraph + "/two"
	for _, of := range []*twoSource{
		{name: "oxigraph", how: "Oxigraph through the gateway", data: bare.graph(graph), graph: graph, mirror: graph + "/copy/oxigraph"},
		{name: "fuseki", how: "Fuseki with its patch log", update: logged.update, data: logged.data + "?default", mirror: graph + "/copy/fuseki"},
	} {
		config := fmt.Sprintf("stores: {local: {query: %q, update: %q, graph_store: %q, gateway: true}}\nsets: {data: {store: local, graphs: [%q], schedule: \"\"}}\n", bare.query, bare.update, bare.data, graph)
		first := bare.update
		if of.name == "fuseki" {
			config = fmt.Sprintf("stores: {local: {query: %q, update: %q, graph_store: %q, patch_log: %q}}\nsets: {data: {store: local, schedule: \"\"}}\n", logged.query, logged.update, logged.data, filepath.Join(logged.dir, "patch.rdfp"))
			first = logged.update
		}
		for _, s := range []struct{ at, text string }{{bare.update, "DROP SILENT GRAPH <" + graph + ">"}, {mirror.update, "DROP SILENT GRAPH <" + of.mirror + ">"}, {first, of.in("INSERT DATA", pushedData(-500, 500))}} {
			if of.name == "fuseki" && s.at == bare.update {
				continue
			}
			if err := (store{update: s.at}).run(ctx, s.text); err != nil {
				return nil, mirror, stop, err
			}
		}
		if of.daemon, err = e.daemon(ctx, config); err != nil {
			return nil, mirror, stop, err
		}
		ends = append(ends, of.daemon.stop)
		if err := of.daemon.do(ctx, "scan"); err != nil {
			return nil, mirror, stop, err
		}
		if of.update == "" {
			of.update = "http://" + of.daemon.admin + "/stores/local/update"
		}
		sources = append(sources, of)
	}
	config := fmt.Sprintf("stores: {copy: {query: %q, update: %q, graph_store: %q}}\ndestinations:\n", mirror.query, mirror.update, mirror.data)
	for _, s := range sources {
		config += fmt.Sprintf("  %s: {source: \"http://%s\", store: copy, graph_iri: %q, adopt: true, schedule: \"@every 1m\", audit: {schedule: \"\"}}\n", s.name, s.daemon.public, s.mirror)
	}
	keeper, err := e.daemon(ctx, config)
	if err != nil {
		return nil, mirror, stop, err
	}
	ends = append(ends, keeper.stop)
	return sources, mirror, stop, keeper.do(ctx, "sync")
}

// loggedFuseki is a Fuseki with a patch log in its folder.
type loggedFuseki struct {
	store
	dir string
}

// logged starts one, with the configuration of the how-to.
func (e *env) logged(ctx context.Context) (s loggedFuseki, end func(), err error) {
	s.dir = filepath.Join(e.dir, "fuseki")
	page, err := os.ReadFile(filepath.Join("docs", "howto", "expose-fuseki.md"))
	if err != nil {
		return s, nil, err
	}
	_, conf, _ := strings.Cut(string(page), "```turtle\n")
	conf, _, _ = strings.Cut(conf, "```")
	if err := errors.Join(os.MkdirAll(s.dir, 0o700), os.WriteFile(filepath.Join(s.dir, "conf.ttl"), []byte(conf), 0o600)); err != nil {
		return s, nil, err
	}
	addr := freeAddr()
	cmd := exec.CommandContext(ctx, "java", "-Xmx1g", "-cp", os.Getenv(teststores.EnvJena), "org.apache.jena.fuseki.main.cmds.FusekiMainCmd", "--localhost", "--port", addr[strings.LastIndexByte(addr, ':')+1:], "--conf", "conf.ttl")
	cmd.Dir = s.dir
	if err := cmd.Start(); err != nil {
		return s, nil, fmt.Errorf("start Fuseki: %w", err)
	}
	end = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	at := "http://" + addr + "/ds/"
	s.store = store{query: at + "query", update: at + "update", data: at + "data"}
	for range 600 {
		if err = s.run(ctx, "INSERT DATA {}"); err == nil {
			return s, end, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	end()
	return s, nil, fmt.Errorf("Fuseki with a patch log does not start: %w", err)
}

// in is an update with data in the graph of the source.
func (s *twoSource) in(what, data string) string {
	if s.graph != "" {
		data = "GRAPH <" + s.graph + "> { " + data + " }"
	}
	return what + " { " + data + " }"
}

func twoValue(i, v int) string {
	return fmt.Sprintf("<http://bench.example/e%d> <http://bench.example/v> \"some words of %d\" .", i, v)
}

func pushedData(from, n int) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		b.WriteString(twoValue(i, i) + "\n")
	}
	return b.String()
}

// change is the i-th update, and a question: the mirror answers yes once it has the update.
// Of ten six make an entity, three give an older one another value, and one removes an older one.
func (s *twoSource) change(i int) (update, ask string) {
	has, not := fmt.Sprintf("ASK { GRAPH <%s> { ", s.mirror), fmt.Sprintf("ASK { FILTER NOT EXISTS { GRAPH <%s> { ", s.mirror)
	switch old := i - i%10 - 20*livePace; {
	case i%10 < 6 || old < 0:
		return s.in("INSERT DATA", twoValue(i, i)), has + twoValue(i, i) + " } }"
	case i%10 < 9:
		made := old + i%10 - 6
		return s.in("DELETE DATA", twoValue(made, made)) + " ; " + s.in("INSERT DATA", twoValue(made, -i)), has + twoValue(made, -i) + " } }"
	default:
		return s.in("DELETE DATA", twoValue(old+3, old+3)), not + twoValue(old+3, old+3) + " } } }"
	}
}

// follow makes changes at the pace, and gives the sorted milliseconds from the answer to each until
// the mirror has it.
func (s *twoSource) follow(ctx context.Context, mirror store, n int) ([]float64, error) {
	answered := make(chan time.Time, n)
	failed := make(chan error, 1)
	go func() { // ends with the changes
		defer close(answered)
		tick := time.NewTicker(time.Second / livePace)
		defer tick.Stop()
		for i := range n {
			update, _ := s.change(i)
			if err := (store{update: s.update}).run(ctx, update); err != nil {
				failed <- err
				return
			}
			answered <- time.Now()
			<-tick.C
		}
	}()
	var out []float64
	for at := range answered {
		_, ask := s.change(len(out))
		for {
			has, err := isSo(ctx, mirror, ask)
			if err != nil {
				return nil, err
			}
			if has {
				break
			}
			if time.Since(at) > twoWait {
				return nil, fmt.Errorf("%s: change %d of %d is not mirrored after %v", s.how, len(out), n, twoWait)
			}
			time.Sleep(5 * time.Millisecond)
		}
		out = append(out, float64(time.Since(at).Microseconds())/1000)
	}
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	slices.Sort(out)
	return out, nil
}

// isSo asks a yes-or-no question.
func isSo(ctx context.Context, s store, ask string) (bool, error) {
	body, err := gotten(ctx, s.query+"?query="+url.QueryEscape(ask), "application/sparql-results+json")
	return bytes.Contains(body, []byte("true")), err
}

func gotten(ctx context.Context, at, accept string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %.100s: %s: %.200s", at, res.Status, body)
	}
	return body, err
}

// equal compares the graph of the source with its mirror, as both stores give them.
func (s *twoSource) equal(ctx context.Context, mirror store) error {
	var both [2][]string
	for i, at := range []string{s.data, mirror.graph(s.mirror)} {
		body, err := gotten(ctx, at, "application/n-triples")
		if err != nil {
			return err
		}
		both[i] = slices.Sorted(strings.Lines(string(body)))
	}
	if !slices.Equal(both[0], both[1]) {
		return fmt.Errorf("%s: the source has %d triples and the mirror %d, or others", s.how, len(both[0]), len(both[1]))
	}
	fmt.Fprintf(os.Stderr, "%s: %d triples, equal\n", s.how, len(both[0]))
	return nil
}

// watchLoad looks at the load of the machine until its result is asked for.
func watchLoad(ctx context.Context) func() string {
	ctx, cancel := context.WithCancel(ctx)
	var all []float64
	over := make(chan struct{})
	go func() { // ends with ctx
		defer close(over)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			var one float64
			if f, err := os.Open("/proc/loadavg"); err == nil {
				if _, err := fmt.Fscan(bufio.NewReader(f), &one); err == nil {
					all = append(all, one)
				}
				f.Close()
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() string {
		cancel()
		<-over
		if len(all) == 0 {
			return "load of the machine is unknown"
		}
		slices.Sort(all)
		return fmt.Sprintf("load of the machine was %.1f to %.1f, median %.1f", all[0], all[len(all)-1], quantile(all, 0.5))
	}
}
