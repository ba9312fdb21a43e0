// Package sparql is a client for the SPARQL 1.1 protocols with knowledge of each store's limits.
//
// A Client speaks the SPARQL 1.1 Protocol (query and update, as direct POST bodies, because form
// bodies are limited by servlet containers) and the Graph Store HTTP Protocol with one Endpoint.
// Answers are streamed: a SELECT as [Solutions], a CONSTRUCT or a graph as a sequence of triples.
// An answer cut off in the middle of a line, of a JSON document or of the HTTP body is always an
// error (errors.Is(err, ErrTruncated)), never a shorter answer.
//
// Stores differ, and some lie: they cut long answers and say 200 OK, write tab-separated values
// with IRIs and strings alike, rewrite literals, or show all named graphs in the default graph.
// [Client.Probe] finds out.
//
// Requests that failed for a passing reason are repeated with growing pauses. Reads are repeated
// only before the first row. Writes are repeatable by design in this house. Endpoint.Timeout bounds
// the time without progress, not the whole request, so a long download is never killed.
//
// Terms are written into queries with [EscapeIRI] and [EscapeTerm] only. Text that cannot be an IRI
// is refused: SPARQL decodes \uXXXX escapes before parsing, so no escape can make a dangerous IRI
// safe.
package sparql
