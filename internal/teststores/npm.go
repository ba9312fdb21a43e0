package teststores

import "testing"

// EnvNpm is the folder into which withstores had npm install ldes-client.
const EnvNpm = "RSBRIDGE_TEST_NPM"

// Npm is a folder whose node_modules has ldes-client; node runs it.
func Npm(t testing.TB) string { return need(t, EnvNpm, "Node.js with ldes-client") }
