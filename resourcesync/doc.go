// Package resourcesync reads and writes the documents of the
// ResourceSync Framework (ANSI/NISO Z39.99, version 1.1).
//
// A ResourceSync source describes what it offers in Sitemap documents with a
// few elements of its own. All of them, from the Source Description to the
// manifest inside a package, have one shape, and so one pair of types here:
//
//   - [Head]: the root: which [Capability] it is, its times, its links, and
//     whether it is an index (sitemapindex) of further documents.
//   - [Entry]: one url or sitemap element: an address, its rs:md ([Meta]) and
//     its rs:ln ([Link]).
//
// Documents are streamed in both directions, so their size does not matter:
//
//	w, err := resourcesync.NewWriter(file, head)      // root element and links
//	err = w.Write(&resourcesync.Entry{Loc: "http://src.example/ada"})
//	err = w.Close()
//
//	r, err := resourcesync.NewReader(body, resourcesync.ReaderOptions{BaseURL: address})
//	for {
//		entry, err := r.Next()
//		if err == io.EOF { break }
//		...
//	}
//
// What is written is always 1.1 and follows the XML Schemas. What is read may
// be any dialect from the D-Lib article and 0.5 to 1.1, or a plain Sitemap;
// older forms (0.1, 0.2, Atom) are recognised and refused by name. Reading is
// lenient unless [ReaderOptions].Strict says otherwise, and tells in
// Head.Warnings what it let pass. It is never lenient about what could lose an
// entry: a document that ends early, an entry without loc, or an entry of the
// wrong kind is an error, because a mirror deletes what a list does not hold.
//
// Packages (ZIP files with a manifest) are written by [PackageWriter] and read
// by [OpenPackage]. Package check holds documents against the rules of the framework.
//
// The package does not fetch anything and knows nothing of RDF. It leaves
// content codings (gzip) to whoever fetches. Values of one Reader, Writer or
// package are for one goroutine at a time; everything else is safe for many.
package resourcesync
