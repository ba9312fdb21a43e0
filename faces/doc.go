// Package faces shows the change log of a set in the forms of other protocols: a Linked Data Event
// Stream, an OAI-PMH 2.0 repository, and IIIF Change Discovery.
//
// Each is a view of changetrack's log. Nothing is stored for any of them. A page is made from the
// log on request, and its address names a range of sequences, so it is made of the same changes at
// any time. A client's position is in the addresses and tokens it was given, so it stays valid over
// restarts.
//
// Faces sits beside publish: both read the log, neither knows the other. The bridge mounts it in
// front of publish's handler (Faces.Handler) and gives it the present base URL.
//
//	/SET/ldes, /SET/ldes/...     Linked Data Event Stream (TREE)
//	/SET/oai?verb=...            OAI-PMH 2.0
//	/SET/activity, ...           IIIF Change Discovery 1.0
//
// The forms are described in docs/reference/faces.md.
package faces
