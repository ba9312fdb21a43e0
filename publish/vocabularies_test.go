package publish

// Vocabularies of the descriptions of sets.
const (
	nsRDF  = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	nsVoID = "http://rdfs.org/ns/void#"
	nsDCAT = "http://www.w3.org/ns/dcat#"
	nsDCT  = "http://purl.org/dc/terms/"
	nsFOAF = "http://xmlns.com/foaf/0.1/"
)
