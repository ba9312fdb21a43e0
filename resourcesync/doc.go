// Package resourcesync reads and writes the documents of the ResourceSync Framework (ANSI/NISO
// Z39.99, version 1.1).
//
// A ResourceSync source describes its resources in Sitemap documents with a few elements of its
// own. All of them, from the Source Description to the manifest inside a package, have one shape,
// and so one pair of types here:
//
//   - [Head]: the root: its [Capability], times and links, and whether it is an
//     index (sitemapindex) of further documents.
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
// Writing always gives 1.1 by the XML Schemas. Reading takes any dialect from the D-Lib article and
// 0.5 to 1.1, or a plain Sitemap. Older forms (0.1, 0.2, Atom) are recognised and refused by name.
// Reading is lenient unless [ReaderOptions].Strict is set, and lists the forgiven faults in
// Head.Warnings. It is never lenient about the loss of an entry: a document that ends early, an
// entry without loc, or an entry of the wrong kind is an error, because a mirror deletes resources
// missing from a list.
//
// Packages (ZIP files with a manifest) are written by [PackageWriter] and read by [OpenPackage].
// Package check holds documents against the rules of the framework.
//
// The package does not fetch anything and knows nothing of RDF. It leaves content codings (gzip) to
// the HTTP client. Values of one Reader, Writer or package are for one goroutine at a time;
// everything else is safe for many.
package resourcesync
