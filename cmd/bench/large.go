package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/bridge"
)

// The rows of -large compare a set of -entities with one of ten times as many.
// Each command is a process of its own, between two embedded stores in processes
// of theirs.
var largeRows = []row{
	growth("scan", "first scan", func(m measures) float64 { return m.seconds["scan"] }),
	growth("rescan", "second scan, nothing changed", func(m measures) float64 { return m.seconds["rescan"] }),
	growth("list", "Resource List of all, made and read", func(m measures) float64 { return m.seconds["list"] }),
	growth("dump", "Resource Dump of all", func(m measures) float64 { return m.seconds["dump"] }),
	growth("mirror", "mirror from the dump, divided by the store's own upload", func(m measures) float64 { return m.seconds["sync"] / m.seconds["upload"] }),
	growth("audit", "audit", func(m measures) float64 { return m.seconds["audit"] }),
	{id: "large-inventory", what: "bytes that an audit by inventory receives, ten times as many", baseline: "allowed", limit: 1, large: true, unitName: "kB",
		value: func(ctx context.Context, e *env) (float64, float64, error) {
			_, big, err := e.sizes(ctx)
			return big.inventory, 1000, err
		}},
	resident("source", "scan", "rescan"),
	resident("destination", "sync", "audit"),
	{id: "large-disk", what: "state of the source on disk, without published files", baseline: "its N-Triples under zstd -3", limit: 2.9, large: true, unitName: "MB",
		value: func(ctx context.Context, e *env) (float64, float64, error) {
			_, big, err := e.sizes(ctx)
			return big.state, big.packed, err
		}},
}

// measures are the results of one size.
type measures struct {
	entities      int64
	seconds       map[string]float64
	peak          map[string]float64 // MB
	state, packed float64            // MB
	inventory     float64            // kB received by an inventory audit
}

func growth(name, what string, value func(measures) float64) row {
	unit, each := "µs each", 1e6
	if name == "mirror" { // both sides of its division grow
		unit, each = "uploads", 0
	}
	return row{id: "large-" + name, what: what + ", ten times as many", baseline: "at the smaller size", limit: 1.15, large: true, unitName: unit,
		value: func(ctx context.Context, e *env) (float64, float64, error) {
			small, big, err := e.sizes(ctx)
			if err != nil {
				return 0, 0, err
			}
			scale := func(m measures) float64 {
				if each == 0 {
					return value(m)
				}
				return value(m) * each / float64(m.entities)
			}
			return scale(big), scale(small), nil
		}}
}

func resident(name string, commands ...string) row {
	return row{id: "large-memory-" + name, what: "most resident memory of the " + name + ", ten times as many", baseline: "allowed", limit: 1, large: true, unitName: "MB",
		value: func(ctx context.Context, e *env) (float64, float64, error) {
			_, big, err := e.sizes(ctx)
			most := 0.0
			for _, c := range commands {
				most = max(most, big.peak[c])
			}
			if err == nil && most == 0 {
				err = errors.New("this system does not tell the most memory that a process had")
			}
			return most, 300, err
		}}
}

// sizes are the results of both sizes in one turn.
type sizes struct{ small, big measures }

// sizes are those of this turn.
func (e *env) sizes(ctx context.Context) (small, big measures, err error) {
	if len(e.large) == e.turn {
		s, err := e.measureSizes(ctx)
		if err != nil {
			return small, big, err
		}
		e.large = append(e.large, s)
	}
	s := e.large[e.turn]
	return s.small, s.big, nil
}

// measureSizes measures both sizes: the smaller one before the larger and twice after
// it, since a few seconds move with whatever else the machine does, and takes the
// medians of these.
func (e *env) measureSizes(ctx context.Context) (s sizes, err error) {
	more, err := prepare("", 10*e.n)
	if err != nil {
		return s, err
	}
	defer more.close()
	var all []measures
	for _, of := range []*env{e, more, e, e} {
		m, err := of.whole(ctx)
		if err != nil {
			return s, err
		}
		if of == more {
			s.big = m
		} else {
			all = append(all, m)
		}
	}
	s.small = all[0]
	for name := range s.small.seconds {
		var each []float64
		for _, m := range all {
			each = append(each, m.seconds[name])
		}
		s.small.seconds[name] = median(each)
	}
	return s, nil
}

const largeConfig = `state: %[1]s/state
public: {listen: "%[2]s", base_url: "http://%[2]s"}
admin: {listen: "%[3]s"}
stores:
  origin: {query: %[4]q, update: %[5]q, graph_store: %[6]q}
  mirror: {query: %[7]q, update: %[8]q, graph_store: %[9]q}
sets:
  data: {store: origin, schedule: "", publish: [resourcelist, changelist%[10]s]}
destinations:
  copy: {source: "http://%[2]s", store: mirror, graph_iri: "http://bench.example/mirror", schedule: "", audit: ""}
`

