package check

import (
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file checks single attributes and texts: rules 9 to 11, 23, 24, 28, 29,
// 38, 42, 43, 45 to 50, 54, 56.

// place is the place of an rs element.
type place uint8

const (
	rootMeta place = iota
	rootLink
	entryMeta
	entryLink
)

func (p place) root() bool { return p == rootMeta || p == rootLink }
func (p place) link() bool { return p == rootLink || p == entryLink }

func (p place) String() string {
	return [...]string{"root rs:md", "root rs:ln", "rs:md", "rs:ln"}[p]
}

// attributes checks all attributes of the current rs element.
func (v *validator) attributes(p place) {
	for i := range v.s.Attrs {
		a := &v.s.Attrs[i]
		switch a.Space {
		case resourcesync.SpaceRS, resourcesync.SpaceDLib:
			v.report.add(9, SeverityError, v.s.Line(), "%s has the prefixed attribute %s=%q, want %s", p, clip(a.Raw()), clip(string(a.Value)), clip(string(a.Local)))
			v.attribute(p, a)
		case xmlscan.None:
			v.attribute(p, a)
		}
	}
}

func (v *validator) attribute(p place, a *xmlscan.Attr) {
	name, value, line := string(a.Local), string(a.Value), v.s.Line()
	switch name {
	case "hash":
		v.checkHash(line, value)
	case "length":
		v.checkLength(line, value)
	case "type":
		v.checkType(line, value)
	case "encoding":
	case "path":
		v.checkPath(p, line, value)
	case "modified":
		if p.link() {
			v.checkTime(56, line, "modified", value)
		} else {
			v.report.add(11, SeverityInfo, line, "%s has modified=%q, which was given up with 0.9", p, clip(value))
			v.checkTime(23, line, "modified", value)
		}
	default:
		if p.link() {
			v.linkAttribute(p, line, name, value)
		} else {
			v.metaAttribute(p, line, name, value)
		}
		return
	}
	if p == rootMeta && name != "modified" {
		v.report.add(10, SeverityInfo, line, "%s has %s=%q; it means something in entries only", p, name, clip(value))
	}
}

func (v *validator) metaAttribute(p place, line int, name, value string) {
	switch name {
	case "capability":
		if value != trimSpace(value) {
			v.report.add(7, SeverityInfo, line, "capability %q has blanks around it", clip(value))
		}
	case "at", "completed", "from", "until":
		if p == rootMeta {
			v.checkRootTime(line, name, value)
		} else {
			v.checkTime(54, line, name, value)
		}
	case "datetime":
		if p == rootMeta {
			v.report.add(51, SeverityError, line, "%s has datetime=%q; it belongs to entries", p, clip(value))
		}
		v.checkTime(54, line, name, value)
	case "change":
		if p == rootMeta {
			v.report.add(51, SeverityError, line, "%s has change=%q; it belongs to entries", p, clip(value))
		}
		switch value {
		case resourcesync.Created, resourcesync.Updated, resourcesync.Deleted:
		default:
			v.report.add(45, SeverityError, line, "change %q: want created, updated or deleted", clip(value))
		}
	case "pri":
		v.report.add(49, SeverityError, line, "%s has pri=%q; it belongs to rs:ln", p, clip(value))
	default:
		v.report.add(10, SeverityError, line, "%s has the unknown attribute %s=%q; extensions need a namespace of their own", p, clip(name), clip(value))
	}
}

func (v *validator) linkAttribute(p place, line int, name, value string) {
	switch name {
	case "rel", "href": // with the element as a whole
	case "pri":
		n, ok := digits(value)
		if !ok || n < 1 || n > 999999 {
			v.report.add(49, SeverityError, line, "pri %q: want 1 to 999999", clip(value))
		}
	case "profile":
		if problem := checkURI(value); problem != "" {
			v.report.add(15, SeverityInfo, line, "profile %q: %s", clip(value), problem)
		}
	default:
		v.report.add(10, SeverityError, line, "%s has the unknown attribute %s=%q; extensions need a namespace of their own", p, clip(name), clip(value))
	}
}

// linkElement checks an rs:ln as a whole: rules 28, 29, 38, 39.
func (v *validator) linkElement(p place, l *resourcesync.Link) {
	line := v.s.Line()
	rel, href := v.raw("rel"), v.raw("href")
	if trimSpace(rel) == "" {
		v.report.add(28, SeverityError, line, "%s has no rel (href %q)", p, clip(href))
	} else {
		v.checkRelation(p, line, rel)
	}
	switch trimmed := trimSpace(href); {
	case trimmed == "":
		v.report.add(28, SeverityError, line, "%s has no href (rel %q)", p, clip(rel))
	case resourcesync.HasScheme(trimmed):
		if problem := checkURI(href); problem != "" {
			v.report.add(29, SeverityError, line, "href %q: %s", clip(href), problem)
		}
	case v.o.Location != "":
		v.report.add(29, SeverityInfo, line, "href %q is relative; it is read as %q", clip(href), clip(l.Href))
	default:
		v.report.add(29, SeverityError, line, "href %q: want an absolute URI", clip(href))
	}
	if p == rootLink {
		for i := range v.s.Attrs {
			a := &v.s.Attrs[i]
			if name := string(a.Local); a.Space == xmlscan.None && name != "rel" && name != "href" {
				v.report.add(39, SeverityInfo, line, "%s %s has %s=%q; rel and href are defined there", p, clip(rel), clip(name), clip(string(a.Value)))
			}
		}
	}
}

// raw gives an attribute of the current tag as written, "" if absent.
func (v *validator) raw(name string) string {
	for i := range v.s.Attrs {
		if a := &v.s.Attrs[i]; string(a.Local) == name && (a.Space == xmlscan.None || a.Space == resourcesync.SpaceRS || a.Space == resourcesync.SpaceDLib) {
			return string(a.Value)
		}
	}
	return ""
}

func (v *validator) checkRelation(p place, line int, rel string) {
	switch {
	case strings.ContainsAny(trimSpace(rel), " \t\r\n"):
		v.report.add(38, SeverityError, line, "rel %q: want one relation for each rs:ln", clip(rel))
	case p == rootLink && (rel == resourcesync.RelResourceSync || rel == resourcesync.RelTop):
		v.report.add(11, SeverityInfo, line, "rel %q at the root was given up with 0.9.1; want %q", rel, resourcesync.RelUp)
	case resourcesync.HasScheme(rel):
		if problem := checkURI(rel); problem != "" {
			v.report.add(38, SeverityError, line, "rel %q: %s", clip(rel), problem)
		}
	case !registeredRelation(rel):
		v.report.add(38, SeverityError, line, "rel %q is neither registered with IANA nor an absolute URI", clip(rel))
	}
}

func (v *validator) checkRootTime(line int, name, value string) {
	t, ok := v.checkTime(23, line, name, value)
	if !ok {
		return
	}
	if len(value) < len("2006-01-02T15:04:05Z") || value[len(value)-1] != 'Z' {
		v.report.add(24, SeverityWarning, line, "%s %q: want a full UTC datetime, %s", name, clip(value), resourcesync.FormatTime(t))
	}
	if v.inFuture(t) {
		v.report.add(27, SeverityInfo, line, "%s %q is in the future (now %s)", name, clip(value), resourcesync.FormatTime(v.o.Now))
	}
}

// inFuture leaves some minutes to clocks.
func (v *validator) inFuture(t time.Time) bool {
	return !v.o.Now.IsZero() && t.After(v.o.Now.Add(5*time.Minute))
}

// checkTime checks a W3C Datetime, also by the schema.
func (v *validator) checkTime(rule, line int, name, value string) (time.Time, bool) {
	t, lapse, ok := resourcesync.ScanTime(value)
	switch {
	case !ok:
		v.report.add(rule, SeverityError, line, "%s %q is no W3C Datetime: %s", name, clip(value), resourcesync.ErrTime)
		return t, false
	case lapse != "":
		v.report.add(rule, SeverityError, line, "%s %q is no W3C Datetime: %s; want %s", name, clip(value), lapse, resourcesync.FormatTime(t))
		return t, false
	case len(value) < len("2006-01-02T15:04:05Z") && !(name == "lastmod" && len(value) == len("2006-01-02")):
		v.report.add(15, SeverityInfo, line, "%s %q: the schema wants a full datetime, %s", name, clip(value), resourcesync.FormatTime(t))
	}
	return t, true
}

func (v *validator) checkHash(line int, value string) {
	n := 0
	var seen resourcesync.Hashes
	seen.Read(value, func(token, lapse, problem string) {
		n++
		switch {
		case problem != "":
			v.report.add(47, SeverityError, line, "hash %q: %s", clip(token), problem)
		case strings.HasPrefix(lapse, "MD5 in base64"):
			v.report.add(47, SeverityInfo, line, "hash %q: %s, md5:%s", clip(token), lapse, seen.MD5)
		case strings.HasPrefix(lapse, "want "): // another name of a known algorithm
			v.report.add(47, SeverityInfo, line, "hash %q: %s", clip(token), lapse)
		case lapse != "":
			v.report.add(47, SeverityError, line, "hash %q: %s", clip(token), lapse)
		}
	})
	if n == 0 {
		v.report.add(47, SeverityError, line, "hash is empty, want algorithm:hexdigest")
	}
	severity, consequence := SeverityInfo, "it is not verified"
	if len(seen.Other) == n {
		severity, consequence = SeverityWarning, "mirrors verify nothing"
	}
	for _, token := range seen.Other {
		v.report.add(127, severity, line, "hash %q: the algorithm is none of md5, sha-1 and sha-256: %s", clip(token), consequence)
	}
}

func (v *validator) checkLength(line int, value string) {
	if _, ok := digits(value); !ok {
		v.report.add(46, SeverityError, line, "length %q: want a count of bytes, 0 or more", clip(value))
	}
}

func digits(s string) (n int64, ok bool) {
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 || i == 18 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, s != ""
}

func (v *validator) checkType(line int, value string) {
	essence, params, has := strings.Cut(value, ";")
	major, minor, ok := strings.Cut(essence, "/")
	minor = strings.TrimRight(minor, " ")
	if !ok || !restrictedName(major) || !restrictedName(minor) {
		v.report.add(48, SeverityError, line, "type %q: want type/subtype", clip(value))
		return
	}
	if has {
		v.report.add(48, SeverityInfo, line, "type %q has the parameters %q; %q alone compares better", clip(value), clip(trimSpace(params)), clip(resourcesync.NormalizeType(value)))
		return
	}
	if strings.ContainsAny(value, ".!#$&^") { // + is a word character for the schema language
		v.report.add(15, SeverityInfo, line, "type %q: the schema wants letters, digits, +, - and _ only", clip(value))
	}
}

// restrictedName is the syntax of the parts of a media type (RFC 6838).
func restrictedName(s string) bool {
	if s == "" || len(s) > 127 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9':
		case i > 0 && strings.IndexByte("!#$&-^_.+", c) >= 0:
		default:
			return false
		}
	}
	return true
}

