// Package httpapi serves the administration API and the dashboard of a bridge,
// and is its client.
//
// [New] makes the handler of the admin listener: the API below /api/v1 (one
// table of routes in routes.go), /healthz, /readyz, /metrics, the dashboard at /,
// the OpenAPI description at /openapi.json, and the embedded stores below
// /stores/NAME. Handlers return errors; one table (problems.go) turns them into
// application/problem+json (RFC 9457). [Serve] opens both listeners of a bridge
// and serves until its context ends. [Client] is what the command line uses when
// a daemon runs.
//
// The API is closed by default: with a token every request needs
// "Authorization: Bearer TOKEN"; without one only loopback addresses are
// listened on, and requests whose Host or Origin names another machine are
// refused, so that a web page cannot reach it through a browser.
package httpapi
