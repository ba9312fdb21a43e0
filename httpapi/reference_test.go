package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestReference holds the pages of the API in docs/reference to the table of routes.
func TestReference(t *testing.T) {
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode((&api{}).openAPI()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"openapi.json": want.String(), "api.md": apiPage((&api{}).routes())} {
		teststores.Reference(t, *update, name, want)
	}
}

// apiPage is docs/reference/api.md: a line for each route.
func apiPage(routes []route) string {
	var b strings.Builder
	b.WriteString(`# Admin API

The admin listener answers JSON at ` + "`http://127.0.0.1:8081`" + `. Off loopback every request needs ` + "`Authorization: Bearer TOKEN`" + `, or basic authentication with the token as password. [openapi.json](openapi.json) has all types; the daemon serves it at ` + "`/openapi.json`" + `. Both are made from the code.

A run begins with 202 and a ` + "`Location`" + `, its address. The answer is 409 during a run of the same kind. Faults are problem documents (RFC 9457). ` + "`GET`" + ` also answers ` + "`HEAD`" + `.

The role is the least one that may use an address: ` + "`read`, `operate` or `admin`" + `, each with the powers of those before it.

| method | address | role | answers | parameters |
|---|---|---|---|---|
`)
	for _, r := range routes {
		var params []string
		for _, q := range r.query {
			params = append(params, "`"+q.name+"`")
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", r.method, pathParam.ReplaceAllString(r.path, "{$1}"), r.role, strings.ReplaceAll(r.summary, "|", "\\|"), strings.Join(params, ", "))
	}
	b.WriteString(`
Beside the API: ` + "`/`" + ` (dashboard), ` + "`/healthz`, `/readyz`, `/metrics`" + ` (Prometheus), and ` + "`/stores/NAME/query`, `/update`, `/data`" + ` of embedded stores and [gateways](../howto/update-gateway.md).
`)
	return b.String()
}
