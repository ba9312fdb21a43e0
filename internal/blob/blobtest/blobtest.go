// Package blobtest is the suite that every blob.Store passes.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/internal/blob"
)

// Run tests the stores made by open; each is empty.
func Run(t *testing.T, open func(testing.TB) blob.Store) {
	for name, f := range map[string]func(*testing.T, blob.Store){
		"create": testCreate, "swap": testSwap, "ranges": testRanges, "list": testList, "names": testNames, "below": testBelow, "seeker": testSeeker,
		"race of creates": testCreateRace, "race of swaps": testSwapRace, "ended context": testEnded,
	} {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

func create(t *testing.T, s blob.Store, name, body string) {
	t.Helper()
	if err := s.Create(t.Context(), name, strings.NewReader(body), int64(len(body)), blob.Meta{}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s blob.Store, name string, off, n int64) string {
	t.Helper()
	r, info, err := s.Open(t.Context(), name, off, n)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil || info.Name != name {
		t.Fatalf("Open %s = %q, %v", name, info.Name, err)
	}
	return string(data)
}

func names(t *testing.T, s blob.Store, prefix, after string) []string {
	t.Helper()
	var out []string
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Name)
	}
	return out
}

func testCreate(t *testing.T, s blob.Store) {
	create(t, s, "a/b", "first")
	for _, body := range []string{"other", "first"} {
		if err := s.Create(t.Context(), "a/b", strings.NewReader(body), int64(len(body)), blob.Meta{}); !errors.Is(err, blob.ErrExists) {
			t.Errorf("Create again with %q = %v, want ErrExists", body, err)
		}
	}
	if err := s.Create(t.Context(), "short", strings.NewReader("four"), 5, blob.Meta{}); err == nil {
		t.Error("Create takes fewer bytes than it was told")
	}
	if got := names(t, s, "", ""); !slices.Equal(got, []string{"a/b"}) {
		t.Errorf("after a failed Create there are %q", got)
	}
	r := strings.NewReader("whole") // a reader not at its beginning
	if _, err := r.Seek(3, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "whole", r, 5, blob.Meta{}); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("of a file"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "file", file, 9, blob.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Errorf("the caller's file is closed: %v", err)
	}
	if err := s.Create(t.Context(), "file", file, 9, blob.Meta{}); !errors.Is(err, blob.ErrExists) {
		t.Errorf("Create of a file again = %v, want ErrExists", err)
	}
	create(t, s, "empty", "")
	for name, want := range map[string]string{"a/b": "first", "whole": "whole", "file": "of a file", "empty": ""} {
		if got := read(t, s, name, 0, -1); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	if err := s.Delete(t.Context(), "a/b", "never"); err != nil {
		t.Error(err)
	}
	if _, err := blob.Stat(t.Context(), s, "a/b"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Stat of a removed object = %v", err)
	}
	if _, _, err := s.Open(t.Context(), "a/b", 0, -1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Open of a removed object = %v", err)
	}
	if err := s.Delete(t.Context()); err != nil {
		t.Errorf("Delete of nothing = %v", err)
	}
}

func testSwap(t *testing.T, s blob.Store) {
	swap := func(data string, old blob.Tag) (blob.Tag, error) {
		return s.Swap(t.Context(), "live/p.xml", []byte(data), old, blob.Meta{Generation: 7, ContentType: "application/xml"})
	}
	if _, err := swap("x", "none"); !errors.Is(err, blob.ErrChanged) {
		t.Errorf("Swap of an absent object by a tag = %v, want ErrChanged", err)
	}
	one, err := swap("1", "")
	if err != nil || one == "" {
		t.Fatalf("Swap of an absent object = %q, %v", one, err)
	}
	if _, err := swap("x", ""); !errors.Is(err, blob.ErrChanged) {
		t.Errorf("Swap of a present object without its tag = %v, want ErrChanged", err)
	}
	two, err := swap("2", one)
	if err != nil || two == one {
		t.Fatalf("Swap = %q after %q, %v", two, one, err)
	}
	if _, err := swap("x", one); !errors.Is(err, blob.ErrChanged) {
		t.Errorf("Swap by an old tag = %v, want ErrChanged", err)
	}
	info, err := blob.Stat(t.Context(), s, "live/p.xml")
	if err != nil || info.Tag != two || info.Size != 1 || info.Modified.IsZero() {
		t.Errorf("Stat = %+v, %v; want the tag %q", info, err, two)
	}
	if got := read(t, s, "live/p.xml", 0, -1); got != "2" {
		t.Errorf("the object has %q", got)
	}
}

func testRanges(t *testing.T, s blob.Store) {
	body := strings.Repeat("0123456789", 10000)
	create(t, s, "long", body)
	for _, r := range []struct{ off, n int64 }{{0, -1}, {0, 1}, {0, 100000}, {5, 10}, {99990, 10}, {99990, 100}, {50000, -1}, {0, 200000}, {0, 0}} {
		end := int64(len(body))
		if r.n >= 0 {
			end = min(end, r.off+r.n)
		}
		got := read(t, s, "long", r.off, r.n)
		if got != body[r.off:end] {
			t.Errorf("Open at %d of %d: %d bytes, want %d", r.off, r.n, len(got), end-r.off)
		}
	}
	if info, err := blob.Stat(t.Context(), s, "long"); err != nil || info.Size != int64(len(body)) {
		t.Errorf("Stat = %+v, %v", info, err)
	}
}

func testList(t *testing.T, s blob.Store) {
	if got := names(t, s, "", ""); len(got) > 0 {
		t.Errorf("an empty store has %q", got)
	}
	want := []string{"a", "a-b", "a.b", "a/b", "a/b/c", "a/c", "ab/c", "b"}
	want = slices.DeleteFunc(want, func(name string) bool { return name == "a" || name == "a/b" }) // no file and folder of one name
	for i := range 25 {
		want = append(want, fmt.Sprintf("many/%02d", i))
	}
	for _, i := range []int{3, 0, 2, 1} {
		create(t, s, want[i], "x")
	}
	for _, name := range want[4:] {
		create(t, s, name, "x")
	}
	slices.Sort(want)
	for _, c := range []struct{ prefix, after string }{{"", ""}, {"a", ""}, {"a/", ""}, {"many/", ""}, {"many/", "many/07"}, {"", "a/c"}, {"", "a.b"}, {"many/1", "many/15"}, {"none", ""}, {"", "z"}} {
		var expect []string
		for _, name := range want {
			if strings.HasPrefix(name, c.prefix) && name > c.after {
				expect = append(expect, name)
			}
		}
		if got := names(t, s, c.prefix, c.after); !slices.Equal(got, expect) {
			t.Errorf("List(%q, %q) = %q, want %q", c.prefix, c.after, got, expect)
		}
	}
	n := 0
	for range s.List(t.Context(), "", "") {
		if n++; n == 3 {
			break
		}
	}
	if err := s.Delete(t.Context(), want...); err != nil {
		t.Error(err)
	}
	if got := names(t, s, "", ""); len(got) > 0 {
		t.Errorf("after Delete there are %q", got)
	}
}

func testNames(t *testing.T, s blob.Store) {
	for _, name := range []string{"", "/a", "a/", "a//b", "../a", "a/../b", "a b", ".tmp-a", "a/.tmp-b", "a\x00", "ä", `a\b`} {
		if err := s.Create(t.Context(), name, strings.NewReader(""), 0, blob.Meta{}); err == nil {
			t.Errorf("Create takes the name %q", name)
		}
		if _, _, err := s.Open(t.Context(), name, 0, -1); err == nil {
			t.Errorf("Open takes the name %q", name)
		}
	}
	create(t, s, "live/.well-known/resourcesync", "x")
}

func testBelow(t *testing.T, s blob.Store) {
	create(t, s, "outside", "x")
	in := blob.Below(s, "in")
	create(t, in, "a/b", "1")
	create(t, in, "c", "2")
	if got := names(t, in, "", ""); !slices.Equal(got, []string{"a/b", "c"}) {
		t.Errorf("below are %q", got)
	}
	if got := names(t, in, "", "a/b"); !slices.Equal(got, []string{"c"}) {
		t.Errorf("below and after a/b are %q", got)
	}
	if got := read(t, in, "a/b", 0, -1) + read(t, s, "in/c", 0, -1); got != "12" {
		t.Errorf("read %q", got)
	}
	if tag, err := in.Swap(t.Context(), "c", []byte("3"), "none", blob.Meta{}); !errors.Is(err, blob.ErrChanged) {
		t.Error(tag, err)
	}
	other := blob.Below(s, "other")
	create(t, other, "c", "2")
	if n, err := blob.Move(t.Context(), in, other); err != nil || n != 2 {
		t.Errorf("Move = %d, %v", n, err)
	}
	if got := names(t, s, "", ""); !slices.Equal(got, []string{"other/a/b", "other/c", "outside"}) {
		t.Errorf("after Move there are %q", got)
	}
	create(t, in, "c", "3")
	if _, err := blob.Move(t.Context(), in, other); !errors.Is(err, blob.ErrExists) {
		t.Errorf("Move to another object = %v", err)
	}
	if got := read(t, in, "c", 0, -1) + read(t, other, "c", 0, -1); got != "32" {
		t.Errorf("after it there are %q", got)
	}
	if err := in.Delete(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	if err := other.Delete(t.Context(), "outside"); err != nil {
		t.Error(err)
	}
	if err := blob.Clear(t.Context(), other); err != nil {
		t.Error(err)
	}
	if got := names(t, s, "", ""); !slices.Equal(got, []string{"outside"}) {
		t.Errorf("left are %q", got)
	}
}

func testSeeker(t *testing.T, s blob.Store) {
	body := strings.Repeat("0123456789", 5000)
	create(t, s, "package.zip", body)
	for _, c := range []struct {
		header, want string
		code         int
	}{{"", body, 200}, {"bytes=10-19", body[10:20], 206}, {"bytes=-5", body[len(body)-5:], 206}, {"bytes=49990-", body[49990:], 206}} {
		rec, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		req.Header.Set("Range", c.header)
		r, info, err := blob.Seeker(t.Context(), s, "package.zip")
		if err != nil || info.Size != int64(len(body)) {
			t.Fatal(info, err)
		}
		http.ServeContent(rec, req, "a.zip", info.Modified, r)
		if rec.Code != c.code || rec.Body.String() != c.want {
			t.Errorf("Range %q: %d, %d bytes", c.header, rec.Code, rec.Body.Len())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := blob.Seeker(t.Context(), s, "gone"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a missing object: %v", err)
	}
}

// Writers race for each name.
const writers = 16

// race runs 16 writers at once, and gives the one that won.
func race(t *testing.T, lost error, write func(i int) error) int {
	t.Helper()
	var wg sync.WaitGroup
	var winner, won atomic.Int32
	start := make(chan struct{})
	for i := range writers {
		wg.Go(func() {
			<-start
			switch err := write(i); {
			case err == nil:
				winner.Store(int32(i))
				won.Add(1)
			case !errors.Is(err, lost):
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of %d writers won", won.Load(), writers)
	}
	return int(winner.Load())
}

func testCreateRace(t *testing.T, s blob.Store) {
	for round := range 3 {
		name := fmt.Sprintf("race/%d", round)
		body := func(i int) []byte { return bytes.Repeat([]byte{'a' + byte(i)}, 1000+i) }
		i := race(t, blob.ErrExists, func(i int) error {
			return s.Create(t.Context(), name, bytes.NewReader(body(i)), int64(len(body(i))), blob.Meta{})
		})
		if read(t, s, name, 0, -1) != string(body(i)) {
			t.Errorf("the object is not of the writer %d, who won", i)
		}
	}
}

func testSwapRace(t *testing.T, s blob.Store) {
	var tag blob.Tag
	for round := range 3 {
		i := race(t, blob.ErrChanged, func(i int) error {
			_, err := s.Swap(t.Context(), "live/p", fmt.Appendf(nil, "%d by %d", round, i), tag, blob.Meta{})
			return err
		})
		if got, want := read(t, s, "live/p", 0, -1), fmt.Sprintf("%d by %d", round, i); got != want {
			t.Errorf("the object has %q, want %q", got, want)
		}
		info, err := blob.Stat(t.Context(), s, "live/p")
		if err != nil {
			t.Fatal(err)
		}
		tag = info.Tag
	}
}

func testEnded(t *testing.T, s blob.Store) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := s.Create(ctx, "a", strings.NewReader("a"), 1, blob.Meta{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Create = %v", err)
	}
	if _, err := s.Swap(ctx, "b", []byte("b"), "", blob.Meta{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Swap = %v", err)
	}
	if got := names(t, s, "", ""); len(got) > 0 {
		t.Errorf("with an ended context %q were written", got)
	}
}
