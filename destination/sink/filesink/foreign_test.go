package filesink

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
)

type owners map[string]string

func (o owners) Owner(_ context.Context, name, loc string) (own, taken bool, err error) {
	of, taken := o[name]
	return taken && of == loc, taken, nil
}
func (owners) Take(string, string) {}
func (owners) Free(string)         {}

// Only a regular file with the same bytes is taken over without a record.
func TestInTheWay(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Open(&sink.Place{Source: "http://src.example/list.xml"})
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Mkdir(at("folder"), 0o700),
		os.WriteFile(at("same"), []byte("body"), 0o600),
		os.WriteFile(at("other"), []byte("BODY"), 0o600),
		os.WriteFile(at("longer"), []byte("body."), 0o600),
		os.WriteFile(at("ours"), []byte("older"), 0o600),
		os.WriteFile(at("neighbour"), []byte("of another resource"), 0o600),
		os.Symlink("same", at("link")),
		os.Symlink("nowhere", at("dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	known := owners{"ours": "http://src.example/ours", "neighbour": "http://src.example/other"}
	for name, want := range map[string]string{
		"none": "", "folder": "", "same": "", "same/below": "", "ours": "", "neighbour": "",
		"other": "other", "longer": "longer", "link": "link", "dangling": "dangling",
	} {
		err := m.(sink.Files).InTheWay(t.Context(), known, "http://src.example/"+name, []byte("body"))
		var foreign *sink.ForeignFileError
		if got := ""; errors.As(err, &foreign) {
			if got = foreign.Path; got != want || !errors.Is(err, sink.ErrRefused) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || want != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.(sink.Files).InTheWay(t.Context(), known, "http://src.example/same", nil); err == nil {
		t.Error("a file of any bytes is in the way of an unknown body")
	}
}
