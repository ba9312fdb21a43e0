// Package faces shows the change log of a set in the forms that other protocols
// know: a Linked Data Event Stream, an OAI-PMH 2.0 repository, and IIIF Change
// Discovery.
//
// Each is a view of the log that changetrack keeps. Nothing is stored for any of
// them: a page is made from the log when it is asked for, and its address names a
// range of sequences, so that it is made of the same changes whenever that is.
// What a client has to remember (how far it is) is in the addresses and tokens
// that it was given, so it stays valid over restarts.
//
// Faces sits beside publish: both read the log, neither knows the other. The
// bridge mounts it in front of publish's handler (Faces.Handler) and tells it the
// addresses that are in force.
//
//	/SET/ldes, /SET/ldes/...     Linked Data Event Stream (TREE)
//	/SET/oai?verb=...            OAI-PMH 2.0
//	/SET/activity, ...           IIIF Change Discovery 1.0
//
// The forms are described in docs/reference/faces.md.
package faces
