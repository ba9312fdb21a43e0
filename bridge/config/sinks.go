package config

import (
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
)

// Sinks are the kinds of mirrors without a triple store: a store has one of these keys, or none. A
// new kind has its key here, and a row in sinkKinds.
type Sinks struct {
	Dump  string `yaml:"dump" doc:"for a destination: one file, sorted N-Triples (.nt) or N-Quads (.nq), also .gz, replaced whole"`
	Files string `yaml:"files" doc:"for a destination: a folder with the representations as files at the paths of their addresses"`
}

// sinkKind opens the sinks of a key.
type sinkKind struct {
	key    string
	at     func(*Sinks) *string // the key's value
	open   func(at string) (sink.Sink, error)
	check  func(at string) error  // refuses a value as the configuration is read; nil: none
	folder func(at string) string // on this machine, of its files; nil for a place elsewhere
}

var sinkKinds = []sinkKind{
	{key: "dump", at: func(s *Sinks) *string { return &s.Dump }, open: func(at string) (sink.Sink, error) { return dumpsink.Open(at) }, check: dumpsink.Check, folder: filepath.Dir},
	{key: "files", at: func(s *Sinks) *string { return &s.Files }, open: func(at string) (sink.Sink, error) { return filesink.Open(at) }, folder: filepath.Clean},
}

// kinds are those of a store: one in a valid configuration, none for a triple store.
func (s *Sinks) kinds() (all []sinkKind) {
	for _, k := range sinkKinds {
		if *k.at(s) != "" {
			all = append(all, k)
		}
	}
	return all
}

// IsSink tells of a mirror without a triple store.
func (s *Sinks) IsSink() bool { return len(s.kinds()) > 0 }

// OpenSink opens a sink without a triple store.
func (s *Sinks) OpenSink() (sink.Sink, error) {
	k := s.kinds()[0]
	return k.open(*k.at(s))
}

// Place names a sink or an embedded store, "" for a remote store.
func (s *Store) Place() string {
	for _, k := range s.kinds() {
		return k.key + ":" + *k.at(&s.Sinks)
	}
	return s.Embedded
}

// paths are the keys of a store with a path on this machine.
func (s *Store) paths() map[string]*string {
	all := map[string]*string{}
	if s.Embedded != "" {
		all["embedded"] = &s.Embedded
	}
	for _, k := range s.kinds() {
		if k.folder != nil {
			all[k.key] = k.at(&s.Sinks)
		}
	}
	return all
}

// Folder is where a store keeps its files, "" for a place elsewhere.
func (s *Store) Folder() string {
	for _, k := range s.kinds() {
		if k.folder != nil {
			return k.folder(*k.at(&s.Sinks))
		}
	}
	return s.Embedded
}

// Into gives an empty store a place like embedded:DIR, files:DIR or dump:FILE. It refuses other ones
// by false.
func (s *Store) Into(place string) bool {
	key, at, _ := strings.Cut(place, ":")
	if key == "embedded" {
		s.Embedded = at
	}
	for _, k := range sinkKinds {
		if k.key == key {
			*k.at(&s.Sinks) = at
		}
	}
	return s.IsLocal()
}

// sinkKeys are the keys of Sinks, for people.
func sinkKeys() string {
	var all []string
	for _, k := range sinkKinds {
		all = append(all, k.key)
	}
	return strings.Join(all, " or ")
}
