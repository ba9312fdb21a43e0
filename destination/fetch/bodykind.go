package fetch

import (
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Kind is how a body is read, by its headers.
type Kind struct {
	ContentType string
	Contexts    []string // addresses of JSON-LD contexts, from the Link headers of JSON
}

// relContext is JSON-LD 1.1, section 6.1.
const relContext = "http://www.w3.org/ns/json-ld#context"

// Kind tells how the body is read, by the headers of its answer.
func (a *Answer) Kind() Kind {
	k := Kind{ContentType: a.ContentType()}
	if t := Essence(k.ContentType); t != "application/json" && (!strings.HasSuffix(t, "+json") || t == rdfres.JSONLD.MediaType()) {
		return k
	}
	base, err := url.Parse(a.URL)
	if err != nil {
		return k
	}
	for _, target := range resourcesync.HeaderLinks(a.Header.Values("Link"), relContext) {
		if u, err := base.Parse(target); err == nil {
			k.Contexts = append(k.Contexts, u.String())
		}
	}
	return k
}

// Charset is that of the content type.
func (k Kind) Charset() string {
	_, params, err := mime.ParseMediaType(k.ContentType)
	if err != nil {
		return ""
	}
	return params["charset"]
}

// Context is the address of the JSON-LD context in the headers, "" for none.
func (k Kind) Context() (string, error) {
	if len(k.Contexts) > 1 {
		return "", fmt.Errorf("Link headers name %d JSON-LD contexts, where JSON has one", len(k.Contexts))
	}
	return strings.Join(k.Contexts, ""), nil
}

// Essence is a media type without its parameters, in lower case (the WHATWG's MIME Sniffing).
func Essence(mediaType string) string {
	t, _, _ := strings.Cut(mediaType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}
