package resourcesync

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendEntry appends a url element in the Writer's form, with the blanks before and the line break
// after it. It is for lists with entries kept rendered (Writer.WriteRaw).
//
// It refuses: an empty loc, an unknown change, a link without rel or href, a pri outside 1 to
// 999999, a time outside the years 0 to 9999, and characters not allowed in XML. The error names
// the value. dst is then returned as it was.
func AppendEntry(dst []byte, e *Entry) ([]byte, error) { return appendEntry(dst, e, false) }

func appendEntry(dst []byte, e *Entry, index bool) ([]byte, error) {
	b, err := appendEntryElements(dst, e, index)
	if err != nil {
		return dst, fmt.Errorf("resourcesync: writing the entry %q: %w", clip(e.Loc), err)
	}
	return b, nil
}

func appendEntryElements(b []byte, e *Entry, index bool) (_ []byte, err error) {
	if e.Loc == "" {
		return b, errors.New("it has no loc")
	}
	if index {
		b = append(b, "  <sitemap><loc>"...)
	} else {
		b = append(b, "  <url><loc>"...)
	}
	if b, err = appendText(b, "loc", e.Loc); err != nil {
		return b, err
	}
	b = append(b, "</loc>"...)
	if !e.LastMod.IsZero() {
		if b, err = appendTimeElement(b, e.LastMod); err != nil {
			return b, err
		}
	}
	if !index { // the schema of an index has neither
		if b, err = appendTextElement(b, "changefreq", e.ChangeFreq); err != nil {
			return b, err
		}
		if b, err = appendTextElement(b, "priority", e.Priority); err != nil {
			return b, err
		}
	}
	if e.HasMeta {
		if b, err = appendMeta(b, &e.Meta); err != nil {
			return b, err
		}
	}
	for i := range e.Links {
		if b, err = appendLink(b, &e.Links[i]); err != nil {
			return b, err
		}
	}
	if index {
		return append(b, "</sitemap>\n"...), nil
	}
	return append(b, "</url>\n"...), nil
}

func appendTimeElement(b []byte, t time.Time) ([]byte, error) {
	if err := checkYear("lastmod", t); err != nil {
		return b, err
	}
	b = AppendTime(append(b, "<lastmod>"...), t)
	return append(b, "</lastmod>"...), nil
}

func appendTextElement(b []byte, name, value string) (_ []byte, err error) {
	if value == "" {
		return b, nil
	}
	b = append(append(append(b, '<'), name...), '>')
	if b, err = appendText(b, name, value); err != nil {
		return b, err
	}
	return append(append(append(b, "</"...), name...), '>'), nil
}

func appendMeta(b []byte, m *Meta) (_ []byte, err error) {
	switch m.Change {
	case "", Created, Updated, Deleted:
	default:
		return b, fmt.Errorf("rs:md change %q: want created, updated or deleted", clip(m.Change))
	}
	b = append(b, "<rs:md"...)
	if b, err = appendAttr(b, "capability", string(m.Capability)); err != nil {
		return b, err
	}
	if m.Change != "" {
		b = append(append(append(b, ` change="`...), m.Change...), '"')
	}
	for _, a := range [...]struct {
		name string
		t    *time.Time
	}{{"at", &m.At}, {"completed", &m.Completed}, {"from", &m.From}, {"until", &m.Until}, {"datetime", &m.DateTime}} {
		if b, err = appendTimeAttr(b, a.name, *a.t); err != nil {
			return b, err
		}
	}
	if b, err = appendRepresentation(b, &m.Hash, m.Length, m.Type, m.Encoding, m.Path); err != nil {
		return b, err
	}
	if b, err = appendExt(b, m.Ext); err != nil {
		return b, err
	}
	return append(b, "/>"...), nil
}

func appendLink(b []byte, l *Link) (_ []byte, err error) {
	if l.Rel == "" || l.Href == "" {
		return b, fmt.Errorf("rs:ln rel %q href %q: both are mandatory", clip(l.Rel), clip(l.Href))
	}
	if l.Pri < 0 || l.Pri > 999999 {
		return b, fmt.Errorf("rs:ln %s pri %d: want 1 to 999999", clip(l.Rel), l.Pri)
	}
	b = append(b, "<rs:ln"...)
	if b, err = appendAttr(b, "rel", l.Rel); err != nil {
		return b, err
	}
	if b, err = appendAttr(b, "href", l.Href); err != nil {
		return b, err
	}
	if b, err = appendTimeAttr(b, "modified", l.Modified); err != nil {
		return b, err
	}
	if b, err = appendRepresentation(b, &l.Hash, l.Length, l.Type, l.Encoding, l.Path); err != nil {
		return b, err
	}
	if l.Pri > 0 {
		b = append(strconv.AppendInt(append(b, ` pri="`...), int64(l.Pri), 10), '"')
	}
	if b, err = appendAttr(b, "profile", l.Profile); err != nil {
		return b, err
	}
	if b, err = appendExt(b, l.Ext); err != nil {
		return b, err
	}
	return append(b, "/>"...), nil
}

