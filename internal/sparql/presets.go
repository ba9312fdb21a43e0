package sparql

import (
	"fmt"
	"net/url"
	"strings"
)

// Preset are the addresses of a product. URL and REPOSITORY in them stand for the user's settings.
type Preset struct {
	Name, Product string
	URL           string // an example
	Repository    string // the user's word for it; "" when there is none
	Default       string // repository if none is given; "" is an error
	Query, Update string
	GraphStore    string // "" if it has none of SPARQL 1.1
	// Addresses for a user without a name, if they are others.
	OpenQuery, OpenUpdate, OpenGraphStore string
	Tested                                bool // with each change, by the tests of rsbridge
	Limits                                string
}

// Presets are the products by name, the tested ones first.
var Presets = []Preset{
	{Name: "oxigraph", Product: "Oxigraph", URL: "http://localhost:7878", Tested: true,
		Query: "URL/query", Update: "URL/update", GraphStore: "URL/store",
		Limits: "sorting is slow; small numbers are kept by value; language tags in lower case"},
	{Name: "fuseki", Product: "Apache Jena Fuseki (TDB2)", URL: "http://localhost:3030", Repository: "dataset", Default: "ds", Tested: true,
		Query: "URL/REPOSITORY/query", Update: "URL/REPOSITORY/update", GraphStore: "URL/REPOSITORY/data",
		Limits: "small numbers are kept by value; language tags in canonical case"},
	{Name: "rdf4j", Product: "Eclipse RDF4J Server", URL: "http://localhost:8080/rdf4j-server", Repository: "repository", Tested: true,
		Query: "URL/repositories/REPOSITORY", Update: "URL/repositories/REPOSITORY/statements", GraphStore: "URL/repositories/REPOSITORY/rdf-graphs/service",
		Limits: "the default graph shows all named graphs; DESCRIBE is symmetric; TSV is not the W3C form (its binary form is read, or JSON); what is uploaded goes in its binary form (`application/x-binary-rdf`, or N-Triples where that is refused); form bodies of 200,000 bytes"},
	{Name: "virtuoso", Product: "Virtuoso 7", URL: "http://localhost:8890", Tested: true,
		Query: "URL/sparql-auth", Update: "URL/sparql-auth", GraphStore: "URL/sparql-graph-crud-auth",
		OpenQuery: "URL/sparql", OpenUpdate: "", OpenGraphStore: "URL/sparql-graph-crud",
		Limits: "ResultSetMaxRows cuts answers in silence (10,000); sorting of 10,000 rows; VALUES of about 1,000; requests of several operations are not atomic; the default graph shows all named graphs; literals are rewritten; a sub-select with DISTINCT that is joined with other patterns loses rows"},
	{Name: "graphdb", Product: "Ontotext GraphDB", URL: "http://localhost:7200", Repository: "repository",
		Query: "URL/repositories/REPOSITORY", Update: "URL/repositories/REPOSITORY/statements", GraphStore: "URL/repositories/REPOSITORY/rdf-graphs/service",
		Limits: "as RDF4J; inferred statements come with the others unless the repository has no ruleset"},
	{Name: "blazegraph", Product: "Blazegraph", URL: "http://localhost:9999/blazegraph", Repository: "namespace", Default: "kb",
		Query: "URL/namespace/REPOSITORY/sparql", Update: "URL/namespace/REPOSITORY/sparql",
		Limits: "no Graph Store Protocol of SPARQL 1.1; named graphs only in a namespace of quads; inference in a namespace of triples unless it is switched off; queryTimeout of the server"},
	{Name: "qlever", Product: "QLever", URL: "http://localhost:7001",
		Query: "URL", Update: "URL", GraphStore: "URL",
		Limits: "updates ask for the access token: their addresses end with ?access-token=...; the default graph shows all named graphs; no LOAD, CLEAR, CREATE; memory and time of a query are bounded by the server"},
	{Name: "stardog", Product: "Stardog", URL: "http://localhost:5820", Repository: "database",
		Query: "URL/REPOSITORY/query", Update: "URL/REPOSITORY/update", GraphStore: "URL/REPOSITORY",
		Limits: "queries end after five minutes unless query.timeout says otherwise; query.all.graphs decides what the default graph shows"},
	{Name: "allegrograph", Product: "AllegroGraph", URL: "http://localhost:10035", Repository: "repository",
		Query: "URL/repositories/REPOSITORY", Update: "URL/repositories/REPOSITORY",
		Limits: "a catalog is part of the address: http://localhost:10035/catalogs/NAME; duplicates are kept unless the repository suppresses them"},
	{Name: "neptune", Product: "Amazon Neptune", URL: "https://cluster.example:8182",
		Query: "URL/sparql", Update: "URL/sparql", GraphStore: "URL/sparql/gsp/",
		Limits: "the default graph shows all named graphs; neptune_query_timeout ends queries (two minutes); requests are not signed (no IAM authentication); blank nodes get new labels"},
}

