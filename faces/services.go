package faces

import (
	"context"
	"slices"
)

// Service describes a face for the documents of the set: its entry point and its specification.
// Paths are below the address of the set.
type Service struct {
	Name       string // of the face, also in IRIs
	Title      string // for people
	Text       string // its use, for people
	Endpoint   string // path of the first request of a client
	Self       string // path of a page about the service
	Type       string // media type of Self
	ConformsTo string // IRI of the specification
	Rel        string // the specification's own link relation; "": none
}

// face is one protocol: a row of known, and the file with its answer.
type face struct {
	Service
	segment string // of its paths, below the address of the set
	answer  func(q *request, ctx context.Context, rest string) error
	posts   bool // it takes requests by POST too
}

// known are all faces, in the order of documents.
var known = []face{
	{Service{LDES, "Linked Data Event Stream", "every version as a member, for clients of event streams", "/ldes/view", "/ldes/view", trigType, "https://w3id.org/ldes/specification", "https://w3id.org/tree#view"},
		"ldes", (*request).ldes, false},
	{Service{IIIF, "IIIF Change Discovery", "the changes as activities", "/activity", "/activity", "application/ld+json", "https://iiif.io/api/discovery/1.0/", ""},
		"activity", (*request).iiif, false},
	{Service{OAI, "OAI-PMH 2.0", "records for harvesters, in oai_dc and RDF/XML", "/oai", "/oai?verb=Identify", "text/xml", "http://www.openarchives.org/OAI/openarchivesprotocol.html", ""},
		"oai", (*request).oai, true},
}

// Names are all faces, in the order of documents.
var Names = names()

func names() (out []string) {
	for _, f := range known {
		out = append(out, f.Name)
	}
	return out
}

// Services tells of faces by their names, in the order of Names. Unknown names are
// passed over.
func Services(shown []string) (out []Service) {
	for _, f := range known {
		if slices.Contains(shown, f.Name) {
			out = append(out, f.Service)
		}
	}
	return out
}
