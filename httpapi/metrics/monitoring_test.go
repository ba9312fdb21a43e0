package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/rsbridge/rsbridge/httpapi/metrics"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

var ours = regexp.MustCompile(`\brsbridge_\w+`)

// names are those of the series that a metric has, with the ends of histograms.
func names() map[string]bool {
	all := map[string]bool{}
	for _, m := range metrics.Reference() {
		all[m.Name] = true
		if m.Type == "histogram" {
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				all[m.Name+end] = true
			}
		}
	}
	return all
}

func monitoring(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(teststores.Root(t), "examples", "monitoring", name)
}

// panelQueries are the queries of the dashboard, as Prometheus gets them.
func panelQueries(t *testing.T) (queries []string) {
	t.Helper()
	raw, err := os.ReadFile(monitoring(t, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %s asks nothing", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, there := taken[at]; there {
					t.Fatalf("the panels %s and %s overlap", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		for _, q := range p.Targets {
			queries = append(queries, strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(q.Expr))
		}
	}
	return queries
}

// TestMonitoringNames: dashboard and alert rules ask for metrics of the reference alone.
func TestMonitoringNames(t *testing.T) {
	rules, err := os.ReadFile(monitoring(t, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	known, used := names(), 0
	for _, text := range append(panelQueries(t), string(rules)) {
		for _, name := range ours.FindAllString(text, -1) {
			if used++; !known[name] {
				t.Errorf("%s is asked for, and no metric of the reference", name)
			}
		}
	}
	if used < 40 {
		t.Errorf("only %d names were looked at", used)
	}
}

// TestPromtool: promtool takes the configuration, the alert rules and the queries of the dashboard;
// the alerts fire when they should; and the metrics of a daemon follow the customs.
func TestPromtool(t *testing.T) {
	promtool := teststores.Promtool(t)
	check := func(stdin string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir, cmd.Stdin = monitoring(t, "."), strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	check("", "check", "config", "prometheus.yml")
	check("", "check", "rules", "alerts.yml")
	check("", "test", "rules", "alerts_test.yml")

	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for i, q := range panelQueries(t) {
		rules = append(rules, rule{fmt.Sprintf("panel:%d", i), q})
	}
	raw, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	check("", "check", "rules", file)

	_, at := daemon(t)
	check(text(t, at), "check", "metrics")
}
