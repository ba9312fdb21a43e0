package rdfres

import (
	"strings"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// ValueEqual tells whether two literals have the same value in perhaps two spellings: the same
// value in the value space of XSD (numbers of xsd:decimal and the integer types are in one space,
// float and double each in another; a dateTime with a zone is a point in time), or the same string
// with language tags different in case only. Such a difference between a source and a mirror is a
// rewriting. Equal terms have equal values. Ill-typed literals, unknown datatypes and terms that
// are no literals are only equal to themselves.
func ValueEqual(a, b Term) bool {
	if a == b {
		return true
	}
	if a.Kind() != KindLiteral || b.Kind() != KindLiteral {
		return false
	}
	spaceA, keyA := valueKey(a)
	spaceB, keyB := valueKey(b)
	return spaceA != "" && spaceA == spaceB && keyA == keyB
}

// valueKey gives the value space of a literal, "" for a literal without one, and a key shared by
// equal values.
func valueKey(t Term) (space, key string) {
	lexical, lang, datatype := t.EscapedLiteral()
	if lang != "" {
		return "@", strings.ToLower(lang) + " " + lexical
	}
	local, ok := strings.CutPrefix(datatype, chars.XSD)
	if !ok {
		return "", ""
	}
	lexical = trimSpace(lexical)
	var dst []byte
	family := familyOf(local)
	switch family {
	case "integer", "decimal":
		if family == "integer" {
			if dst, local = normalInteger(nil, "", lexical, local); local == "" {
				return "", ""
			}
			return "decimal", string(dst)
		}
		dst, ok = normalDecimal(nil, "", lexical)
	case "double", "float":
		if dst, ok = normalFloat(nil, "", lexical, local == "float"); string(dst) == "-0E+00" {
			dst = dst[1:] // equal, though not identical
		}
	case "boolean":
		dst, local = normalize(nil, family, family, lexical, local)
		return local, string(dst)
	case "time":
		m, good := parseMoment(lexical, layouts[local], false)
		if m.endOfDay(); strings.HasPrefix(local, "dateTime") {
			m, family = m.utc(), "dateTime"
		} else if family = local; m.zone != 0 && m.offset == 0 {
			m.zone = 'Z'
		}
		dst, ok = m.append(nil, layouts[local]), good
	case "duration":
		d, good := parseSpan(lexical, local)
		dst, ok = d.append(nil, "duration"), good
	default:
		switch local {
		case "hexBinary":
			return local, strings.ToUpper(lexical)
		case "base64Binary":
			return local, strings.ReplaceAll(lexical, " ", "")
		}
		return "", ""
	}
	if !ok {
		return "", ""
	}
	return family, string(dst)
}
