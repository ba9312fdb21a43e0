package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// resyncFetches is the number of resources fetched by the reference client; the time for all is
// computed from it.
const resyncFetches = 10_000

// Documents served beside the origin's own.
const (
	aloneCaps = "/bench/capabilitylist.xml" // a Resource List and nothing else is offered
	fewList   = "/bench/few.xml"            // Resource List of some
	oneList   = "/bench/one.xml"            // Resource List of one
)

// Mirrors without a store.
const (
	intoFiles = "files"
	intoDump  = "copy.nt" // one file
)

// filing measures a verified mirror of everything, without a store, of the source offered at a path
// of the origin. The baseline is the reference client's baseline sync from the same server into
// files. The reference client's time for one resource is not multiplied.
func filing(path, into string) func(context.Context, *env) (time.Duration, time.Duration, error) {
	return func(ctx context.Context, e *env) (took, base time.Duration, err error) {
		o, err := e.origin(ctx)
		if err != nil {
			return 0, 0, err
		}
		few := min(e.n, resyncFetches)
		if err := o.excerpts(ctx, few); err != nil {
			return 0, 0, err
		}
		if took, err = e.filed(ctx, o.base+path, into); err != nil {
			return 0, 0, err
		}
		one, err := e.resyncSync(ctx, o, oneList, 1)
		if err != nil {
			return 0, 0, err
		}
		some, err := e.resyncSync(ctx, o, fewList, few)
		each := float64(some-one) / float64(few-1)
		return took, one + time.Duration(each*float64(e.n-1)), err
	}
}

// filed times a mirror without a store.
func (e *env) filed(ctx context.Context, source, into string) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(e.dir, "filed-")
	if err != nil {
		return 0, err
	}
	e.spent = append(e.spent, dir)
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(dir, "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: benchBase}, ""
	store, dest := bridge.NewStore(), bridge.NewDestination()
	if path := filepath.Join(dir, into); into == intoDump {
		store.Dump = path
	} else {
		store.Files = path
	}
	dest.Source, dest.Store, dest.Schedule, dest.Audit.Schedule = source, "files", "", ""
	cfg.Stores["files"], cfg.Destinations["copy"] = store, dest
	b, err := bridge.Open(ctx, cfg, bridge.Options{Command: "bench"})
	if err != nil {
		return 0, err
	}
	took, err = e.synced(ctx, b, e.n, 0)
	return took, errors.Join(err, b.Close())
}

// resyncSync times the reference client's baseline of a list with n resources.
func (e *env) resyncSync(ctx context.Context, o *origin, list string, n int64) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(e.dir, "resync-")
	if err != nil {
		return 0, err
	}
	e.spent = append(e.spent, dir)
	tool := filepath.Join(filepath.Dir(os.Getenv(teststores.EnvPython)), "resync-sync")
	files := filepath.Join(dir, "files")
	cmd := exec.CommandContext(ctx, tool, "--baseline", "--sitemap", o.base+list, o.base+"/data/="+files)
	cmd.Dir = dir
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took = time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("resync-sync: %w: %.300s", err, out)
	}
	saved := int64(0)
	err = filepath.WalkDir(files, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			saved++
		}
		return err
	})
	if err == nil && saved != n {
		err = fmt.Errorf("resync-sync saved %d resources of %d: %.300s", saved, n, out)
	}
	return took, err
}

var urlElement = regexp.MustCompile(`(?s)<url>.*?</url>`)

// excerpts makes the extra documents of the origin, one of them with n resources of its list.
func (o *origin) excerpts(ctx context.Context, n int64) error {
	list, err := o.fetch(ctx, "/data/resourcelist.xml")
	if err != nil {
		return err
	}
	var head []byte
	var entries [][]byte
	for _, part := range locations(list) {
		doc, err := o.fetch(ctx, part)
		if err != nil {
			return err
		}
		found := urlElement.FindAllIndex(doc, -1)
		for _, at := range found {
			entries = append(entries, doc[at[0]:at[1]])
		}
		if len(found) > 0 && head == nil {
			head = doc[:found[0][0]]
		}
		if int64(len(entries)) >= n {
			break
		}
	}
	if int64(len(entries)) < n || n < 2 {
		return fmt.Errorf("the origin's list has %d resources, %d are asked for", len(entries), n)
	}
	first := func(n int64) []byte {
		doc := append([]byte{}, head...)
		for _, e := range entries[:n] {
			doc = append(doc, e...)
		}
		return append(doc, "</urlset>"...)
	}
	o.beside.Store(aloneCaps, fmt.Appendf(nil, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="capabilitylist"/>`+
		`<url><loc>%s/data/resourcelist.xml</loc><rs:md capability="resourcelist"/></url></urlset>`, o.base))
	o.beside.Store(fewList, first(n))
	o.beside.Store(oneList, first(1))
	return nil
}

func (o *origin) fetch(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, res.Status)
	}
	return io.ReadAll(res.Body)
}
