// Package publish turns the change log into ResourceSync documents, dumps, patches and
// notifications, and serves them.
//
// [Publisher.Publish] makes the present content of a set's log visible: a numbered generation. It
// reads the changes since the last one, renders their Change List entries, computes the patches,
// notes the touched parts of the Resource List, and makes all of that visible by one record.
// Nothing else is written, so its cost is the changes' cost. Everything served comes from one
// consistent view of the log held by the generation: a hash in a list is the hash of the bytes at
// its address.
//
// # Documents
//
// The Resource List is cut into parts: ranges of rdfres.EntityKey, named by the common leading bits
// of their keys. A single part is resourcelist.xml itself; otherwise resourcelist.xml is the index.
// A touched part is assembled at the next request for it. It carries the time and sequence of the
// touch, so an untouched part keeps its bytes and ETag. Parts are cut by the number of their
// entries and by the bytes of these.
//
// Change Lists are numbered from 1 and begin at the end of the first complete scan. The last one is
// open; a change too late or one too many for it closes it (SetConfig.Rotate, RotateEntries).
// Closed ones never change again: they are put together from entries rendered once. Their times are
// times of log positions: until of a list, from of its successor and the datetime of its last
// change are the same instant, and the times of changes strictly rise. So a destination with the
// state of T (a Resource List's at) loses nothing whether it asks for changes later than T or not
// earlier than T.
//
// A representation in another format than the version before it has another address, because
// addresses end in the format's suffix (a graph JSON-LD cannot carry is in N-Triples). Such an
// update is two entries of equal datetime and sequence: deleted at the old address, then created at
// the new one.
//
// # Addresses
//
// A set stays at the base URL and prefix of its first generation until its log has a move
// (Addresses): then new lists begin, and names with a former prefix are redirected.
//
// Below the base URL: /.well-known/resourcesync, /about (the source as a DCAT catalogue), / (for
// people), and for each set
//
//	/SET/capabilitylist.xml
//	/SET/resourcelist.xml, /SET/resourcelist-BITS.xml
//	/SET/changelist.xml, /SET/changelist-NNNNNN.xml, changelist-open.xml, changelist-from-N.xml
//	/SET/resourcedump.xml, /SET/resourcedump/GENERATION/NNNNN.zip, ...-manifest.xml
//	/SET/changedump.xml, /SET/changedump/LIST-NNN.zip, ...-manifest.xml
//	/SET/inventory.json, /SET/inventory/SEQUENCE.json, /SET/inventory/SEQUENCE/PATH.json
//	/SET/archives/resourcelist.xml, changelist.xml, resourcedump.xml, changedump.xml,
//	and their documents
//	/SET/about, with .ttl .jsonld .nt .rdf .html
//	/SET/r/NAME, with .jsonld .nt .ttl .rdf .html, and ?version=SEQUENCE
//	/SET/timegate/NAME, /SET/timemap/NAME, each also with the suffix of a format
//	/SET/patch/SEQUENCE.json, .rdfp
//
// and the pages beside them (package pages): NAME.html, NAME.2.html and so on for each document
// NAME.xml, /sourcedescription.html, /SET/history/NAME, /SET/compare/NAME?from=&to=,
// /SET/search?q=, /SET/browse.
//
// Our attributes (namespace urn:rsbridge:terms): roots carry sequence, the last position of the
// document in the log, and generation if it belongs to one. Entries of indexes carry the sequence
// of their part. Entries carry graph and the sequence of their change; an entry without a describes
// link (components of blank nodes, invalid IRIs) carries entity. Patch links carry base and result.
//
// # Records
//
// Keys begin with "s", the set's name and a zero byte. Numbers in keys are eight bytes, big-endian.
//
//	g            the generation, JSON (genRecord). It makes everything visible.
//	p BITS       a part of the Resource List (package partition)
//	l NUMBER     a Change List, JSON (listRecord)
//	c NUMBER SEQ rendered entries of a Change List, SEQ of the first: uvarint
//	             count, then url elements
//	x SEQ        the JSON Patch of the update SEQ
//	y SEQ        its RDF Patch
//	i PATH SEQ   a node of the inventory as of the publication SEQ (package inventory)
//	R            the scheduled Resource List, JSON (archiveRecord)
//	A KIND NUMBER an archived document, JSON (archiveRecord)
//	d            the Resource Dump, JSON (dumpRecord)
//	D NUMBER SEQ a Change Dump package of Change List NUMBER up to SEQ, JSON
//	             (packageRecord)
//	H            changes by day and kind, JSON (package days)
//	E, M, N      names of entities (package search)
//	z            the highest numbers of generations and Change Lists before the lists
//	             began anew, and the new addresses, JSON (anewRecord);
//	             numbers are never used twice
//
// Beside those of the sets:
//
//	t NAME       the end of a set of that name, JSON (formerRecord)
//
// Entries and patches of an unfinished Publish lie beyond the sequence of the generation and are
// removed by Open. Packages are files below Options.Dir, put in place by rename before their record
// names them; files without a record are removed by Open.
package publish