func (v *validator) checkPath(p place, line int, value string) {
	switch {
	case p.root() || !v.head.Meta.Capability.Manifest():
		v.report.add(50, SeverityError, line, "%s has path=%q; it belongs to the entries of manifests", p, clip(value))
	case p == entryLink && v.raw("rel") != resourcesync.RelPatch:
		v.report.add(50, SeverityError, line, "%s %q has path=%q; of links, patch alone has it", p, clip(v.raw("rel")), clip(value))
	}
	if !strings.HasPrefix(value, "/") {
		v.report.add(50, SeverityError, line, "path %q does not begin with /", clip(value))
		value = "/" + value
	}
	if err := resourcesync.CheckMemberName(value[1:]); err != nil {
		v.report.add(50, SeverityError, line, "path %q: %s", clip(value), err)
	}
}

// escaped says whether s begins with a percent-encoded byte.
func escaped(s string) bool {
	return len(s) > 2 && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// checkURI tells the fault of an absolute URI. Letters beyond ASCII pass, as
// the Sitemap protocol allows IRIs.
func checkURI(s string) string {
	if s != trimSpace(s) {
		return "there are blanks around it"
	}
	if !resourcesync.HasScheme(s) {
		return "want an absolute URI"
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c <= ' ' || c == 0x7F:
			return "a URI holds no blanks and control characters; want %20 and the like"
		case strings.IndexByte("<>\"{}|\\^`", c) >= 0:
			return "a URI holds no " + string(rune(c)) + "; want it percent-encoded"
		case c == '%' && !escaped(s[i:]):
			return "% is not followed by two hex digits"
		}
	}
	if scheme, rest, _ := strings.Cut(s, ":"); strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") {
		host, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		if !strings.HasPrefix(rest, "//") || host == "" {
			return "an http URI names a host"
		}
	}
	return ""
}

func trimSpace(s string) string { return strings.Trim(s, " \t\r\n") }

func clip(s string) string { return xmlscan.Clip(s) }
