// Package blob keeps published bytes under names: in a folder (fileblob), or on a server of the S3
// protocol (s3blob). A name is written once and keeps its bytes, or is a pointer replaced on condition.
package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"
)

// Errors of a Store, to be found by errors.Is.
var (
	ErrExists   = errors.New("there is an object of this name")
	ErrNotFound = errors.New("there is no object of this name")
	ErrChanged  = errors.New("the object has been replaced by another writer")
)

// Store keeps objects. Safe for concurrent use, by several processes too. All is durable on return.
type Store interface {
	// Create writes an object of size bytes, read from r's beginning, whole or not at all. Of several
	// writers one succeeds, and the others get ErrExists, with equal bytes too.
	Create(ctx context.Context, name string, r io.ReadSeeker, size int64, m Meta) error

	// Swap replaces a small object if its tag is still old; "": if there is none. Otherwise it gives
	// ErrChanged. It returns the new tag.
	Swap(ctx context.Context, name string, data []byte, old Tag, m Meta) (Tag, error)

	// Open reads n bytes of an object from off on, fewer at its end; n < 0 reads to the end. With n = 0
	// only the Info is asked for, and the reader is empty.
	Open(ctx context.Context, name string, off, n int64) (io.ReadCloser, Info, error)

	// Delete removes objects; absent ones are no error.
	Delete(ctx context.Context, names ...string) error

	// List gives the objects whose names begin with prefix and come after a name, ascending. Their
	// Meta is empty. It ends after an error.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
}

// Tag names the present bytes of an object, and is opaque.
type Tag string

// Meta is sent to those who read an object from a server directly. A folder keeps none of it.
type Meta struct {
	ContentType, ContentEncoding, CacheControl string

	Generation uint64 // of the publication; 0: none
}

// Info describes an object.
type Info struct {
	Name     string
	Size     int64
	Tag      Tag
	Modified time.Time
	Meta     Meta
}

// Stat describes an object, or gives ErrNotFound.
func Stat(ctx context.Context, s Store, name string) (Info, error) {
	r, info, err := s.Open(ctx, name, 0, 0)
	if err != nil {
		return info, err
	}
	return info, r.Close()
}

// Check tells why a text is no name of an object: names are segments of letters, digits and -._ between
// slashes, and no segment begins with ".tmp-".
func Check(name string) error {
	for segment := range strings.SplitSeq(name, "/") {
		odd := strings.ContainsFunc(segment, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r))
		})
		if segment == "" || segment == "." || segment == ".." || odd || strings.HasPrefix(segment, ".tmp-") || len(segment) > 200 {
			return fmt.Errorf("blob: %q is no name of an object", name)
		}
	}
	return nil
}

// Below gives the part of a store whose names begin with prefix and a slash.
func Below(s Store, prefix string) Store { return &below{s, prefix + "/"} }

type below struct {
	s      Store
	prefix string
}

func (b *below) Create(ctx context.Context, name string, r io.ReadSeeker, size int64, m Meta) error {
	return b.s.Create(ctx, b.prefix+name, r, size, m)
}

func (b *below) Swap(ctx context.Context, name string, data []byte, old Tag, m Meta) (Tag, error) {
	return b.s.Swap(ctx, b.prefix+name, data, old, m)
}

func (b *below) Open(ctx context.Context, name string, off, n int64) (io.ReadCloser, Info, error) {
	r, info, err := b.s.Open(ctx, b.prefix+name, off, n)
	info.Name = strings.TrimPrefix(info.Name, b.prefix)
	return r, info, err
}

func (b *below) Delete(ctx context.Context, names ...string) error {
	whole := make([]string, len(names))
	for i, name := range names {
		whole[i] = b.prefix + name
	}
	return b.s.Delete(ctx, whole...)
}

func (b *below) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	if after != "" {
		after = b.prefix + after
	}
	return func(yield func(Info, error) bool) {
		for info, err := range b.s.List(ctx, b.prefix+prefix, after) {
			info.Name = strings.TrimPrefix(info.Name, b.prefix)
			if !yield(info, err) {
				return
			}
		}
	}
}

// Seeker gives an object to be read at any place, for http.ServeContent. Close it.
func Seeker(ctx context.Context, s Store, name string) (io.ReadSeekCloser, Info, error) {
	if f, ok := s.(interface {
		File(name string) (*os.File, Info, error)
	}); ok { // the system copies a file faster
		return f.File(name)
	}
	info, err := Stat(ctx, s, name)
	return &Reader{ctx: ctx, s: s, name: name, size: info.Size}, info, err
}

// Reader is an object at a place.
type Reader struct {
	ctx      context.Context
	s        Store
	name     string
	size, at int64
	open     io.ReadCloser // reads from at on; nil: nothing is open
}

func (r *Reader) Read(p []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	if r.open == nil {
		open, info, err := r.s.Open(r.ctx, r.name, r.at, -1)
		if err == nil && info.Size != r.size {
			err = errors.Join(fmt.Errorf("object %s has %d bytes, want %d", r.name, info.Size, r.size), open.Close())
		}
		if err != nil {
			return 0, err
		}
		r.open = open
	}
	n, err := r.open.Read(p)
	r.at += int64(n)
	if errors.Is(err, io.EOF) && r.at < r.size {
		err = fmt.Errorf("object %s ends after %d of %d bytes: %w", r.name, r.at, r.size, io.ErrUnexpectedEOF)
	}
	return n, err
}

// Seek moves without a request.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	at := offset
	switch whence {
	case io.SeekCurrent:
		at += r.at
	case io.SeekEnd:
		at += r.size
	}
	if at < 0 {
		return 0, fmt.Errorf("object %s: a place before its beginning", r.name)
	}
	if at == r.at {
		return at, nil
	}
	err := r.Close()
	r.at = at
	return at, err
}

// Close ends a request that is open.
func (r *Reader) Close() error {
	if r.open == nil {
		return nil
	}
	err := r.open.Close()
	r.open = nil
	return err
}

// Move takes all objects of a store to another one, and tells how many. A move that was cut goes on: what
// is there already stays. An object with other bytes there gives ErrExists, and stays in both.
func Move(ctx context.Context, from, to Store) (n int, err error) {
	for info, err := range from.List(ctx, "", "") {
		if err == nil {
			err = copyTo(ctx, from, to, info.Name)
		}
		if err == nil {
			err = from.Delete(ctx, info.Name)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// copyTo copies an object that the other store has not.
func copyTo(ctx context.Context, from, to Store, name string) error {
	r, info, err := Seeker(ctx, from, name)
	if err != nil {
		return err
	}
	defer r.Close()
	err = to.Create(ctx, name, r, info.Size, info.Meta)
	if !errors.Is(err, ErrExists) {
		return err
	}
	there, other, errThere := Seeker(ctx, to, name)
	if errThere != nil {
		return errThere
	}
	defer there.Close()
	if other.Size != info.Size {
		return err
	}
	_, errFrom := r.Seek(0, io.SeekStart)
	ours, errOurs := digest(r)
	theirs, errTheirs := digest(there)
	if errRead := errors.Join(errFrom, errOurs, errTheirs); errRead != nil || ours == theirs {
		return errRead
	}
	return err
}

func digest(r io.Reader) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	_, err = io.Copy(h, r)
	h.Sum(sum[:0])
	return sum, err
}

// Clear removes all objects of a store.
func Clear(ctx context.Context, s Store) error {
	var names []string
	for info, err := range s.List(ctx, "", "") {
		if err != nil {
			return err
		}
		names = append(names, info.Name)
	}
	return s.Delete(ctx, names...)
}
