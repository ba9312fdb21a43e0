package faces

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

var services = map[string]Service{
	LDES: {LDES, "Linked Data Event Stream", "every version as a member, for clients of event streams", "/ldes/view", "/ldes/view", trigType, "https://w3id.org/ldes/specification", "https://w3id.org/tree#view"},
	IIIF: {IIIF, "IIIF Change Discovery", "the changes as activities", "/activity", "/activity", "application/ld+json", "https://iiif.io/api/discovery/1.0/", ""},
	OAI:  {OAI, "OAI-PMH 2.0", "records for harvesters, in oai_dc and RDF/XML", "/oai", "/oai?verb=Identify", "text/xml", "http://www.openarchives.org/OAI/openarchivesprotocol.html", ""},
}

// Services tells of faces by their names, in the order of Names. Unknown names are
// passed over.
func Services(shown []string) (out []Service) {
	for _, name := range Names {
		for _, s := range shown {
			if s == name {
				out = append(out, services[name])
				break
			}
		}
	}
	return out
}
