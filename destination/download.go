package destination

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// download is a body on disk: a list, a package. Close removes it.
type download struct {
	url         string // after redirects
	file        *os.File
	size        int64
	header      http.Header
	notModified bool
	digest      rdfres.Digest // of the bytes as they came
	max         int64
	index       bool // an index, known once it was opened
	numbered    bool // its root tells the position in the source's log; likewise
	untold      bool // an index of which nothing proves which list is the last; likewise
	pkg         *changePackage
	zip         *resourcesync.Package // a package that is read as the Change List that its manifest is
	closer      io.Closer             // of its manifest
	stop        func()                // ends what reads it ahead; nil: nothing does
	pages       []listPage            // where it goes on by next links: all, the first included
	ends        string                // where the last next link leads, to another part of the same index
}

// name stands for the document as it is.
func (d *download) name() uint64 { return hash64(d.url + " " + d.digest.String()) }

func (d *download) Close() error {
	if d == nil || d.file == nil {
		return nil
	}
	name := d.file.Name()
	var err error
	d.stopped()
	if d.closer != nil {
		err = d.closer.Close()
	}
	return errors.Join(err, d.file.Close(), os.Remove(name))
}

// etag and modified are the validators for the next conditional request, "" when
// they cannot be relied on: servers make both from the time of a file in whole
// seconds, so that a document which was written in the very seconds of the answer
// may be written again and keep them (RFC 9110, section 8.8.2.2).
func (d *download) etag() string     { return d.validator("ETag") }
func (d *download) modified() string { return d.validator("Last-Modified") }

func (d *download) validator(name string) string {
	if len(d.pages) > 0 { // they say nothing of the other pages
		return ""
	}
	v := d.header.Get(name)
	changed, err := http.ParseTime(d.header.Get("Last-Modified"))
	if err != nil {
		if name == "Last-Modified" {
			return ""
		}
		return v // an entity tag alone says nothing of times
	}
	answered, err := http.ParseTime(d.header.Get("Date"))
	if err != nil || answered.Sub(changed) < 2*time.Second {
		return ""
	}
	return v
}

// length is the size of a document that its root alone tells to be the same, 0 for one in pages.
func (d *download) length() int64 {
	if len(d.pages) > 0 {
		return 0
	}
	return d.size
}

// settled tells that the answer is of at least two seconds after a time, so that
// no other state of the source has it. A time may be told without its seconds, or as a
// day.
func (d *download) settled(at time.Time) bool {
	answered, err := http.ParseTime(d.header.Get("Date"))
	return err == nil && !at.IsZero() && answered.Sub(at) >= lasts(at)
}

// listTakes is how long a list may take to be made: its time is that of its beginning.
const listTakes = 6 * time.Hour

// past tells that no other list of a time will be there any more.
func (d *download) past(at time.Time) bool {
	answered, err := http.ParseTime(d.header.Get("Date"))
	return err == nil && !at.IsZero() && answered.Sub(at) >= lasts(at)+listTakes
}

// listState recognizes a list or dump, of which this is the document.
func (d *download) listState(address string, h *resourcesync.Head) listState {
	at := h.SnapshotTime()
	return listState{URL: address, ETag: d.etag(), Modified: d.modified(), Digest: d.digest.String(), At: at, Index: h.Index, Fresh: !d.settled(at), past: d.past(at)}
}

// served is when the answer was given, by the clock of its server where that tells, and
// by that or ours, whichever is later: what is of a later time was still to come.
func (d *download) served(now time.Time) (at, latest time.Time) {
	at = servedAt(d.header, now)
	if at.Before(now) {
		return at, now
	}
	return at, at
}

// servedAt is when an answer was given, by the clock of its server where that tells.
func servedAt(h http.Header, now time.Time) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at
	}
	return now
}

// firstBytes are enough for the root of a document.
const firstBytes = 16 << 10

// open reads the download from its start, with gzip undone, whether it was told
// in a header or shows in the bytes (a stored .xml.gz). Each call is a pass.
func (d *download) open() (io.Reader, error) {
	d.stopped()
	r, err := unzipped(io.NewSectionReader(d.file, 0, d.size), d.max, d.url)
	if _, packed := r.(*boundedReader); packed && d.size >= aheadFrom {
		r, d.stop = readAhead(r)
	}
	return r, err
}

func (d *download) stopped() {
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
}

// aheadFrom is the size from which a packed document is unpacked beside its reading,
// which takes about as long.
const aheadFrom = 64 << 10

// readAhead reads r one buffer ahead, until stop is called.
func readAhead(r io.Reader) (ahead io.Reader, stop func()) {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() { // ends when the reader closes the pipe, at the latest
		defer close(done)
		_, err := io.CopyBuffer(struct{ io.Writer }{pw}, r, make([]byte, 64<<10))
		pw.CloseWithError(err)
	}()
	return pr, func() {
		pr.Close()
		<-done
	}
}

// unzipped undoes gzip, where it shows in the bytes: twice where a file that is packed
// was packed once more on its way.
func unzipped(in sized, limit int64, what string) (io.Reader, error) {
	r, buffer := io.Reader(in), int(min(max(in.Size(), 4<<10), 64<<10))
	for layer := 0; ; layer++ {
		b := bufio.NewReaderSize(r, buffer)
		magic, _ := b.Peek(2)
		if !bytes.Equal(magic, gzipBytes) || layer == 2 {
			if layer > 0 {
				return &boundedReader{r: b, left: limit, what: what}, nil
			}
			return b, nil
		}
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%s: gzip: %w", shorten(what), err)
		}
		r, buffer = &boundedReader{r: z, left: limit, what: what}, 4<<10 // for a look at its first bytes
	}
}

