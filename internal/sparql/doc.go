// Package sparql is a client for the SPARQL 1.1 protocols that knows the limits
// of the store it talks to.
//
// A Client speaks the SPARQL 1.1 Protocol (query and update, as direct POST
// bodies, because form bodies are limited by servlet containers) and the Graph
// Store HTTP Protocol with one Endpoint. Answers are streamed: a SELECT as
// [Solutions], a CONSTRUCT or a graph as a sequence of triples. An answer that
// was cut, in the middle of a line, of a JSON document or of the HTTP body, is
// always an error (errors.Is(err, ErrTruncated)), never a shorter answer.
//
// Stores differ, and some lie: they cut long answers and say 200 OK, write
// tab-separated values in which IRIs and strings look alike, rewrite literals,
// or show all named graphs in the default graph. [Client.Probe] finds out.
//
// Requests that may help when repeated are repeated with growing pauses, reads
// only as long as no row was handed out, writes because everything this house
// writes is repeatable by design. Endpoint.Timeout bounds the time without
// progress, not the whole request, so that a long download is never killed.
//
// Terms are written into queries with [EscapeIRI] and [EscapeTerm] only: what
// cannot be an IRI is refused, because SPARQL decodes \uXXXX escapes before it
// parses, so that no escape can make a dangerous IRI safe.
package sparql
