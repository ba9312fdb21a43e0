package feed

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// changeSorter puts the changes of a list in the order of their times, or the other way
// round, on disk: a list may have millions of them.
type changeSorter struct {
	sorter   *extsort.Sorter
	dl       *Download
	backward bool
	n        uint64
}

func (src *Source) newChangeSorter(dl *Download, backward bool) (*changeSorter, error) {
	sorter, err := extsort.New(src.Docs.opt.TempDir, src.Docs.opt.MemoryBytes/4)
	if err != nil {
		return nil, fmt.Errorf("temporary files: %w", err)
	}
	return &changeSorter{sorter: sorter, dl: dl, backward: backward}, nil
}

// sortChanges reads a list into a sorter.
func (src *Source) sortChanges(dl *Download, backward bool) (_ *changeSorter, err error) {
	s, err := src.newChangeSorter(dl, backward)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	r, err := src.Docs.reader(dl)
	if err != nil {
		return nil, err
	}
	return s, eachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		it, err := changeItem(e, r, dl)
		if err != nil {
			return err
		}
		return s.add(it)
	})
}

func (s *changeSorter) add(it *item.Item) error {
	s.n++
	k := make([]byte, 0, 20)
	if s.backward {
		k = binary.BigEndian.AppendUint64(k, ^s.n)
		k = append(k, make([]byte, 12)...)
	} else {
		k = binary.BigEndian.AppendUint64(k, uint64(it.Time.Unix())^1<<63)
		k = binary.BigEndian.AppendUint32(k, uint32(it.Time.Nanosecond()))
		k = binary.BigEndian.AppendUint64(k, s.n)
	}
	v := append(ledger.AppendString(nil, it.TimeGate), 0)
	if it.Blind {
		v[len(v)-1] = 1
	}
	return s.sorter.Add(k, append(v, it.Encode()...))
}

// items yields the changes in order. Their patches are not kept: the whole is fetched in their
// place.
func (s *changeSorter) items() iter.Seq2[*item.Item, error] {
	return func(yield func(*item.Item, error) bool) {
		for rec, err := range s.sorter.Sort() {
			var it *item.Item
			if err == nil {
				d := ledger.Decoder{B: rec.Value}
				gate, blind := d.String(), d.Flag()
				if it, err = item.Decode(d.B); err == nil {
					it.TimeGate, it.Blind = gate, blind
					it.Ask.Opened = s.dl.ZIP
				}
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

func (s *changeSorter) close() {
	if s != nil {
		s.sorter.Close()
	}
}
