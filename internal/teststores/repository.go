package teststores

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
)

// repository configures a native repository of an Eclipse RDF4J Server.
const repository = `@prefix c: <tag:rdf4j.org,2023:config/> .
[] a c:Repository ; c:rep.id %q ; c:rep.impl [ c:rep.type "openrdf:SailRepository" ;
  c:sail.impl [ c:sail.type "openrdf:NativeStore" ; c:native.tripleIndexes "spoc,posc,cspo" ] ] .
`

// NewRepository makes an empty native repository of an RDF4J server at an address,
// whose last part is its name.
func NewRepository(ctx context.Context, addr string) error {
	return ask(ctx, http.MethodPut, addr, fmt.Sprintf(repository, path.Base(addr)))
}

// DropRepository removes a repository with all its data.
func DropRepository(ctx context.Context, addr string) error {
	return ask(ctx, http.MethodDelete, addr, "")
}

func ask(ctx context.Context, method, addr, turtle string) error {
	req, err := http.NewRequestWithContext(ctx, method, addr, strings.NewReader(turtle))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/turtle")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		words, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, addr, res.Status, words)
	}
	return nil
}
