// Command expose makes a SPARQL endpoint a ResourceSync source, as a program of
// one's own: what `rsbridge expose` does.
//
//	go run ./examples/expose -endpoint http://localhost:3030/ds/query -listen 127.0.0.1:8080
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
)

func main() {
	endpoint := flag.String("endpoint", "", "SPARQL query address")
	graph := flag.String("graph", "", "named graph; default: the default graph")
	listen := flag.String("listen", "127.0.0.1:8080", "serve the documents here")
	admin := flag.String("admin", "127.0.0.1:8081", "serve the administration here")
	state := flag.String("state", "./expose-state", "folder that remembers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *endpoint, *graph, *listen, *admin, *state); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, endpoint, graph, listen, admin, state string) (err error) {
	cfg := bridge.NewConfig()
	cfg.State, cfg.Public.Listen, cfg.Admin.Listen = state, listen, admin

	store := bridge.NewStore()
	store.Query = endpoint
	cfg.Stores["endpoint"] = store

	set := bridge.NewSet() // a set is what is published together
	set.Store, set.Schedule = "endpoint", "@every 5m"
	if graph != "" {
		set.Graphs = []string{graph}
	}
	cfg.Sets["data"] = set

	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	b, err := bridge.Open(ctx, cfg, bridge.Options{Logger: logger, Command: "expose"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	return httpapi.Serve(ctx, b, "expose", logger, func(at httpapi.Addresses) {
		if _, _, err := b.Begin(ctx, "scan", "data", "start", nil); err != nil {
			logger.Error("the first scan was not started", "error", err)
		}
		b.Start(ctx) // the schedules
		fmt.Printf("http://%s/.well-known/resourcesync\n", at.Public)
	})
}
