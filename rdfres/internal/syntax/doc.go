// Package syntax is shared by the readers and writers of all formats: names for
// unnamed blank nodes, bounds for the size of a graph, reuse of equal terms, and
// prefixes.
package syntax
