package embedstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// A page holds terms of one space in the order of one bulk write: most readers want many of them,
// in that order. Its key is the id of the last one. Its value is pageMark and, for each term,
//
//	the distance of its number from the term's before it, for the first from the last's
//	the number of bytes it shares with the term before it
//	the number of its other bytes, and those
//
// with the numbers as uvarints (docs/reference/state-embedded-store.md). A term that is long, or
// comes in another way, stands alone under its id, unchanged: none begins with pageMark. A page is
// of one write, so it stays or goes as a whole.
const (
	pageMark  = 0x00
	pageTerms = 64
	pageBytes = 4 << 10
)

var errPage = guardfs.Damage(errors.New("a page of terms cannot be read"))

// pageWriter writes the terms of ascending ids, of one space.
type pageWriter struct {
	w           *tables
	terms       int // of the page
	first, last id
	before      string // its last term
	body        []byte
	value       []byte
}

func (p *pageWriter) add(i id, term string) error {
	if p.terms == pageTerms || p.terms > 0 && len(p.body)+len(term) > pageBytes {
		if err := p.flush(); err != nil {
			return err
		}
	}
	shared := 0
	if p.terms == 0 {
		p.first, p.body = i, p.body[:0]
	} else {
		shared = sharedPrefix(p.before, term)
		p.body = binary.AppendUvarint(p.body, uint64(i>>2-p.last>>2))
	}
	p.body = binary.AppendUvarint(p.body, uint64(shared))
	p.body = binary.AppendUvarint(p.body, uint64(len(term)-shared))
	p.body = append(p.body, term[shared:]...)
	p.terms, p.last, p.before = p.terms+1, i, term
	return nil
}

// flush writes the page under way.
func (p *pageWriter) flush() error {
	switch p.terms {
	case 0:
		return nil
	case 1:
		p.value = append(p.value[:0], p.before...)
	default:
		p.value = binary.AppendUvarint(append(p.value[:0], pageMark), uint64(p.last>>2-p.first>>2))
		p.value = append(p.value, p.body...)
	}
	p.terms = 0
	return p.w.set(termKey(p.last), p.value)
}

func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// termCursor walks the terms of one space upwards.
type termCursor struct {
	cursor
	at   id     // of the present term, 0: there is none
	term []byte // valid until it moves
	last id     // of the page
	rest []byte // of the page
	room []byte // for a term of a page
	far  id     // from one page to the next, about
}

// to moves it to the term of an id, or to the next one if that is missing.
func (c *termCursor) to(i id) error {
	switch {
	case c.at != 0 && c.at <= i && i <= c.last:
	case c.at != 0 && c.last < i && i-c.last <= 12*max(c.far, 1<<2): // some steps take less than to seek
		for c.last < i {
			if !c.Next() {
				return c.none()
			}
			last := getID(c.Key()[1:])
			c.far = (15*c.far + last - c.last) / 16
			c.last = last
		}
		if err := c.open(); err != nil {
			return err
		}
	default:
		var key [1 + idBytes]byte
		key[0] = termSpace(i)
		putID(key[1:], i)
		if err := c.seek(key[:]); err != nil {
			return err
		}
	}
	for c.at != 0 && c.at < i {
		if err := c.next(); err != nil {
			return err
		}
	}
	return nil
}

// seek moves it to the first term of the first page with a key at or after key.
func (c *termCursor) seek(key []byte) error {
	if !c.SeekGE(key) {
		return c.none()
	}
	return c.open()
}

// next moves it to the next term.
func (c *termCursor) next() error {
	switch {
	case len(c.rest) > 0:
		far, ok := c.number()
		if !ok || far == 0 || far > uint64(c.last-c.at)>>2 {
			return c.damaged()
		}
		return c.read(c.at + id(far)<<2)
	case c.at != c.last:
		return c.damaged()
	case !c.Next():
		return c.none()
	}
	return c.open()
}

// none leaves it on no term.
func (c *termCursor) none() error {
	c.at, c.rest = 0, nil
	if err := c.Error(); err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	return nil
}

func (c *termCursor) damaged() error {
	c.at, c.rest = 0, nil
	return errPage
}

// open moves it to the first term of the cursor's page.
func (c *termCursor) open() error {
	c.last = getID(c.Key()[1:])
	value := c.Value()
	if len(value) == 0 || value[0] != pageMark {
		c.at, c.term, c.rest = c.last, value, nil
		return nil
	}
	c.rest, c.room = value[1:], c.room[:0]
	back, ok := c.number()
	if !ok || back >= uint64(c.last>>2) {
		return c.damaged()
	}
	return c.read(c.last - id(back)<<2)
}

// read takes the page's part of a term.
func (c *termCursor) read(i id) error {
	shared, ok := c.number()
	if !ok || shared > uint64(len(c.room)) {
		return c.damaged()
	}
	more, ok := c.number()
	if !ok || more > uint64(len(c.rest)) {
		return c.damaged()
	}
	c.room = append(c.room[:shared], c.rest[:more]...)
	c.at, c.term, c.rest = i, c.room, c.rest[more:]
	return nil
}

func (c *termCursor) number() (uint64, bool) {
	n, size := binary.Uvarint(c.rest)
	if size <= 0 {
		return 0, false
	}
	c.rest = c.rest[size:]
	return n, true
}
