package resourcesync

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// decoder makes values of attributes and texts. It warns of faults, or refuses them when strict.
type decoder struct {
	s        *xmlscan.Scanner
	strict   bool
	base     string
	baseURL  *url.URL
	warn     warnings
	interned map[string]string
	faults   []string // of the present entry
}

// lapse is a readable form not allowed by 1.1. Kinds are few; see warnings.
func (d *decoder) lapse(kind, format string, args ...any) error {
	if d.strict {
		return d.s.Failf(ErrInvalid, format, args...)
	}
	d.warn.add(kind, d.s.Line(), format, args...)
	return nil
}

// next is the next tag. Text between the elements is a lapse.
func (d *decoder) next() (xmlscan.Token, error) {
	tok, err := d.s.Next()
	if err == nil && d.s.Stray {
		d.s.Stray = false
		err = d.lapse("stray text", "there is text between the elements; it is left out")
	}
	return tok, err
}

// intern gives equal strings the same memory: media types, relations.
func (d *decoder) intern(b []byte) string {
	if s, ok := d.interned[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(d.interned) < 256 && len(s) < 256 {
		if d.interned == nil {
			d.interned = map[string]string{}
		}
		d.interned[s] = s
	}
	return s
}

// ownAttr says whether an attribute belongs to ResourceSync: unprefixed, or (as
// the text of 0.9 had it) in the rs namespace and not there unprefixed too.
func (d *decoder) ownAttr(attrs []xmlscan.Attr, a *xmlscan.Attr) (bool, error) {
	switch a.Space {
	case xmlscan.None:
		return true, nil
	case SpaceRS, SpaceDLib:
		for i := range attrs {
			if b := &attrs[i]; b.Space == xmlscan.None && string(b.Local) == string(a.Local) {
				return false, nil
			}
		}
		return true, d.lapse("prefixed attribute", "the attribute %s has a prefix; ResourceSync attributes have none", clip(a.Raw()))
	}
	return false, nil
}

// meta reads the attributes of an rs:md into m.
func (d *decoder) meta(attrs []xmlscan.Attr, m *Meta) (err error) {
	m.Length = -1
	for i := range attrs {
		a := &attrs[i]
		own := a.Space == xmlscan.None
		if !own {
			if a.Space == SpaceBridge {
				m.Ext = addExt(m.Ext, a)
				continue
			}
			if own, err = d.ownAttr(attrs, a); err != nil {
				return err
			}
			if !own {
				continue
			}
		}
		switch string(a.Local) {
		case "capability":
			m.Capability = Capability(d.intern(trimBytes(a.Value)))
		case "change":
			m.Change, err = d.change(a)
		case "at":
			m.At, err = d.time(a)
		case "completed":
			m.Completed, err = d.time(a)
		case "from":
			m.From, err = d.time(a)
		case "until":
			m.Until, err = d.time(a)
		case "modified":
			m.Modified, err = d.time(a)
		case "datetime":
			if m.DateTime, err = d.time(a); err == nil && m.DateTime.IsZero() {
				d.faults = append(d.faults, "datetime \""+clip(string(a.Value))+"\" is no W3C Datetime")
			}
		case "encoding":
			m.Encoding = d.intern(trimBytes(a.Value))
		case "hash":
			m.Hash, err = d.hash(a)
		case "length":
			m.Length, err = d.length(a)
		case "path":
			m.Path = string(a.Value)
		case "type":
			m.Type = d.intern(trimBytes(a.Value))
		default:
			err = d.unknown("rs:md", a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link reads the attributes of an rs:ln. ok is false if rel or href is missing.
func (d *decoder) link(attrs []xmlscan.Attr, l *Link) (ok bool, err error) {
	l.Length = -1
	for i := range attrs {
		a := &attrs[i]
		own := a.Space == xmlscan.None
		if !own {
			if a.Space == SpaceBridge {
				l.Ext = addExt(l.Ext, a)
				continue
			}
			if own, err = d.ownAttr(attrs, a); err != nil {
				return false, err
			}
			if !own {
				continue
			}
		}
		switch string(a.Local) {
		case "rel":
			l.Rel = d.intern(trimBytes(a.Value))
		case "href":
			l.Href, err = d.address("href", a.Value)
		case "encoding":
			l.Encoding = d.intern(trimBytes(a.Value))
		case "hash":
			l.Hash, err = d.hash(a)
		case "length":
			l.Length, err = d.length(a)
		case "modified":
			l.Modified, err = d.time(a)
		case "path":
			l.Path = string(a.Value)
		case "pri":
			l.Pri, err = d.pri(a)
		case "profile":
			l.Profile = string(a.Value)
		case "type":
			l.Type = d.intern(trimBytes(a.Value))
		default:
			err = d.unknown("rs:ln", a)
		}
		if err != nil {
			return false, err
		}
	}
	if l.Rel == "" || l.Href == "" {
		return false, d.lapse("incomplete link", "rs:ln with rel %q and href %q: both are mandatory; the link is left out", clip(l.Rel), clip(l.Href))
	}
	return true, nil
}

func addExt(ext map[string]string, a *xmlscan.Attr) map[string]string {
	if ext == nil {
		ext = make(map[string]string, 4)
	}
	ext[string(a.Local)] = string(a.Value)
	return ext
}

func (d *decoder) unknown(element string, a *xmlscan.Attr) error {
	return d.lapse("unknown attribute", "%s has the unknown attribute %s=%q; it is left out", element, clip(a.Raw()), clip(string(a.Value)))
}

func (d *decoder) time(a *xmlscan.Attr) (time.Time, error) {
	return d.timeValue(a.Local, a.Value)
}

// timeValue reads a time; an unreadable one is absent.
func (d *decoder) timeValue(name, value []byte) (time.Time, error) {
	t, lapse, ok := ScanTime(string(value))
	if ok && lapse == "" {
		return t, nil
	}
	if !ok {
		return time.Time{}, d.lapse("time", "%s %q is no W3C Datetime (%s); it is left out", name, clip(string(value)), ErrTime)
	}
	return t, d.lapse("time: "+lapse, "%s %q is read as %s: %s", name, clip(string(value)), FormatTime(t), lapse)
}

func (d *decoder) change(a *xmlscan.Attr) (string, error) {
	v := trimBytes(a.Value)
	switch string(v) {
	case Created:
		return Created, nil
	case Updated:
		return Updated, nil
	case Deleted:
		return Deleted, nil
	}
	given := string(v)
	switch lower := strings.ToLower(given); lower {
	case Created, Updated, Deleted:
		return lower, d.lapse("change", "change %q: want %s", clip(given), lower)
	}
	return given, d.lapse("unknown change", "change %q: want created, updated or deleted", clip(given))
}

func (d *decoder) hash(a *xmlscan.Attr) (Hashes, error) {
	h, lapse, err := parseHashes(string(a.Value))
	if err != nil {
		return h, d.lapse("hash", "%s; it is left out", strings.TrimPrefix(err.Error(), "resourcesync: "))
	}
	if lapse != "" {
		return h, d.lapse("hash: "+lapse, "hash %q: %s", clip(string(a.Value)), lapse)
	}
	return h, nil
}

func (d *decoder) length(a *xmlscan.Attr) (int64, error) {
	var n int64
	v := trimBytes(a.Value)
	for _, c := range v {
		if c < '0' || c > '9' || len(v) > 18 {
			return -1, d.lapse("length", "length %q is no count of bytes; it is left out", clip(string(a.Value)))
		}
		n = n*10 + int64(c-'0')
	}
	if len(v) == 0 {
		return -1, d.lapse("length", "length is empty; it is left out")
	}
	return n, nil
}

func (d *decoder) pri(a *xmlscan.Attr) (int, error) {
	n, err := strconv.Atoi(string(trimBytes(a.Value)))
	if err != nil || n < 1 || n > 999999 {
		return 0, d.lapse("pri", "pri %q: want 1 to 999999; it is left out", clip(string(a.Value)))
	}
	return n, nil
}

// address reads a URI: trimmed, and resolved against the document's address.
func (d *decoder) address(name string, value []byte) (string, error) {
	v := trimBytes(value)
	if len(v) == 0 || HasScheme(v) {
		return string(v), nil
	}
	given := string(v)
	if d.base == "" {
		return given, d.lapse("relative", "%s %q is not absolute", name, clip(given))
	}
	if d.baseURL == nil {
		u, err := url.Parse(d.base)
		if err != nil {
			return given, d.lapse("relative", "%s %q is not absolute, and the document's address %q is none (%v)", name, clip(given), clip(d.base), err)
		}
		d.baseURL = u
	}
	ref, err := url.Parse(given)
	if err != nil {
		return given, d.lapse("relative", "%s %q is no address: %v", name, clip(given), err)
	}
	full := d.baseURL.ResolveReference(ref).String()
	return full, d.lapse("relative", "%s %q is not absolute; it is read as %s", name, clip(given), clip(full))
}

// HasScheme says whether a reference is absolute (RFC 3986, section 3.1).
func HasScheme[T string | []byte](v T) bool {
	for i := range len(v) {
		switch c := v[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
		case c == ':':
			return i > 0
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return false
}

func trimBytes(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}
