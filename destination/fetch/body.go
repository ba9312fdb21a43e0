package fetch

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

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Body is the response to a request, on disk. Close removes it.
type Body struct {
	URL         string // after redirects
	Header      http.Header
	NotModified bool // nothing came: it is as the validators of the request say
	Size        int64
	Digest      rdfres.Digest // of the bytes as they came

	file *os.File
	max  int64
}

// Close removes the file. A second call does nothing.
func (d *Body) Close() error {
	if d == nil || d.file == nil {
		return nil
	}
	file := d.file
	d.file = nil
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// ReaderAt gives the bytes as they came.
func (d *Body) ReaderAt() io.ReaderAt { return d.file }

// Append moves the bytes of p to a place in the file of d: the end of the bytes appended
// before. It closes p. Together they have at most as many bytes as one body may have.
func (d *Body) Append(p *Body, start int64) (err error) {
	defer func() { err = errors.Join(err, p.Close()) }()
	if start+p.Size > d.max {
		return fmt.Errorf("%w: all its pages have more than %d bytes", ErrTooLarge, d.max)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(d.file, start), p.file)
	return err
}

// Section reads a part of the file, with gzip undone. Errors name it by the last argument.
func (d *Body) Section(start, size int64, what string) (io.Reader, error) {
	return Unzipped(io.NewSectionReader(d.file, start, size), d.max, what)
}

// ETag and modified are the validators for the next conditional request, "" when
// they cannot be relied on: servers make both from the time of a file in whole
// seconds, so a document written in the very seconds of the answer
// may be written again and keep them (RFC 9110, section 8.8.2.2).
func (d *Body) ETag() string     { return d.validator("ETag") }
func (d *Body) Modified() string { return d.validator("Last-Modified") }

func (d *Body) validator(name string) string {
	v := d.Header.Get(name)
	changed, err := http.ParseTime(d.Header.Get("Last-Modified"))
	if err != nil {
		if name == "Last-Modified" {
			return ""
		}
		return v // an entity tag alone says nothing of times
	}
	answered, err := http.ParseTime(d.Header.Get("Date"))
	if err != nil || answered.Sub(changed) < 2*time.Second {
		return ""
	}
	return v
}

// Served is the time of the answer by the clock of its server, if it tells one, and the later of
// that and ours: anything of a later time was still to come.
func (d *Body) Served(now time.Time) (at, latest time.Time) {
	at = ServedAt(d.Header, now)
	if at.Before(now) {
		return at, now
	}
	return at, at
}

// ServedAt is the time of an answer by the clock of its server, or now.
func ServedAt(h http.Header, now time.Time) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at
	}
	return now
}

// FirstBytes are enough for the root of a document.
const FirstBytes = 16 << 10

// Open reads the download from its start, with gzip undone, whether it was told
// in a header or shows in the bytes (a stored .xml.gz). Each call is a pass.
func (d *Body) Open() (io.Reader, error) {
	return Unzipped(io.NewSectionReader(d.file, 0, d.Size), d.max, d.URL)
}

// Unzipped undoes gzip if the bytes show it: twice if a packed file was packed once more on
// its way.
func Unzipped(in sized, limit int64, what string) (io.Reader, error) {
	r, buffer := io.Reader(in), int(min(max(in.Size(), 4<<10), 64<<10))
	for layer := 0; ; layer++ {
		b := bufio.NewReaderSize(r, buffer)
		magic, _ := b.Peek(2)
		if !IsGzip(magic) || layer == 2 {
			if layer > 0 {
				return &boundedReader{r: b, left: limit, what: what}, nil
			}
			return b, nil
		}
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%s: gzip: %w", clip.Middle(what), err)
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
		return n, fmt.Errorf("%w: %s unpacks to too much", ErrTooLarge, clip.Middle(b.what))
	}
	return n, err
}

