// Package staticsite writes a ResourceSync set as files that any file server or
// object store serves as a complete source.
//
// Write reads the set as a client does, from its Capability List down, through a
// transport: the handler of a bridge in the same process, or the network. The
// folder mirrors the addresses below the base URL. Representations, packages and
// what entries link to come first, then the documents, all of them at the end,
// then what is no longer there goes; so a reader of the folder meets whole files
// and lists whose resources are there. Writing again touches only what changed.
//
// What a file server cannot answer is left out of the documents: versions, time
// gates and negotiated formats, whose addresses need a program behind them, and
// so are the other faces of the log (event stream, OAI-PMH, IIIF activities).
package staticsite
