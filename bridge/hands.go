package bridge

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/rsbridge/rsbridge/bridge/hands"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

func handsOptions(b *Bridge) hands.Options {
	return hands.Options{Database: b.cfg.State, Files: b.cfg.Files.Work, TempDir: filepath.Join(b.cfg.TempDir(), "parts"), Logger: b.log.With("component", "hands")}
}

// handsOf lets other processes read the scans of a set; nil: there can be none, or its store has no replicas.
func handsOf(b *Bridge, set string, st *store) *hands.Leader {
	if b.state.led == nil || b.o.dry || b.cfg.Files.PublishTo == "" || len(st.replicas) == 0 {
		return nil
	}
	return &hands.Leader{Options: handsOptions(b), Set: set, Lead: b.state.lead}
}

func readerOf(source *sparqlsrc.Source, client *sparql.Client, replicas []*sparql.Client) hands.Reader {
	return hands.Reader{Source: source, Servers: append([]*sparql.Client{client}, replicas...)}
}

// StartWorker takes parts of the leader's scans in the process of b, which stands by, until stop is called. b may be
// replaced by a newer one meanwhile.
func StartWorker(ctx context.Context, b *Bridge) (stop func(), err error) {
	var clients []*sparql.Client
	end := func() {
		for _, c := range clients {
			_ = c.Close() // it has nothing to tell
		}
	}
	defer func() {
		if err != nil {
			end()
			stop = func() {}
		}
	}()
	o := handsOptions(b)
	o.Readers = map[string]hands.Reader{}
	servers := map[string][]*sparql.Client{} // by store
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Sets)) {
		at := b.cfg.Sets[name].Store
		c := b.cfg.Stores[at]
		if len(c.Replicas) == 0 {
			continue
		}
		if servers[at] == nil {
			for _, e := range append([]sparql.Endpoint{c.Endpoint(at, b.cfg.Names(), b.log)}, c.ReplicaEndpoints(at, b.cfg.Names(), b.log)...) {
				e.Around = func(rt http.RoundTripper) http.RoundTripper { return b.o.Telemetry.Store(at, rt) }
				client, err := sparql.New(e)
				if err != nil {
					return nil, err
				}
				clients, servers[at] = append(clients, client), append(servers[at], client)
			}
		}
		sc := b.cfg.SourceConfig(name)
		sc.TempDir, sc.Logger = o.TempDir, b.log.With("component", "sparqlsrc", "set", name)
		source, err := sparqlsrc.New(servers[at][0], sc)
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
		o.Readers[name] = readerOf(source, servers[at][0], servers[at][1:])
	}
	if len(o.Readers) == 0 || b.cfg.Files.PublishTo == "" {
		return end, nil
	}
	worker, err := hands.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return func() { worker.Stop(); end() }, nil
}