// Download brings a body to disk. A broken transfer is resumed with Range
// and If-Range if the server has a strong validator; otherwise from the
// start. With validators in r an unchanged document comes back as NotModified.
func (f *Client) Download(ctx context.Context, dir string, r Request) (_ *Body, err error) {
	select {
	case f.sem <- struct{}{}:
		defer func() { <-f.sem }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	file, err := ownfile.CreateTemp(dir, "rsbridge-*.part")
	if err != nil {
		return nil, fmt.Errorf("temporary file for %s: %w", clip.Middle(r.URL), err)
	}
	d := &Body{URL: r.URL, file: file, max: r.MaxBytes}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	sum := sha256.New()
	validator := ""
	resumed := 0
	err = f.repeat(ctx, r, func() (bool, error) {
		before := d.Size
		q := r
		if d.Size > 0 && validator != "" {
			q.rangeFrom, q.ifRange = d.Size, validator
			q.ETag, q.Modified = "", ""
		} else if err := d.restart(sum); err != nil {
			return false, err
		}
		err := f.downloadOnce(ctx, q, d, sum, &validator)
		progress := d.Size > before+(64<<10) && resumed < 1000
		if progress {
			resumed++
		}
		return progress, err
	})
	if err != nil {
		return nil, err
	}
	copy(d.Digest[:], sum.Sum(nil))
	return d, nil
}

func (d *Body) restart(sum hash.Hash) error {
	d.Size = 0
	sum.Reset()
	if err := d.file.Truncate(0); err != nil {
		return err
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return err
}

func (f *Client) downloadOnce(ctx context.Context, r Request, d *Body, sum hash.Hash, validator *string) error {
	resp, err := f.open(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fail := func(err error, temporary bool) error {
		return &Error{URL: r.URL, Status: resp.StatusCode, Temporary: temporary, Err: err}
	}
	d.URL, d.Header = resp.Request.URL.String(), resp.Header
	total := int64(-1)
	switch {
	case resp.StatusCode == http.StatusNotModified:
		d.NotModified = true
		return nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		*validator = "" // the bytes held are no part of it any more
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
	if r.MaxBytes > 0 && resp.ContentLength > 0 && d.Size+resp.ContentLength > r.MaxBytes {
		return fail(fmt.Errorf("%w: %d bytes announced, at most %d are taken", ErrTooLarge, d.Size+resp.ContentLength, r.MaxBytes), false)
	}
	body := io.Reader(resp.Body)
	if r.Unchanged != nil && d.Size == 0 {
		first := make([]byte, FirstBytes)
		n, err := io.ReadFull(resp.Body, first)
		if err == nil && r.Unchanged(first, resp.ContentLength) {
			d.NotModified = true
			return nil
		}
		body = io.MultiReader(bytes.NewReader(first[:n]), resp.Body)
	}
	n, err := io.Copy(io.MultiWriter(d.file, sum), body)
	d.Size += n
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = fmt.Errorf("body was cut: %d of %d bytes: %w", n, resp.ContentLength, io.ErrUnexpectedEOF)
	}
	if err == nil && total >= 0 && d.Size < total {
		err = fmt.Errorf("body was cut: %d of %d bytes: %w", d.Size, total, io.ErrUnexpectedEOF)
	}
	if err == nil && r.MaxBytes > 0 && d.Size > r.MaxBytes {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.MaxBytes)
	}
	if err != nil {
		var pe *os.PathError // our own disk: no use in asking again
		return fail(err, !errors.Is(err, ErrTooLarge) && !errors.As(err, &pe))
	}
	return nil
}

// Verify compares a body with the promise of its entry.
func (d *Body) Verify(length int64, want resourcesync.Hashes) error {
	if length >= 0 && d.Size != length {
		return fmt.Errorf("%s has %d bytes, promised were %d", clip.Middle(d.URL), d.Size, length)
	}
	if want.IsZero() || (want.SHA256 == "" && want.MD5 == "" && want.SHA1 == "") {
		return nil
	}
	if want.MD5 == "" && want.SHA1 == "" && strings.EqualFold(want.SHA256, d.Digest.String()) {
		return nil // counted as it came
	}
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := want.CheckReader(bufio.NewReaderSize(d.file, 256<<10)); err != nil {
		return fmt.Errorf("%s: %w", clip.Middle(d.URL), err)
	}
	return nil
}
