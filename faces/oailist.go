package faces

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Bounds of one answer.
const (
	mostRecords = 200
	mostHeaders = 1000
	mostBytes   = 8 << 20 // a fuller answer gets no further record
)

// record is an item as it is listed.
type record struct {
	member
	metadata []byte   // nil: deleted
	after    position // the position behind it
}

// position is a place in a list. The first part are the entities without a change in the log, by
// their keys: those with low < sequence <= high, after key. The log follows, after high.
type position struct {
	low, high uint64
	base      bool          // within the first part
	key       rdfres.Digest // base: the last one listed; zero: none yet
}

// listing is a requested list and the position in it: a resumption token.
type listing struct {
	prefix       string
	from, before time.Time // zero: no bound
	log          int64     // of the log: the end of its first complete scan, µs
	cursor       uint64    // records listed before
	position
}

// token writes a listing with everything needed to go on.
func (l listing) token() string {
	bound := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return strconv.FormatInt(t.Unix(), 36)
	}
	s := []string{"1", l.prefix, bound(l.from), bound(l.before), strconv.FormatInt(l.log, 36), strconv.FormatUint(l.cursor, 36), strconv.FormatUint(l.high, 36)}
	if l.base {
		s = append(s, strconv.FormatUint(l.low, 36), base64.RawURLEncoding.EncodeToString(l.key[:]))
	}
	return strings.Join(s, ".")
}

// parseToken reads a token; it accepts exactly the results of token.
func parseToken(s string) (l listing, ok bool) {
	f := strings.Split(s, ".")
	if len(f) != 7 && len(f) != 9 || f[0] != "1" || !knownFormat(f[1]) {
		return l, false
	}
	ok = true
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 36, 63)
		ok = ok && err == nil
		return n
	}
	bound := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		n, err := strconv.ParseInt(s, 36, 64)
		ok = ok && err == nil && n > -1<<36 && n < 1<<38
		return time.Unix(n, 0).UTC()
	}
	l.prefix, l.from, l.before = f[1], bound(f[2]), bound(f[3])
	n, err := strconv.ParseInt(f[4], 36, 64)
	l.log, ok = n, ok && err == nil
	l.cursor, l.high = number(f[5]), number(f[6])
	if len(f) == 9 {
		l.base, l.low = true, number(f[7])
		key, err := base64.RawURLEncoding.DecodeString(f[8])
		ok = ok && err == nil && len(key) == len(l.key) && l.low <= l.high
		copy(l.key[:], key)
	}
	return l, ok && l.token() == s
}

// list answers ListIdentifiers and ListRecords.
func (q *request) list(ctx context.Context, a oaiArgs) (func(x *xmlWriter) error, error) {
	l, err := q.listing(ctx, a)
	if err != nil {
		return nil, err
	}
	whole, most := a.verb == "ListRecords", mostRecords
	if !whole {
		most = mostHeaders
	}
	next, stop := iter.Pull2(q.records(ctx, l))
	q.stop = stop
	r, err, ok := next()
	if !ok || err != nil {
		if err == nil {
			err = errNoRecords
		}
		return nil, err
	}
	return func(x *xmlWriter) error {
		cursor := l.cursor
		n, size := 0, 0
		for {
			q.writeRecord(x, r, whole)
			n++
			size += len(r.metadata)
			l.position = r.after
			if r, err, ok = next(); err != nil {
				return err
			}
			if !ok {
				if a.token != "" {
					x.raw("<resumptionToken")
					x.attr("cursor", strconv.FormatUint(cursor, 10))
					x.raw("/>\n")
				}
				return nil
			}
			if n >= most || size >= mostBytes {
				l.cursor += uint64(n)
				x.raw("<resumptionToken")
				x.attr("cursor", strconv.FormatUint(cursor, 10))
				x.raw(">")
				x.text(l.token())
				x.raw("</resumptionToken>\n")
				return nil
			}
		}
	}, nil
}

// listing is the list of the arguments, from its beginning or at the token's position.
func (q *request) listing(ctx context.Context, a oaiArgs) (l listing, err error) {
	_, baseline, _ := q.view.BaselineEnd()
	tail, tailTime := q.view.Tail()
	head, _ := q.view.Head()
	if a.token != "" {
		l, ok := parseToken(a.token)
		if !ok || l.log != baseline.UnixMicro() || l.high > head {
			return l, errToken
		}
		if !l.base && l.high < tail { // the next changes have left the log
			l.base, l.low, l.high, l.key = true, l.high, tail, rdfres.Digest{}
		}
		return l, nil
	}
	if !knownFormat(a.metadataPrefix) {
		return l, errFormat
	}
	l = listing{prefix: a.metadataPrefix, log: baseline.UnixMicro()}
	if l.from, l.before, err = a.window(); err != nil {
		return l, err
	}
	if a.set != "" && a.set != q.Name {
		return l, errNoRecords
	}
	switch {
	case tail > 0 && !l.from.After(tailTime):
		l.position = position{base: true, high: tail}
	case l.from.IsZero():
		l.high = tail
	default:
		l.high, err = q.view.SequenceAt(ctx, l.from.Add(-time.Microsecond))
	}
	return l, err
}