// PresetNames are the names of the presets.
func PresetNames() (out []string) {
	for _, p := range Presets {
		out = append(out, p.Name)
	}
	return out
}

// Addresses fills a preset in: base is the address of the server, open means that no user name is
// given.
func Addresses(preset, base, repository string, open bool) (query, update, graphStore string, err error) {
	for _, p := range Presets {
		if p.Name != preset {
			continue
		}
		if repository == "" {
			repository = p.Default
		}
		if p.Repository != "" && repository == "" {
			return "", "", "", fmt.Errorf("%s needs the repository: the name of the %s", p.Product, p.Repository)
		}
		if p.Repository == "" && repository != "" {
			return "", "", "", fmt.Errorf("%s has no repositories", p.Product)
		}
		fill := strings.NewReplacer("URL", strings.TrimRight(base, "/"), "REPOSITORY", url.PathEscape(repository))
		if open && p.OpenQuery != "" {
			return fill.Replace(p.OpenQuery), fill.Replace(p.OpenUpdate), fill.Replace(p.OpenGraphStore), nil
		}
		return fill.Replace(p.Query), fill.Replace(p.Update), fill.Replace(p.GraphStore), nil
	}
	return "", "", "", fmt.Errorf("%q is none of %s", preset, strings.Join(PresetNames(), ", "))
}

// SplitPreset takes PRESET:URL apart. The last part of the path is the repository, for a product with some.
func SplitPreset(place string) (preset, base, repository string, err error) {
	preset, base, _ = strings.Cut(place, ":")
	for _, p := range Presets {
		if p.Name != preset {
			continue
		}
		base = strings.TrimRight(base, "/")
		u, err := url.Parse(base)
		if err != nil || u.Host == "" {
			return "", "", "", fmt.Errorf("write %s:%s", preset, p.URL)
		}
		example, err := url.Parse(p.URL)
		if p.Repository == "" || err != nil || strings.Count(u.Path, "/") <= strings.Count(example.Path, "/") {
			return preset, base, "", nil
		}
		at := strings.LastIndexByte(base, '/')
		repository, err = url.PathUnescape(base[at+1:])
		return preset, strings.TrimSuffix(base[:at], "/repositories"), repository, err
	}
	return "", "", "", fmt.Errorf("it is embedded:DIR, files:DIR, dump:FILE, or one of %s with an address", strings.Join(PresetNames(), ", "))
}

// PresetTable is the presets as a table in Markdown.
func PresetTable() string {
	var b strings.Builder
	b.WriteString("| `preset` | product | `url`, for example | `repository` | query | update | graph_store | known limits | tested |\n|---|---|---|---|---|---|---|---|---|\n")
	short := func(s string) string {
		if s = strings.TrimPrefix(s, "URL"); s == "" {
			return "the same"
		}
		return "`" + strings.ReplaceAll(s, "REPOSITORY", "ID") + "`"
	}
	for _, p := range Presets {
		repository, store, tested := p.Repository, "none", "no"
		if p.Default != "" {
			repository += ", default " + p.Default
		}
		if p.GraphStore != "" {
			store = short(p.GraphStore)
		}
		if p.Tested {
			tested = "yes"
		}
		query, update := short(p.Query), short(p.Update)
		if p.OpenQuery != "" {
			query, update, store = query+", without a user "+short(p.OpenQuery), update+", without a user none", store+", without a user "+short(p.OpenGraphStore)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s | %s | %s | %s | %s |\n", p.Name, p.Product, p.URL, repository, query, update, store, p.Limits, tested)
	}
	return b.String()
}
