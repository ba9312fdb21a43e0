package publish

import (
	"context"
	"sync"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/ordered"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// partBytes bounds the entries of a part, of the 50 MB of a document.
const partBytes = 32 << 20

// measure renders the entries, as assembling the parts does.
func (m *entryMaker) measure(ctx context.Context, view *source) partition.Measure {
	type sized struct {
		key   rdfres.Digest
		bytes int64
	}
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	return func(lo, hi rdfres.Digest, f func(key rdfres.Digest, bytes int64)) error {
		entities := ordered.Map(view.Current(ctx, lo, hi), func(st changetrack.State) (sized, error) {
			buf := buffers.Get().(*[]byte)
			defer buffers.Put(buf)
			var err error
			*buf, err = m.appendResource(ctx, (*buf)[:0], view, &st)
			return sized{rdfres.EntityKey(st.Entity), int64(len(*buf))}, err
		})
		for e, err := range entities {
			if err != nil {
				return err
			}
			f(e.key, e.bytes)
		}
		return m.measureFiles(ctx, view, lo, hi, f)
	}
}

// measureFiles is measure for the entries of files alone.
func (m *entryMaker) measureFiles(ctx context.Context, view *source, lo, hi rdfres.Digest, f func(key rdfres.Digest, bytes int64)) error {
	var buf []byte
	for st, err := range view.CurrentFiles(ctx, lo, hi) {
		var e resourcesync.Entry
		if err == nil {
			e, err = m.fileEntry(ctx, view, &st)
		}
		if err == nil {
			buf, err = resourcesync.AppendEntry(buf[:0], &e)
		}
		if err != nil {
			return err
		}
		f(changetrack.FileKey(st.URL), int64(len(buf)))
	}
	return nil
}

// after is the key behind a key.
func after(key rdfres.Digest) rdfres.Digest {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i]++; key[i] != 0 {
			break
		}
	}
	return key
}