// records yields the listed records, each once, with its metadata.
func (q *request) records(ctx context.Context, l listing) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		// give yields an item if it is listed; false ends the list.
		give := func(m member, after position) bool {
			if m.time.Before(l.from) || !l.before.IsZero() && !m.time.Before(l.before) {
				return true
			}
			r := record{member: m, after: after}
			var err error
			if r.metadata, err = q.metadata(ctx, m, l.prefix); errors.Is(err, errFormat) {
				// The item lives. Its record in this format is gone if it ever had one.
				var had bool
				if had, err = q.hadRDF(ctx, m.entity); err == nil && !had {
					return true
				}
				r.version = nil
			}
			return yield(r, err) && err == nil
		}
		if l.base {
			for st, err := range q.view.Known(ctx, l.key, rdfres.Digest{}) {
				if err == nil {
					err = q.r.Context().Err()
				}
				if err != nil {
					yield(record{}, err)
					return
				}
				key := rdfres.EntityKey(st.Entity)
				m, ok := lastOf(st)
				if !ok || key == l.key || m.sequence <= l.low || m.sequence > l.high {
					continue
				}
				if !give(m, position{base: true, low: l.low, high: l.high, key: key}) {
					return
				}
			}
			if tail, _ := q.view.Tail(); tail > l.high { // the log has been cut since
				more := l
				more.position = position{base: true, low: l.high, high: tail}
				q.records(ctx, more)(yield)
				return
			}
		}
		for c, err := range q.view.Changes(ctx, l.high) {
			if err == nil {
				err = q.r.Context().Err()
			}
			if err != nil {
				yield(record{}, err)
				return
			}
			if !l.before.IsZero() && !c.Time.Before(l.before) {
				return
			}
			if c.Entity == "" {
				continue
			}
			st, err := q.view.Entity(ctx, c.Entity)
			if err != nil {
				yield(record{}, fmt.Errorf("change %d: %w", c.Sequence, err))
				return
			}
			if m, ok := lastOf(st); ok && m.sequence == c.Sequence {
				if !give(m, position{high: c.Sequence}) {
					return
				}
			}
		}
	}
}

// hadRDF tells whether RDF/XML could express any version of an entity still in the log.
func (q *request) hadRDF(ctx context.Context, entity string) (bool, error) {
	for c, err := range q.view.History(ctx, entity) {
		if err != nil {
			return false, err
		}
		if c.Before != nil && c.Before.RDFXML || c.After != nil && c.After.RDFXML {
			return true, nil
		}
	}
	return false, nil
}

func (q *request) writeRecord(x *xmlWriter, r record, whole bool) {
	if whole {
		x.raw("<record>\n")
	}
	x.raw("<header")
	if r.version == nil {
		x.attr("status", "deleted")
	}
	x.raw(">\n")
	x.element("identifier", identifierOf(r.entity))
	x.element("datestamp", datestamp(r.time))
	x.element("setSpec", q.Name)
	x.raw("</header>\n")
	if whole {
		if r.version != nil {
			x.raw("<metadata>\n")
			x.w.Write(r.metadata)
			x.raw("</metadata>\n")
		}
		x.raw("</record>\n")
	}
}

// escaped begins the identifier of an entity whose IRI is no URI.
const escaped = "urn:rsbridge:iri:"

// identifierOf is the OAI identifier of an entity: its IRI, if it is a URI (RFC 3986); otherwise
// all of its bytes, percent-encoded, in a URN of ours. So each entity has one identifier and each
// identifier has one entity.
func identifierOf(entity string) string {
	if !strings.HasPrefix(entity, escaped) && isURI(entity) {
		return entity
	}
	var b strings.Builder
	b.WriteString(escaped)
	for i := range len(entity) {
		if c := entity[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// isURI: a scheme, and only characters of URIs after it.
func isURI(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" || rest == "" || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") != "" || scheme[0] < 'A' {
		return false
	}
	for i := range len(rest) {
		c := rest[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return false
		}
		if c == '%' && (i+2 >= len(rest) || !isHex(rest[i+1]) || !isHex(rest[i+2])) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// entityOf is the inverse of identifierOf; false for any other string.
func entityOf(identifier string) (string, bool) {
	rest, ok := strings.CutPrefix(identifier, escaped)
	if !ok {
		return identifier, isURI(identifier)
	}
	var b []byte
	for i := 0; i < len(rest); i++ {
		if rest[i] != '%' {
			b = append(b, rest[i])
			continue
		}
		if i+2 >= len(rest) || !isHex(rest[i+1]) || !isHex(rest[i+2]) {
			return "", false
		}
		n, _ := strconv.ParseUint(rest[i+1:i+3], 16, 8)
		b = append(b, byte(n))
		i += 2
	}
	return string(b), identifierOf(string(b)) == identifier
}