// whole takes the data all the way, and measures each step.
func (e *env) whole(ctx context.Context) (m measures, err error) {
	m = measures{entities: e.n, seconds: map[string]float64{}, peak: map[string]float64{}}
	origin, err := embedded(ctx, e)
	if err != nil {
		return m, err
	}
	defer origin.stop()
	mirror, err := embedded(ctx, e)
	if err != nil {
		return m, err
	}
	defer mirror.stop()
	dir, err := os.MkdirTemp(e.dir, "large-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := origin.loadAt(ctx, e, origin.data+"?default"); err != nil {
		return m, err
	}
	if err := warm(e.dir); err != nil {
		return m, err
	}
	upload, err := mirror.load(ctx, e, uploadGraph)
	if err == nil {
		err = mirror.drop(ctx, uploadGraph)
	}
	if err != nil {
		return m, err
	}
	m.seconds["upload"] = upload.Seconds()

	public, admin := freeAddr(), freeAddr()
	config := filepath.Join(dir, "rsbridge.yaml")
	configure := func(more string) error {
		return os.WriteFile(config, fmt.Appendf(nil, largeConfig, dir, public, admin, origin.query, origin.update, origin.data, mirror.query, mirror.update, mirror.data, more), 0o600)
	}
	var out, said bytes.Buffer
	step := func(name string, command ...string) error {
		if err := warm(e.dir); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, filepath.Join("bin", "rsbridge"), append(command, "-c", config)...)
		out.Reset()
		said.Reset()
		cmd.Stdout, cmd.Stderr = &out, &said
		began := time.Now()
		peak, err := runWatched(cmd)
		if err != nil {
			return fmt.Errorf("%s: %w: %.1000s%.1000s", name, err, said.Bytes(), out.Bytes())
		}
		m.seconds[name] = time.Since(began).Seconds()
		m.peak[name] = max(m.peak[name], peak)
		processor := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		fmt.Fprintf(os.Stderr, "%d entities: %s: %.1f s (%.1f s of processors), %.0f MB\n", e.n, name, m.seconds[name], processor.Seconds(), m.peak[name])
		return nil
	}
	if err := errors.Join(configure(""), step("scan", "scan"), step("rescan", "scan")); err != nil {
		return m, err
	}
	if m.state, err = megabytes(filepath.Join(dir, "state")); err != nil {
		return m, err
	}
	if m.packed, err = e.packed(); err != nil {
		return m, err
	}
	if err := configure(", resourcedump"); err != nil {
		return m, err
	}
	if err := m.documents(ctx, e.dir, config); err != nil {
		return m, err
	}
	if err := errors.Join(step("sync", "sync"), step("audit", "audit"), step("inventory", "audit", "--depth", "inventory", "--json")); err != nil {
		return m, err
	}
	var audited struct {
		Destinations []struct {
			Equal bool
			Depth string
			Bytes int64
		}
	}
	if err := json.Unmarshal(out.Bytes(), &audited); err != nil {
		return m, fmt.Errorf("audit by inventory: %w: %.300s", err, out.Bytes())
	}
	if d := audited.Destinations; len(d) != 1 || !d[0].Equal || d[0].Bytes <= 0 || d[0].Depth != "inventory" {
		return m, fmt.Errorf("audit by inventory: %.300s", out.Bytes())
	}
	m.inventory = float64(audited.Destinations[0].Bytes) / 1000
	return m, nil
}

// documents makes the Resource List and the Resource Dump in this process.
func (m measures) documents(ctx context.Context, data, config string) error {
	if err := warm(data); err != nil {
		return err
	}
	cfg, err := bridge.Load(config)
	if err != nil {
		return err
	}
	b, err := bridge.Open(ctx, cfg, bridge.Options{Command: "bench"})
	if err != nil {
		return err
	}
	began := time.Now()
	entries := listed(b)
	m.seconds["list"] = time.Since(began).Seconds()
	if entries != m.entities {
		return errors.Join(fmt.Errorf("the Resource List has %d entries of %d", entries, m.entities), b.Close())
	}
	if err := warm(data); err != nil {
		return errors.Join(err, b.Close())
	}
	began = time.Now()
	err = finish(ctx, b, "dump:data")
	m.seconds["dump"] = time.Since(began).Seconds()
	return errors.Join(err, b.Close())
}

// warm reads all files below a folder. The machine may drop files from its memory after some
// seconds without a reader: then it would read the larger size from the disk and the smaller one
// from memory.
func warm(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.Type().IsRegular() {
			return nil
		}
		var f *os.File
		if err == nil {
			f, err = os.Open(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a store at work has merged it
		}
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(struct{ io.Writer }{io.Discard}, f)
		return err
	})
}

// packed is the size of the data under zstd -3, in megabytes.
func (e *env) packed() (float64, error) {
	f, err := os.Open(e.triples)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n counter
	w, err := zstd.NewWriter(&n, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)))
	if err != nil {
		return 0, err
	}
	_, err = w.ReadFrom(f)
	return float64(n) / (1 << 20), errors.Join(err, w.Close())
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// megabytes is the size of the files below a folder.
func megabytes(dir string) (float64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return float64(total) / (1 << 20), err
}
