package feed

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Download is a list or package on disk. Close removes it.
type Download struct {
	*fetch.Body
	tail     bool // from the change at the cursor on; URL is that of the list
	part     bool // an index names it: a urlset is then none itself
	index    bool // an index, known once it was opened
	numbered bool // its root tells the position in the source's log; likewise
	untold   bool // an index without a proven order of its lists; likewise
	pkg      *changePackage
	ZIP      *resourcesync.Package // a package read by its manifest, as a Change List
	closer   io.Closer             // of its manifest
	pages    []listPage            // the pages of its next links: all, the first included
	ends     string                // the target of the last next link, if it is another part of the same index
}

// download brings a list or package to the folder for temporary files.
func (src *Documents) download(ctx context.Context, r fetch.Request) (*Download, error) {
	b, err := src.fetch.Download(ctx, src.opt.TempDir, r)
	if err != nil {
		return nil, err
	}
	return &Download{Body: b}, nil
}

// name stands for the document as it is.
func (d *Download) name() uint64 { return hash64(d.URL + " " + d.Digest.String()) }

func (d *Download) Close() error {
	if d == nil || d.Body == nil {
		return nil
	}
	var err error
	if d.closer != nil {
		err = d.closer.Close()
	}
	return errors.Join(err, d.Body.Close())
}

// etag and modified are the validators of the body; a document in pages has none, since those of
// its first page say nothing of the others.
func (d *Download) etag() string {
	if len(d.pages) > 0 {
		return ""
	}
	return d.Body.ETag()
}

func (d *Download) modified() string {
	if len(d.pages) > 0 {
		return ""
	}
	return d.Body.Modified()
}

// length is the size of a document recognizable by its root alone, 0 for one in pages.
func (d *Download) length() int64 {
	if len(d.pages) > 0 {
		return 0
	}
	return d.Size
}

// settled tells whether the answer is of at least two seconds after a time: no other state of the
// source has it then. A time may be told without its seconds, or as a day.
func (d *Download) settled(at time.Time) bool {
	answered, err := http.ParseTime(d.Header.Get("Date"))
	return err == nil && !at.IsZero() && answered.Sub(at) >= item.Lasts(at)
}

// listTakes is the longest making of a list: its time is of its beginning.
const listTakes = 6 * time.Hour

// past tells whether no other list of a time will be there any more.
func (d *Download) past(at time.Time) bool {
	answered, err := http.ParseTime(d.Header.Get("Date"))
	return err == nil && !at.IsZero() && answered.Sub(at) >= item.Lasts(at)+listTakes
}

// listState recognizes this document of a list or dump.
func (d *Download) listState(address string, h *resourcesync.Head) listState {
	at := h.SnapshotTime()
	return listState{URL: address, ETag: d.etag(), Modified: d.modified(), Digest: d.Digest.String(), At: at, Index: h.Index, Fresh: !d.settled(at), past: d.past(at)}
}
