package teststores

import "testing"

// EnvNpm is the folder with the clients in JavaScript, installed by npm for withstores.
const EnvNpm = "RSBRIDGE_TEST_NPM"

// Npm is a folder with the clients in its node_modules; node runs it.
func Npm(t testing.TB) string { return need(t, EnvNpm, "Node.js with its clients") }
