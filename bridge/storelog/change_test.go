package storelog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestChanges: terms as Jena writes them are read, and torn lines are not.
func TestChanges(t *testing.T) {
	for text, want := range map[string]change{
		`<urn:a> <urn:p> 6.5`:                               {s: "<urn:a>", p: "<urn:p>", o: "6.5"},
		`<urn:a> <urn:p> true`:                              {s: "<urn:a>", p: "<urn:p>", o: "true"},
		`<urn:a> <urn:p> "x y"@en`:                          {s: "<urn:a>", p: "<urn:p>", o: `"x y"@en`},
		`<urn:a> <urn:p> "a\"b<urn:z> ."^^<urn:dt> <urn:g>`: {s: "<urn:a>", p: "<urn:p>", o: `"a\"b<urn:z> ."^^<urn:dt>`, g: "<urn:g>"},
		`<_:b1> <urn:p> _:b2 <urn:g>`:                       {s: "<_:b1>", p: "<urn:p>", o: "<_:b2>", g: "<urn:g>"},
		`<urn:a> <urn:p> <_:4H id <uuid:1>`:                 {},
		`<urn:a> <ur`:                                       {},
		`<urn:a> <urn:p> "no end`:                           {},
		`<< <urn:a> <urn:p> 1 >> <urn:p> 1`:                 {},
		`<urn:a> <urn:p> x:name`:                            {},
		`"a" <urn:p> 1`:                                     {},
	} {
		got, ok := parseChange(false, text)
		if ok != (want.s != "") || ok && got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, ok, want)
		}
	}
}

const first = "H id <uuid:1> .\nTX .\nA <urn:a> <urn:p> 1 .\nTC .\n"

// TestPlaces: a place in a log is found again in a rotated file, and what is not there is a gap.
func TestPlaces(t *testing.T) {
	second := "H id <uuid:2> .\nH prev <uuid:1> .\nTX .\nD <urn:b> <urn:p> 1 .\nTC .\nH id <uuid:3> .\nH prev <uuid:2> .\nTX .\nA <urn:no> <urn:p> 1 .\nTA .\n"
	for name, c := range map[string]struct {
		files map[string]string
		gap   bool
		place string // of the one subject, "" for none
	}{
		"goes on":             {map[string]string{"log": first + second}, false, "<urn:b>"},
		"nothing new":         {map[string]string{"log": first}, false, ""},
		"partly written":      {map[string]string{"log": first + "H id <uuid:2> .\nH prev <uuid:1> .\nTX .\nA <urn:b> <ur"}, false, ""},
		"rotated":             {map[string]string{"log.1": first, "log": second}, false, "<urn:b>"},
		"rotated, and empty":  {map[string]string{"log.1": first, "log": ""}, false, ""},
		"removed":             {map[string]string{}, true, ""},
		"another":             {map[string]string{"log": "H id <uuid:9> .\nTX .\nA <urn:b> <urn:p> 1 .\nTC .\n"}, true, "<urn:b>"},
		"restarted":           {map[string]string{"log": first + "H id <uuid:9> .\nTX .\nA <urn:b> <urn:p> 1 .\nTC .\n"}, true, "<urn:b>"},
		"torn, and restarted": {map[string]string{"log": first + "H id <uuid:2> .\nH prev <uuid:1> .\nTX .\nA <urn:a> <urH id <uuid:9> .\nTX .\nA <urn:b> <urn:p> 1 .\nTC .\n"}, true, "<urn:b>"},
	} {
		dir := t.TempDir()
		write := func(files map[string]string) {
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if file != "log" { // written before the log of now
					old := time.Now().Add(-time.Minute)
					if err := os.Chtimes(filepath.Join(dir, file), old, old); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		p := &Patches{File: filepath.Join(dir, "log")}
		write(map[string]string{"log": first})
		start, err := p.read("")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(p.File); err != nil {
			t.Fatal(err)
		}
		write(c.files)
		r, err := p.read(start.end)
		if err != nil || r.gap != c.gap {
			t.Errorf("%s: gap %v, want %v, %v", name, r.gap, c.gap, err)
		}
		if !c.gap && (len(r.places) > 1 || c.place != "" && !r.places[[2]string{c.place, ""}] || c.place == "" && len(r.places) > 0) {
			t.Errorf("%s: %v, want %q", name, r.places, c.place)
		}
	}
}

// TestOpenTransaction: a transaction that grows is read once, and taken at its end. One with a line or
// changes beyond the bounds is unknown.
func TestOpenTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		gap  bool
	}{
		"small": {"A <urn:b> <urn:p> 1 .\n", false},
		"line":  {"A <urn:b> <urn:p> \"" + strings.Repeat("x", maxLine) + "\" .\n", true},
		"bytes": {"A <urn:b> <urn:p> \"" + strings.Repeat("x", maxLine/2) + "\" .\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Patches{File: filepath.Join(t.TempDir(), "log")}
			log, err := os.Create(p.File)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			write := func(text string) {
				t.Helper()
				if _, err := log.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			read, place := int64(0), ""
			look := func() *reading {
				t.Helper()
				r, err := p.read(place)
				if err != nil {
					t.Fatal(err)
				}
				p.tail, read = r.tail, read+r.bytes
				return r
			}
			write(first)
			place = look().end
			write("H id <uuid:2> .\nH prev <uuid:1> .\nTX .\n")
			for range 40 {
				half := len(c.line) / 2
				for _, part := range []string{c.line[:half], c.line[half:]} {
					write(part)
					if r := look(); r.end != place || len(r.places) > 0 {
						t.Fatalf("an open transaction is taken: %v", r.places)
					}
				}
			}
			write("TC .\n")
			r := look()
			if r.end == place || r.gap != c.gap || !c.gap && !r.places[[2]string{"<urn:b>", ""}] {
				t.Errorf("gap %v, %v", r.gap, r.places)
			}
			if at, err := log.Seek(0, io.SeekCurrent); err != nil || read > at {
				t.Errorf("%d bytes read of %d, %v", read, at, err)
			}
			place = r.end
			write("H id <uuid:3> .\nH prev <uuid:2> .\nTX .\nA <urn:c> <urn:p> 1 .\nTC .\n")
			if r := look(); r.gap || !r.places[[2]string{"<urn:c>", ""}] || len(r.places) > 1 {
				t.Errorf("after it: gap %v, %v", r.gap, r.places)
			}
		})
	}
}

// TestRotatedInTransaction: the first transaction of a new file is read once, however it grows.
func TestRotatedInTransaction(t *testing.T) {
	p := &Patches{File: filepath.Join(t.TempDir(), "log")}
	if err := os.WriteFile(p.File, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	place := ""
	look := func() *reading {
		t.Helper()
		r, err := p.read(place)
		if err != nil || r.gap && place != "" {
			t.Fatalf("gap %v, %v", r.gap, err)
		}
		p.tail, place = r.tail, r.end
		return r
	}
	look()
	if err := os.Rename(p.File, p.File+".1"); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(p.File)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	read, size := int64(0), int64(0)
	var r *reading
	for _, text := range []string{"H id <uuid:2> .\n", "H prev <uuid:1> .\nTX .\n", "A <urn:b> <urn:p> 1 .\n", "A <urn:c> <ur", "n:p> 1 .\n", "TC .\n"} {
		if _, err := log.WriteString(text); err != nil {
			t.Fatal(err)
		}
		r = look()
		read, size = read+r.bytes, size+int64(len(text))
	}
	if read != size || len(r.places) != 2 {
		t.Errorf("%d bytes read of %d; %v", read, size, r.places)
	}
}
