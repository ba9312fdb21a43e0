package sink

import "log/slog"

// Sink is a store, a file, a folder or a queue for mirrors. Several destinations may
// share one, and use it at once. An implementer guarantees:
//   - Name is for people, in errors and reports.
//   - Address is a URL, the same in each process: the records know the sink by it. It has
//     no secrets. Of a path on this machine it is http://KIND.invalid/PATH.
//   - Open gives the mirror of one destination. It connects to nothing: the first call of
//     the mirror does. It refuses a layout it cannot hold; without graphs, Layout.PerEntity.
//   - Close ends the sink, after its destinations.
type Sink interface {
	Name() string
	Address() string
	Open(*Place) (Mirror, error)
	Close() error
}

// Place is a mirror's own: its layout, its name in checkpoints, and its source. The caller may
// change it between calls of the mirror.
type Place struct {
	Layout Layout
	Mark   string
	Source string // address of the source, without secrets
	Log    *slog.Logger
}
