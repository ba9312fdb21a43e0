// Package rdfres models an RDF resource as the unit of synchronization: its
// description, its representations and its fixity.
package rdfres
