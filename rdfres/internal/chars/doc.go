// Package chars has the rules for characters in RDF syntaxes: classes of bytes,
// escapes, labels, language tags, charsets, and excerpts for error messages. It
// works on bytes and strings and knows no terms.
package chars
