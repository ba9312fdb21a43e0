// Package sparqlsink keeps mirrors in triple stores, by SPARQL 1.1 Update and the Graph
// Store Protocol.
package sparqlsink
