package destination

import (
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// bodyKind is what an answer tells of how its body is read.
type bodyKind struct {
	contentType string
	contexts    []string // addresses of JSON-LD contexts that Link headers name for JSON
}

// relContext is JSON-LD 1.1, section 6.1.
const relContext = "http://www.w3.org/ns/json-ld#context"

func (a *answer) bodyKind() bodyKind {
	k := bodyKind{contentType: a.contentType()}
	if t := essence(k.contentType); t != "application/json" && (!strings.HasSuffix(t, "+json") || t == rdfres.JSONLD.MediaType()) {
		return k
	}
	base, err := url.Parse(a.url)
	if err != nil {
		return k
	}
	for _, target := range resourcesync.HeaderLinks(a.header.Values("Link"), relContext) {
		if u, err := base.Parse(target); err == nil {
			k.contexts = append(k.contexts, u.String())
		}
	}
	return k
}

// charset is that of the content type.
func (k bodyKind) charset() string {
	_, params, err := mime.ParseMediaType(k.contentType)
	if err != nil {
		return ""
	}
	return params["charset"]
}

// context is the address of the context that the headers name, "" for none.
func (k bodyKind) context() (string, error) {
	if len(k.contexts) > 1 {
		return "", fmt.Errorf("Link headers name %d JSON-LD contexts, where JSON has one", len(k.contexts))
	}
	return strings.Join(k.contexts, ""), nil
}
