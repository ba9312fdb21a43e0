package resourcesync

import (
	"io"
	"sync"
)

// aheadReader reads windows for small requests: the members of a package take two reads each and
// are read nearly in their order.
type aheadReader struct {
	r       io.ReaderAt
	size    int64
	windows [4]window
}

type window struct {
	mu   sync.Mutex
	off  int64
	data []byte // from off on, as far as it could be read; nil: nothing was read yet
}

const windowBytes = 64 << 10

func (a *aheadReader) ReadAt(b []byte, off int64) (int, error) {
	at := off / windowBytes
	if off < 0 || off+int64(len(b)) > min((at+1)*windowBytes, a.size) {
		return a.r.ReadAt(b, off)
	}
	w := &a.windows[at%int64(len(a.windows))]
	w.mu.Lock()
	defer w.mu.Unlock()
	if begin := at * windowBytes; w.data == nil || w.off != begin {
		if w.off = begin; w.data == nil {
			w.data = make([]byte, windowBytes)
		}
		w.data = w.data[:windowBytes]
		n, _ := a.r.ReadAt(w.data[:min(windowBytes, a.size-begin)], begin)
		w.data = w.data[:n]
	}
	if skip := int(off - w.off); skip+len(b) <= len(w.data) {
		return copy(b, w.data[skip:]), nil
	}
	return a.r.ReadAt(b, off) // its error tells the cause
}
