// Package publish turns the change log into ResourceSync documents, dumps,
// patches and notifications, and serves them.
//
// [Publisher.Publish] makes what a set's log holds now visible: a numbered
// generation. It reads the changes since the last one, renders their Change
// List entries, computes the patches, notes which parts of the Resource List
// they touch, and makes all of that visible by one record. Nothing else is
// written, so it costs what the changes cost. Everything that is served comes
// from one consistent view of the log that belongs to the generation: a hash in
// a list is the hash of the bytes that its address answers with.
//
// # Documents
//
// The Resource List is cut into parts: ranges of rdfres.EntityKey, named by the
// leading bits that their keys share. While there is one part it is
// resourcelist.xml itself, otherwise that is the index. A part is assembled when
// it is first asked for after it was touched, and carries the time and sequence
// at which it was touched, so an untouched part keeps its bytes and ETag. It is cut
// by the number of its entries and by the bytes that they take.
//
// Change Lists are numbered from 1 and begin at the end of the first complete
// scan. The last one is open; it is closed when a change arrives that is too
// late or one too many for it (SetConfig.Rotate, RotateEntries). Closed ones
// never change again: they are put together from entries that were rendered
// once. Their times are times of log positions: until of a list, from of its
// successor and the datetime of its last change are the same instant, and the
// times of changes strictly rise. So a destination that holds the state of T (a
// Resource List's at) loses nothing whether it asks for changes later than T or
// not earlier than T.
//
// A representation whose format differs from that of the version before it (what
// JSON-LD cannot carry is N-Triples) has another address, because addresses end
// in the format's suffix. Such an update is two entries of equal datetime and
// sequence: deleted at the old address, then created at the new one.
//
// # Addresses
//
// A set stays at the base URL and prefix of its first generation until its log says
// that it moves (Addresses): then new lists begin, and names made with a former
// prefix are redirected.
//
// Below the base URL: /.well-known/resourcesync, /about (the source as a DCAT
// catalogue), / (for people), and for each set
//
//	/SET/capabilitylist.xml
//	/SET/resourcelist.xml, /SET/resourcelist-BITS.xml
//	/SET/changelist.xml, /SET/changelist-NNNNNN.xml
//	/SET/resourcedump.xml, /SET/resourcedump/GENERATION/NNNNN.zip, ...-manifest.xml
//	/SET/changedump.xml, /SET/changedump/LIST-NNN.zip, ...-manifest.xml
//	/SET/inventory.json, /SET/inventory/SEQUENCE.json, /SET/inventory/SEQUENCE/PATH.json
//	/SET/archives/resourcelist.xml, changelist.xml, resourcedump.xml, changedump.xml,
//	and the documents that they list
//	/SET/about, with .ttl .jsonld .nt .rdf .html
//	/SET/r/NAME, with .jsonld .nt .ttl .rdf .html, and ?version=SEQUENCE
//	/SET/timegate/NAME, /SET/timemap/NAME, each also with the suffix of a format
//	/SET/patch/SEQUENCE.json, .rdfp
//
// Our attributes (namespace urn:rsbridge:terms): roots carry sequence, the position
// in the log that the document reaches, and generation where it belongs to one;
// entries of indexes carry the sequence of their part; entries carry the sequence
// of their change and graph, and where there is no describes link (components of
// blank nodes, and what is no valid IRI) entity; patch links carry base and
// result.
//
// # Records
//
// Keys begin with "s", the set's name and a zero byte. Numbers in keys are eight
// bytes, big-endian.
//
//	g            the generation, JSON (genRecord). It makes everything visible.
//	p BITS       a part of the Resource List (package partition)
//	l NUMBER     a Change List, JSON (listRecord)
//	c NUMBER SEQ rendered entries of a Change List, SEQ that of the first: uvarint
//	             count, then url elements
//	x SEQ        the JSON Patch of the update SEQ
//	y SEQ        its RDF Patch
//	i PATH SEQ   a node of the inventory as of the publication SEQ (package inventory)
//	R            the Resource List where it is made by schedule, JSON (archiveRecord)
//	A KIND NUMBER an archived document, JSON (archiveRecord)
//	d            the Resource Dump, JSON (dumpRecord)
//	D NUMBER SEQ a Change Dump package of Change List NUMBER that ends with SEQ, JSON
//	             (packageRecord)
//	z            the highest numbers of generations and Change Lists before the lists
//	             began anew, and the addresses of what began, JSON (anewRecord);
//	             numbers are never used twice
//
// Beside those of the sets:
//
//	t NAME       what became of a set of that name, JSON (formerRecord)
//
// Entries and patches of an unfinished Publish lie beyond the sequence of the
// generation and are removed by Open. Packages are files below Options.Dir, put
// in place by rename before their record names them; files without a record are
// removed by Open.
package publish
