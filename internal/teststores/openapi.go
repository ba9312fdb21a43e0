package teststores

import "testing"

// EnvRedocly and EnvSchemathesis are programs for the description of the API.
const (
	EnvRedocly      = "RSBRIDGE_TEST_REDOCLY"
	EnvSchemathesis = "RSBRIDGE_TEST_SCHEMATHESIS"
)

// Redocly is the checker of an OpenAPI document.
func Redocly(t testing.TB) string { return need(t, EnvRedocly, "redocly") }

// Schemathesis is the tester of an API by its OpenAPI document.
func Schemathesis(t testing.TB) string { return need(t, EnvSchemathesis, "schemathesis") }
