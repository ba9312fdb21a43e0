package metrics

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestReference holds docs/reference/metrics.md to the code.
func TestReference(t *testing.T) {
	teststores.Reference(t, *update, "metrics.md", page())
}

// page is docs/reference/metrics.md: a line for each metric.
func page() string {
	var b strings.Builder
	b.WriteString(`# Metrics

The daemon serves its metrics at ` + "`/metrics`" + ` of the admin listener, in the formats of Prometheus. Off loopback the request needs the token. This page is made from the code.

The names, labels and units below are stable: a version that changes one says so in the change log. Metrics of the Go runtime and the process (` + "`go_*`, `process_*`" + `) come from the Prometheus library.

[Monitoring](../howto/monitoring.md) has a dashboard, alert rules and traces for them.

`)
	for _, part := range []struct {
		title, about string
		prefixes     []string
	}{
		{"Sets", "One series a set, read from its status at each scrape.", []string{"rsbridge_set_"}},
		{"Destinations", "One series a destination, read from its status at each scrape.", []string{"rsbridge_destination_"}},
		{"Runs", "`kind` is the part of a job's name before the colon, `name` its set or destination: `scan:books` has the kind `scan`. Counters begin at 0 with the process. The others come from the recorded runs, and outlive it.", []string{"rsbridge_run"}},
		{"Requests to stores and sources", "", []string{"rsbridge_store_", "rsbridge_source_"}},
		{"Answered requests", "", []string{"rsbridge_http_"}},
		{"The process", "", []string{"rsbridge_disk_", "rsbridge_last_backup_", "rsbridge_build_"}},
	} {
		fmt.Fprintf(&b, "## %s\n\n", part.title)
		if part.about != "" {
			b.WriteString(part.about + "\n\n")
		}
		b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
		for _, m := range Reference() {
			for _, p := range part.prefixes {
				if strings.HasPrefix(m.Name, p) {
					labels := ""
					if len(m.Labels) > 0 {
						labels = "`" + strings.Join(m.Labels, "`, `") + "`"
					}
					fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
				}
			}
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
