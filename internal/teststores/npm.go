package teststores

import "testing"

// EnvNpm is the folder with ldes-client, installed by npm for withstores.
const EnvNpm = "RSBRIDGE_TEST_NPM"

// Npm is a folder with ldes-client in its node_modules; node runs it.
func Npm(t testing.TB) string { return need(t, EnvNpm, "Node.js with ldes-client") }