// appendRepresentation appends the attributes common to rs:md and rs:ln.
func appendRepresentation(b []byte, h *Hashes, length int64, typ, encoding, path string) (_ []byte, err error) {
	hashed := !h.IsZero()
	if hashed {
		if b, err = appendHashes(b, h); err != nil {
			return b, err
		}
	}
	if length > 0 || length == 0 && hashed {
		b = append(strconv.AppendInt(append(b, ` length="`...), length, 10), '"')
	}
	if b, err = appendAttr(b, "type", typ); err != nil {
		return b, err
	}
	if b, err = appendAttr(b, "encoding", encoding); err != nil {
		return b, err
	}
	return appendAttr(b, "path", path)
}

func appendHashes(b []byte, h *Hashes) (_ []byte, err error) {
	b = append(b, ` hash="`...)
	start := len(b)
	for _, a := range [...]struct{ prefix, digest string }{{"md5:", h.MD5}, {"sha-1:", h.SHA1}, {"sha-256:", h.SHA256}} {
		if a.digest == "" {
			continue
		}
		if len(b) > start {
			b = append(b, ' ')
		}
		b = append(b, a.prefix...)
		if b, err = appendEscaped(b, "hash", a.digest, true); err != nil {
			return b, err
		}
	}
	for _, token := range slices.Concat(h.Other, h.Broken) {
		if len(b) > start {
			b = append(b, ' ')
		}
		if b, err = appendEscaped(b, "hash", token, true); err != nil {
			return b, err
		}
	}
	return append(b, '"'), nil
}

// appendExt appends the extension attributes, sorted by name.
func appendExt(b []byte, ext map[string]string) (_ []byte, err error) {
	if len(ext) == 0 {
		return b, nil
	}
	var room [8]string
	names := room[:0]
	for name := range ext {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !isNCName(name) {
			return b, fmt.Errorf("extension attribute %q: that is no name of an XML attribute", clip(name))
		}
		b = append(append(append(b, " rsb:"...), name...), `="`...)
		if b, err = appendEscaped(b, name, ext[name], true); err != nil {
			return b, err
		}
		b = append(b, '"')
	}
	return b, nil
}

// isNCName says whether s is a plain (ASCII) name without colon.
func isNCName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '.')) {
			return false
		}
	}
	return s != ""
}

func appendTimeAttr(b []byte, name string, t time.Time) ([]byte, error) {
	if t.IsZero() {
		return b, nil
	}
	if err := checkYear(name, t); err != nil {
		return b, err
	}
	b = append(append(append(b, ' '), name...), `="`...)
	return append(AppendTime(b, t), '"'), nil
}

func checkYear(name string, t time.Time) error {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return fmt.Errorf("%s is in the year %d: want 0 to 9999", name, y)
	}
	return nil
}

// appendAttr appends an attribute unless its value is empty.
func appendAttr(b []byte, name, value string) (_ []byte, err error) {
	if value == "" {
		return b, nil
	}
	b = append(append(append(b, ' '), name...), `="`...)
	if b, err = appendEscaped(b, name, value, true); err != nil {
		return b, err
	}
	return append(b, '"'), nil
}

func appendText(b []byte, name, value string) ([]byte, error) {
	return appendEscaped(b, name, value, false)
}

// Bytes special to appendEscaped: 1 in text and attributes, 2 in attributes only.
var special = func() (t [256]uint8) {
	for c := range 0x20 {
		t[c] = 1
	}
	t['\t'], t['\n'] = 2, 2
	t['&'], t['<'], t['>'], t['"'] = 1, 1, 1, 2
	for c := 0x80; c < 0x100; c++ {
		t[c] = 1
	}
	return t
}()

// appendEscaped appends a value so that a reader gets exactly it back.
func appendEscaped(b []byte, name, s string, attr bool) ([]byte, error) {
	from := uint8(1)
	if attr {
		from = 2
	}
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if k := special[c]; k == 0 || k > from {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || r == 0xFFFE || r == 0xFFFF {
				return b, badCharacter(name, s, i)
			}
			i += n
			continue
		}
		var escape string
		switch c {
		case '&':
			escape = "&amp;"
		case '<':
			escape = "&lt;"
		case '>':
			escape = "&gt;"
		case '"':
			escape = "&quot;"
		case '\t':
			escape = "&#x9;"
		case '\n':
			escape = "&#xA;"
		case '\r':
			escape = "&#xD;"
		default:
			return b, badCharacter(name, s, i)
		}
		b = append(append(b, s[start:i]...), escape...)
		i++
		start = i
	}
	return append(b, s[start:]...), nil
}

func badCharacter(name, s string, i int) error {
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n == 1 {
		return fmt.Errorf("%s %q: byte %#02x at %d is not UTF-8", name, clip(s), s[i], i)
	}
	return fmt.Errorf("%s %q: XML cannot hold the character %U at byte %d", name, clip(s), r, i)
}
