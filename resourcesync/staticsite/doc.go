// Package staticsite writes a ResourceSync set as files. Any file server or object store then
// serves the folder as a complete source.
//
// Write reads the set as a client does, from its Capability List down, through a transport: the
// handler of a bridge in the same process, or its own listener. It sends one request after the other. The
// folder mirrors the addresses below the base URL. Representations, packages and linked files are written first. All documents follow
// at the end, then files of former entries are removed. So a reader of the folder always meets
// whole files and lists of existing files. Writing again touches only changed files.
//
// Pages for people have relative links. The start page and the pages of names from A to Z come last.
//
// The documents leave out links that need a program: versions, time gates, negotiated formats, and
// the other faces of the log (event stream, OAI-PMH, IIIF activities).
package staticsite
