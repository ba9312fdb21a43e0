// Package schemaorg carries two releases of the schema.org vocabulary for the
// demo, the examples and the tests. The data is © schema.org, under the Creative
// Commons Attribution-ShareAlike License 3.0; see LICENCE.md beside this file.
package schemaorg

import _ "embed"

// Release is one release of the vocabulary, as gzipped N-Triples.
type Release struct {
	Version    string
	NTriplesGz []byte
}

var (
	//go:embed 14.0.nt.gz
	v14 []byte
	//go:embed 15.0.nt.gz
	v15 []byte
)

// Releases are in the order in which they came.
var Releases = []Release{{"14.0", v14}, {"15.0", v15}}