// sized is a body of known length: most are short, and so is their buffer.
type sized interface {
	io.Reader
	Size() int64
}

// boundedReader fails beyond a number of bytes instead of ending silently.
type boundedReader struct {
	r    io.Reader
	left int64
	what string
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("%w: %s unpacks to too much", errTooLarge, shorten(b.what))
	}
	return n, err
}

// download brings a body to disk. What broke off is taken up again with Range
// and If-Range where the server has a strong validator; otherwise from the
// start. With validators in r an unchanged document comes back as notModified.
func (f *fetcher) download(ctx context.Context, dir string, r request) (_ *download, err error) {
	select {
	case f.sem <- struct{}{}:
		defer func() { <-f.sem }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	file, err := ownfile.CreateTemp(dir, "rsbridge-*.part")
	if err != nil {
		return nil, fmt.Errorf("temporary file for %s: %w", shorten(r.url), err)
	}
	d := &download{url: r.url, file: file, max: r.max}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	sum := sha256.New()
	validator := ""
	resumed := 0
	err = f.repeat(ctx, r, func() (bool, error) {
		before := d.size
		q := r
		if d.size > 0 && validator != "" {
			q.rangeFrom, q.ifRange = d.size, validator
			q.etag, q.modified = "", ""
		} else if err := d.restart(sum); err != nil {
			return false, err
		}
		err := f.downloadOnce(ctx, q, d, sum, &validator)
		progress := d.size > before+(64<<10) && resumed < 1000
		if progress {
			resumed++
		}
		return progress, err
	})
	if err != nil {
		return nil, err
	}
	copy(d.digest[:], sum.Sum(nil))
	return d, nil
}

func (d *download) restart(sum hash.Hash) error {
	d.size = 0
	sum.Reset()
	if err := d.file.Truncate(0); err != nil {
		return err
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return err
}

func (f *fetcher) downloadOnce(ctx context.Context, r request, d *download, sum hash.Hash, validator *string) error {
	resp, err := f.open(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fail := func(err error, temporary bool) error {
		return &fetchError{URL: r.url, Status: resp.StatusCode, Temporary: temporary, Err: err}
	}
	d.url, d.header = resp.Request.URL.String(), resp.Header
	total := int64(-1)
	switch {
	case resp.StatusCode == http.StatusNotModified:
		d.notModified = true
		return nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		*validator = "" // what we hold is not part of it any more
		return fail(errors.New("the server does not know the rest of what it began"), true)
	case resp.StatusCode == http.StatusPartialContent:
		if r.rangeFrom == 0 && webclient.Whole(resp) {
			break
		}
		tag, ok := resp.Header.Get("ETag"), false
		if total, ok = webclient.Continues(resp, r.rangeFrom); !ok || r.rangeFrom == 0 || tag != "" && tag != r.ifRange {
			*validator = ""
			return fail(fmt.Errorf("asked for bytes from %d of %s, got %q of %s", r.rangeFrom, r.ifRange, resp.Header.Get("Content-Range"), tag), true)
		}
	case r.rangeFrom > 0: // it changed meanwhile, or ranges are not known: from the start
		if err := d.restart(sum); err != nil {
			return err
		}
	}
	if _, err := webclient.Packed(resp.Header); err != nil {
		return fail(err, false)
	}
	*validator = resp.Header.Get("ETag")
	if strings.HasPrefix(*validator, "W/") || *validator == "" {
		*validator = ""
	}
	if r.max > 0 && resp.ContentLength > 0 && d.size+resp.ContentLength > r.max {
		return fail(fmt.Errorf("%w: %d bytes announced, at most %d are taken", errTooLarge, d.size+resp.ContentLength, r.max), false)
	}
	body := io.Reader(resp.Body)
	if r.unchanged != nil && d.size == 0 {
		first := make([]byte, firstBytes)
		n, err := io.ReadFull(resp.Body, first)
		if err == nil && r.unchanged(first, resp.ContentLength) {
			d.notModified = true
			return nil
		}
		body = io.MultiReader(bytes.NewReader(first[:n]), resp.Body)
	}
	n, err := io.Copy(io.MultiWriter(d.file, sum), body)
	d.size += n
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = fmt.Errorf("body was cut: %d of %d bytes: %w", n, resp.ContentLength, io.ErrUnexpectedEOF)
	}
	if err == nil && total >= 0 && d.size < total {
		err = fmt.Errorf("body was cut: %d of %d bytes: %w", d.size, total, io.ErrUnexpectedEOF)
	}
	if err == nil && r.max > 0 && d.size > r.max {
		err = fmt.Errorf("%w: more than %d bytes", errTooLarge, r.max)
	}
	if err != nil {
		var pe *os.PathError // our own disk: no use in asking again
		return fail(err, !errors.Is(err, errTooLarge) && !errors.As(err, &pe))
	}
	return nil
}

// verify compares a download with what its entry promised.
func (d *download) verify(length int64, want resourcesync.Hashes) error {
	if length >= 0 && d.size != length {
		return fmt.Errorf("%s has %d bytes, promised were %d", shorten(d.url), d.size, length)
	}
	if want.IsZero() || (want.SHA256 == "" && want.MD5 == "" && want.SHA1 == "") {
		return nil
	}
	d.stopped()
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := want.CheckReader(bufio.NewReaderSize(d.file, 256<<10)); err != nil {
		return fmt.Errorf("%s: %w", shorten(d.url), err)
	}
	return nil
}
