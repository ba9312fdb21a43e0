package bridge_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
)

// TestLogLines: no line of the log says the same attribute twice.
func TestLogLines(t *testing.T) {
	source := embedded(t, "source")
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(t.TempDir(), "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: "http://bridge.example"}, ""
	cfg.Stores["source"], cfg.Stores["mirror"] = source.store, embedded(t, "mirror").store
	set := bridge.NewSet()
	set.Store, set.Graphs, set.Schedule = "source", []string{source.graph}, ""
	cfg.Sets["data"] = set
	copied := bridge.NewDestination()
	copied.Source, copied.Store = cfg.Public.BaseURL, "mirror"
	cfg.Destinations["copy"] = copied
	var lines bytes.Buffer
	b, err := bridge.Open(t.Context(), cfg, bridge.Options{Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	source.put(t, b, "application/n-triples", []byte("<http://e.example/1> <http://e.example/p> \"1\" .\n"))
	var rep bridge.ScanReport
	var synced bridge.SyncReport
	err = errors.Join(b.Do(t.Context(), "scan", "data", nil, &rep), b.Do(t.Context(), "sync", "copy", nil, &synced))
	if closeErr := b.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	for _, component := range []string{"publish", "destination"} {
		if !strings.Contains(lines.String(), "component="+component) {
			t.Fatalf("nothing of %s is told:\n%s", component, &lines)
		}
	}
	for line := range strings.Lines(lines.String()) {
		keys := regexp.MustCompile(`(?:^| )([\w.]+)=`).FindAllStringSubmatch(regexp.MustCompile(`"(\\.|[^"\\])*"`).ReplaceAllString(line, `""`), -1)
		seen := []string{}
		for _, k := range keys {
			if slices.Contains(seen, k[1]) {
				t.Errorf("%s is told twice: %s", k[1], line)
			}
			seen = append(seen, k[1])
		}
	}
}
