package sink

import (
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// Shown is the address of a sink for people: the path of a dump or folder, the name of an
// embedded store, any other address without secrets.
func Shown(address string) string {
	if u, err := url.Parse(address); err == nil {
		if kind, ours := strings.CutSuffix(u.Host, ".invalid"); ours {
			if store, embedded := strings.CutSuffix(kind, ".embedded"); embedded {
				return "embedded:" + store
			}
			return kind + ":" + u.Path
		}
	}
	return sparql.Redact(sparql.WithoutToken(address))
}

// IsOwnGraph tells of a graph of rsbridge's own bookkeeping. No resource is mirrored there.
func IsOwnGraph(graph string) bool { return sparql.IsOwnGraph(graph) }
