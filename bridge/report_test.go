package bridge

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/push"
)

// TestReport: the source shows where a mirror stands, by the mirror's reports, and how far it is
// behind. They say nothing of a mirror that is ahead of a restored source.
func TestReport(t *testing.T) {
	p := newPushing(t, "events")
	m := p.mirror.dests["copy"]
	m.cfg.Report = true
	m.report = m.reports(p.mirror.transport())
	mirrors := func() []push.Mirror {
		t.Helper()
		st, err := p.source.SetStatus(t.Context(), "data")
		if err != nil {
			t.Fatal(err)
		}
		return st.Mirrors
	}
	at := p.publish("")
	if len(mirrors()) != 0 {
		t.Errorf("before the first report: %+v", mirrors())
	}
	do[SyncReport](t, p.mirror, "sync", "copy")
	own, err := p.mirror.DestinationStatus(t.Context(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, sequence, behind uint64, inSync bool) {
		t.Helper()
		got := mirrors()
		if len(got) != 1 {
			t.Fatalf("%s: %+v", when, got)
		}
		x := got[0]
		if x.Name != "copy" || x.Key != own.ReportKey || x.Key == "" || x.Sequence != sequence || x.InSync != inSync || x.BehindChanges == nil || *x.BehindChanges != behind ||
			x.BehindSeconds == nil || *x.BehindSeconds > 0 != (behind > 0) || x.LastReport.IsZero() {
			t.Errorf("%s: %+v, want at %d, behind %d", when, x, sequence, behind)
		}
	}
	check("in sync", at, 0, true)
	p.publish("<http://e.example/b> <http://e.example/p> \"0\" .\n")
	p.publish("<http://e.example/b> <http://e.example/p> \"1\" .\n")
	check("behind", at, 2, false)

	res := do[SyncReport](t, p.mirror, "sync", "copy")
	if !res.InSync {
		t.Fatalf("%+v", res)
	}
	check("again in sync", at+2, 0, true)

	if res, err := http.Post(p.source.Config().Public.BaseURL+"/data/notify/position", "application/json", strings.NewReader("{}")); err != nil || res.StatusCode != http.StatusBadRequest {
		t.Errorf("an empty report: %v, %v", res, err)
	} else {
		res.Body.Close()
	}
}

// TestReportFaults: wrong settings are told with their keys.
func TestReportFaults(t *testing.T) {
	cfg := small(t.TempDir())
	s := cfg.Sets["data"]
	s.Notify.Positions, s.Notify.Mirrors = true, []string{"copy"}
	cfg.Sets["data"] = s
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "sets.data.notify: mirrors: \"copy\" is no key") {
		t.Error(err)
	}
}
