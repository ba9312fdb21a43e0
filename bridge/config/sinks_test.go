package config

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
)

// A sink elsewhere has an address, and no folder of this machine is made or tried for it.
func TestSinkElsewhere(t *testing.T) {
	kinds := sinkKinds
	t.Cleanup(func() { sinkKinds = kinds })
	refused := errors.New("has no stream")
	sinkKinds = []sinkKind{{key: "dump", at: func(s *Sinks) *string { return &s.Dump },
		open: func(string) (sink.Sink, error) { return nil, refused },
		check: func(at string) error {
			if at == "queue://broker.example" {
				return refused
			}
			return nil
		}}}
	read := func(at string) (*Config, error) {
		return Parse([]byte("stores: {q: {dump: \""+at+"\"}}\ndestinations: {copy: {source: http://x.example/, store: q}}\n"), "test.yaml")
	}
	c, err := read("queue://broker.example/changes")
	if err != nil {
		t.Fatal(err)
	}
	s := c.Stores["q"]
	if s.Dump != "queue://broker.example/changes" || s.Place() != "dump:queue://broker.example/changes" || s.TryPlace() != nil {
		t.Errorf("%q, place %q, tried: %v", s.Dump, s.Place(), s.TryPlace())
	}
	if _, err := s.OpenSink(); !errors.Is(err, refused) {
		t.Errorf("open: %v", err)
	}
	if _, err := read("queue://broker.example"); err == nil {
		t.Error("its check is not asked")
	}
}
