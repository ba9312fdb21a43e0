package bridge

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/bridge/history"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Samples are those of the last week, by the subject of runs: "set:NAME", "destination:NAME".
func Samples(b *Bridge) history.Store { return history.New(kv.Prefix(b.kv, spaces.Samples)) }

// Now is the time by the clock of the bridge.
func Now(b *Bridge) time.Time { return b.now() }

// moveSamples gives the samples of a set or destination to another one; to "": they are dropped.
func moveSamples(ctx context.Context, m *memory, batch kv.Batch, kind, from, to string) error {
	if to != "" {
		to = kind + to
	}
	return history.New(kv.Prefix(m.kv, spaces.Samples)).Move(ctx, batch, kind+from, to)
}

func sampler(b *Bridge) *history.Sampler {
	return &history.Sampler{Store: Samples(b), Runner: b.runner, Now: b.now, Logger: b.log.With("component", "history"), Sets: b.ConfiguredSets, Mirrors: b.Destinations, Lag: func(ctx context.Context, name string) (*float64, error) {
		st, err := b.DestinationStatus(ctx, name)
		return st.BehindSeconds, err
	}}
}
