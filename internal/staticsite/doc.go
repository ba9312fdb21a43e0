// Package staticsite writes a ResourceSync set as files that any file server or
// object store serves as a complete source.
//
// Write reads the set as a client does, from its Capability List down, through a
// transport: the handler of a bridge in the same process, or the network. The
// folder mirrors the addresses below the base URL. Representations, packages and
// the files linked from entries come first, then the documents, all of them at the end,
// then the files of former entries go; so a reader of the folder meets whole files
// and lists of files in place. Writing again touches only changed files.
//
// The documents leave out links that a file server cannot answer: versions, time
// gates and negotiated formats, for they need a program, and
// so are the other faces of the log (event stream, OAI-PMH, IIIF activities).
package staticsite
