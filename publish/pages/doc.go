// Package pages is the public pages for people: of the source, a set, an entity and its history,
// the documents as tables, the alphabet of a set, and errors.
//
// A page is made from one state of a log, from a document, or from an error. The package answers no
// requests: package publish does, and sets status and headers. Pages have no scripts, load nothing,
// and are read in light and dark, wide and narrow, and by screen readers.
//
// Work and memory of a page are bounded: by the length of laid out descriptions, the number of
// values and rows, and the bytes read for comparisons. The rest is a link.
package pages
