package teststores

import "testing"

// The environment variables of the tests of packages and monitoring.
const (
	EnvPromtool = "RSBRIDGE_TEST_PROMTOOL" // program
	EnvRoot     = "RSBRIDGE_TEST_ROOT"     // tar of a clean Debian, for a chroot
	EnvMkdocs   = "RSBRIDGE_TEST_MKDOCS"   // program
)

// Promtool is the checker of Prometheus for rules and metrics.
func Promtool(t testing.TB) string { return need(t, EnvPromtool, "promtool") }

// CleanDebian is a tar with the files of a clean Debian.
func CleanDebian(t testing.TB) string { return need(t, EnvRoot, "a clean Debian") }

// Mkdocs is the program that makes the site of the documents.
func Mkdocs(t testing.TB) string { return need(t, EnvMkdocs, "mkdocs") }
