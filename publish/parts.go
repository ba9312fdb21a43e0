package publish

import (
	"context"
	"fmt"
	"sync"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/ordered"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// partBytes bounds the entries of a part, of the 50 MB of a document.
const partBytes = 32 << 20

// partSize bounds the parts of a Resource List with usually so many entries each.
func partSize(entries int) partition.Size {
	return partition.Size{Usual: partition.Limit{Entries: int64(entries), Bytes: partBytes}, Many: partition.Many, Large: partition.Large, Most: partition.MostParts}
}

// nearlyFull is the share of an index in use from which the log warns.
const nearlyFull = 0.8

// warnFull warns when the Resource List or the Change Lists fill most of their index, once until
// it is less again. A full Resource List is no longer published.
func (w *generationWriter) warnFull() {
	s := w.set
	parts, lists := w.parts.Filled(s.sizes.partSize), float64(len(w.lists))/mostEntries
	full := max(parts, lists) >= nearlyFull
	if full && !s.warnedFull {
		s.p.log.Warn("the set becomes too large for one index: divide it into several sets (select), or keep fewer changes (retention)", "set", s.cfg.Name,
			"Resource List in use", fmt.Sprintf("%.0f %%", 100*parts), "Change Lists in use", fmt.Sprintf("%.0f %%", 100*lists))
	}
	s.warnedFull = full
}

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
