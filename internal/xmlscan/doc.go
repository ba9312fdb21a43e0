// Package xmlscan is a small, strict, streaming tokenizer for XML 1.0 with
// namespaces, in UTF-8.
//
// It exists because lists have millions of entries and encoding/xml is many times
// slower. Every document it accepts, encoding/xml accepts and reads the same; a fuzz test
// holds them against each other. It refuses more: DTDs, encodings other than UTF-8,
// undeclared prefixes, doubled attributes, more than one root, and input beyond its
// bounds.
//
// With Options.Slip it forgives slips without a loss. Of a DTD it then reads nothing:
// a reference to an entity other than XML's own is an error.
//
// It knows the namespaces of its caller by number only, and its caller makes the
// errors.
package xmlscan
