// Package httpapi serves the administration API and the dashboard of a bridge, and is its client.
//
// [New] makes the handler of the admin listener: the API below /api/v1 (one table of routes in
// routes.go), /healthz, /readyz, /metrics, the dashboard at /, the OpenAPI description at
// /openapi.json, and the embedded stores below /stores/NAME. Handlers return errors; one table
// (problems.go) turns them into application/problem+json (RFC 9457). [Serve] opens both listeners
// of a bridge and serves until its context ends. The command line uses [Client] beside a running
// daemon.
//
// The API is closed by default. With a token every request needs "Authorization: Bearer TOKEN".
// Without one it listens on loopback only, and refuses a Host or Origin of another machine: so no
// web page reaches it through a browser.
package httpapi
