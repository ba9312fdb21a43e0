// Command mirror copies a ResourceSync source into an embedded triple store,
// proves that the copy is equal, and asks it a question: what `rsbridge mirror`
// does.
//
//	go run ./examples/mirror -source http://127.0.0.1:8080
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/rsbridge/rsbridge/bridge"
)

func main() {
	source := flag.String("source", "http://127.0.0.1:8080", "a site, a well-known address, a Capability List ...")
	dir := flag.String("dir", "./mirror", "folder of the mirror")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *source, *dir); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, source, dir string) (err error) {
	cfg := bridge.NewConfig()
	cfg.State, cfg.Public, cfg.Admin.Listen = filepath.Join(dir, "state"), bridge.Public{}, ""

	store := bridge.NewStore()
	store.Embedded = filepath.Join(dir, "store")
	cfg.Stores["mirror"] = store

	d := bridge.NewDestination()
	d.Source, d.Store = source, "mirror"
	cfg.Destinations["copy"] = d

	b, err := bridge.Open(ctx, cfg, bridge.Options{Command: "mirror"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	var synced bridge.SyncReport
	if err := b.Do(ctx, "sync", "copy", nil, &synced); err != nil {
		return err
	}
	fmt.Printf("%s: %d created, %d updated, %d deleted\n", synced.Mode, synced.Created, synced.Updated, synced.Deleted)

	var audited bridge.AuditReport
	if err := b.Do(ctx, "audit", "copy", nil, &audited); err != nil {
		return err
	}
	fmt.Printf("equal: %t, %d resources\n", audited.Equal, audited.Resources)
	return nil
}
