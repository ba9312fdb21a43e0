package resourcesync

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
)

func TestAheadReader(t *testing.T) {
	whole := make([]byte, 5*windowBytes+1234)
	for i := range whole {
		whole[i] = byte(rand.Uint32())
	}
	reads := 0
	a := &aheadReader{r: readAt(func(b []byte, off int64) (int, error) {
		reads++
		return bytes.NewReader(whole).ReadAt(b, off)
	}), size: int64(len(whole))}
	for off := 0; off+100 <= len(whole); off += 100 {
		if b := make([]byte, 100); !readsAs(t, a, b, int64(off), whole) {
			return
		}
	}
	if reads > 12 { // six windows, and what lies in two of them
		t.Errorf("%d reads", reads)
	}
	var together sync.WaitGroup
	b := &aheadReader{r: bytes.NewReader(whole), size: int64(len(whole))}
	for range 4 {
		together.Go(func() {
			for range 2000 {
				off := rand.IntN(len(whole) + 10)
				readsAs(t, b, make([]byte, rand.IntN(2*windowBytes)), int64(off), whole)
			}
		})
	}
	together.Wait()
}

// readsAs tells whether a piece is read as from the whole, with its error.
func readsAs(t *testing.T, a *aheadReader, b []byte, off int64, whole []byte) bool {
	want := make([]byte, len(b))
	n, err := bytes.NewReader(whole).ReadAt(want, off)
	got, gotErr := a.ReadAt(b, off)
	if got != n || !bytes.Equal(b[:got], want[:n]) || !errors.Is(gotErr, err) {
		t.Errorf("%d bytes at %d: %d, %v; want %d, %v", len(b), off, got, gotErr, n, err)
		return false
	}
	return true
}

// A file that is shorter than it was, or that cannot be read in part.
func TestAheadReaderOfBadFile(t *testing.T) {
	broken := errors.New("broken")
	whole := make([]byte, windowBytes)
	a := &aheadReader{r: readAt(func(b []byte, off int64) (int, error) {
		if end := off + int64(len(b)); end > 1000 {
			return max(0, copy(b, whole[min(off, 1000):1000])), broken
		}
		return copy(b, whole[off:]), nil
	}), size: windowBytes}
	if n, err := a.ReadAt(make([]byte, 10), 990); n != 10 || err != nil {
		t.Errorf("before: %d, %v", n, err)
	}
	for range 2 {
		if _, err := a.ReadAt(make([]byte, 10), 995); !errors.Is(err, broken) {
			t.Errorf("behind: %v", err)
		}
	}
	short := &aheadReader{r: bytes.NewReader(whole[:1000]), size: windowBytes}
	if _, err := short.ReadAt(make([]byte, 10), 995); err != io.EOF {
		t.Errorf("cut short: %v", err)
	}
	if n, err := short.ReadAt(make([]byte, 10), 900); n != 10 || err != nil {
		t.Errorf("cut short, before: %d, %v", n, err)
	}
	if _, err := short.ReadAt(make([]byte, 10), 995); err != io.EOF {
		t.Errorf("cut short: %v", err)
	}
}

type readAt func([]byte, int64) (int, error)

func (r readAt) ReadAt(b []byte, off int64) (int, error) { return r(b, off) }
