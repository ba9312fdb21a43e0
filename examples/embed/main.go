// Command embed uses the library inside a program: a store is filled, its
// changes are found, and a description is read back, with no listener at all.
//
//	go run ./examples/embed
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/rdfres"
)

const before = `<http://example.org/a> <http://example.org/says> "hello" .
<http://example.org/b> <http://example.org/knows> <http://example.org/a> .
`

const after = `<http://example.org/a> <http://example.org/says> "hello, world" .
<http://example.org/c> <http://example.org/knows> _:somebody .
_:somebody <http://example.org/says> "hm" .
`

func main() {
	dir, err := os.MkdirTemp("", "embed-")
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), dir)
	os.RemoveAll(dir)
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) (err error) {
	cfg := bridge.NewConfig()
	cfg.State, cfg.Admin.Listen = filepath.Join(dir, "state"), ""
	cfg.Public = bridge.Public{BaseURL: "http://bridge.example"}
	store := bridge.NewStore()
	store.Embedded = filepath.Join(dir, "store")
	cfg.Stores["local"] = store
	set := bridge.NewSet()
	set.Store, set.Schedule = "local", ""
	cfg.Sets["things"] = set

	b, err := bridge.Open(ctx, cfg, bridge.Options{Command: "embed"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	for _, data := range []string{before, after} {
		if _, err := b.LoadStore(ctx, "local", "", rdfres.NTriples, strings.NewReader(data), true); err != nil {
			return err
		}
		var report bridge.ScanReport
		if err := b.Do(ctx, "scan", "things", nil, &report); err != nil {
			return err
		}
		fmt.Printf("%d created, %d updated, %d deleted\n", report.Created, report.Updated, report.Deleted)
	}
	turtle, _, err := b.Describe(ctx, "things", "http://example.org/a", time.Time{}, rdfres.Turtle)
	if err != nil {
		return err
	}
	fmt.Print(string(turtle))
	return nil
}
