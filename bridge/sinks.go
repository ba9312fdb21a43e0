package bridge

import (
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
)

// sinkKind is a kind of mirror without a triple store.
type sinkKind struct {
	key  string              // of a store in the configuration
	at   func(*Store) string // its value, "" for another kind
	open func(at string) (sink.Sink, error)
}

// sinkKinds are all of them. A new kind has its key in Store and a line here.
var sinkKinds = []sinkKind{
	{"dump", func(s *Store) string { return s.Dump }, func(at string) (sink.Sink, error) { return dumpsink.Open(at) }},
	{"files", func(s *Store) string { return s.Files }, func(at string) (sink.Sink, error) { return filesink.Open(at) }},
}

// kinds are those of a store: one in a valid configuration, none for a triple store.
func (s *Store) kinds() (all []sinkKind) {
	for _, k := range sinkKinds {
		if k.at(s) != "" {
			all = append(all, k)
		}
	}
	return all
}

// sink tells of a mirror without a triple store.
func (s *Store) sink() bool { return len(s.kinds()) > 0 }

// place names a sink or an embedded store, "" for a remote store.
func (s *Store) place() string {
	for _, k := range s.kinds() {
		return k.key + ":" + k.at(s)
	}
	return s.Embedded
}

// openSink opens a sink without a triple store.
func (s *Store) openSink() (sink.Sink, error) {
	k := s.kinds()[0]
	return k.open(k.at(s))
}
