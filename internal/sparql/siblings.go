package sparql

import (
	"context"
	"net/url"
	"regexp"
	"strings"
)

// siblings are the product's other addresses beside a query address, by its preset: update,
// graph_store.
func siblings(product, query string) map[string]string {
	out := map[string]string{}
	known := append([]Preset{{Product: "rsbridge", Query: "URL/query", Update: "URL/update", GraphStore: "URL/data"}}, Presets...)
	known = append(known, Preset{Product: "Fuseki", Query: "URL", Update: "URL/update", GraphStore: "URL/data"}) // a dataset takes queries too
	for _, p := range known {
		if product == "" || !strings.Contains(strings.ToLower(p.Product), strings.ToLower(product)) {
			continue
		}
		for _, from := range []string{p.Query, p.OpenQuery} {
			if from == "" {
				continue
			}
			pattern := strings.NewReplacer("URL", "(.*)", "REPOSITORY", "([^/]+)").Replace(from)
			m := regexp.MustCompile("^" + pattern + "/?$").FindStringSubmatch(query)
			if m == nil {
				continue
			}
			repository := ""
			if len(m) > 2 {
				repository, _ = url.PathUnescape(m[2])
			}
			update, graphStore := p.Update, p.GraphStore
			if from == p.OpenQuery {
				update, graphStore = p.OpenUpdate, p.OpenGraphStore
			}
			fill := strings.NewReplacer("URL", m[1], "REPOSITORY", url.PathEscape(repository))
			for kind, at := range map[string]string{"update": update, "graph_store": graphStore} {
				if at != "" {
					out[kind] = fill.Replace(at)
				}
			}
			return out
		}
	}
	return out
}

// Found are the store's addresses not given in the configuration. The Graph Store address counts
// when it answers. The update address counts when it refuses an invalid update as an update service
// would (nothing is written).
func (c *Client) Found(ctx context.Context, product string) map[string]string {
	out := map[string]string{}
	for kind, at := range siblings(product, c.conn.endpoint.Query) {
		e := c.conn.endpoint
		if kind == "graph_store" && e.GraphStore != "" || kind == "update" && e.Update != "" {
			continue
		}
		e.GraphStore, e.Retries = "", -1
		if kind == "graph_store" {
			e.GraphStore = at
		}
		other, err := New(e)
		if err != nil {
			continue
		}
		if kind == "update" && other.takesUpdates(ctx, at) || kind == "graph_store" && other.tryGraphStore(ctx, new(Manners)) == "ok" {
			out[kind] = redact(at)
		}
		_ = other.Close() // idle connections only
	}
	return out
}

// takesUpdates sends an invalid update, and looks whether the address refuses its syntax.
func (c *Client) takesUpdates(ctx context.Context, at string) bool {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, onceKey{}, true), stepTime)
	defer cancel()
	r := request{op: "look for updates", method: "POST", url: at, contentType: "application/sparql-update"}
	r.body, r.length = textBody("this is no update")
	res, err := c.conn.send(ctx, r)
	if err == nil {
		res.Close()
		return false // whatever took this
	}
	return strings.Contains(err.Error(), "400") || strings.Contains(err.Error(), "401")
}
