package bridge

import (
	"testing"
)

// TestDumpSchedules: each kind of dump has a job where it is offered, and the
// Change Dump its own only when it has its own schedule.
func TestDumpSchedules(t *testing.T) {
	type want map[string]string // job: schedule
	for name, c := range map[string]struct {
		publish  []string
		schedule string
		want     want
	}{
		"both, one schedule":       {[]string{"resourcedump", "changedump"}, "", want{"dump:data": "@daily"}},
		"both, each its own":       {[]string{"resourcedump", "changedump"}, "@hourly", want{"dump:data": "@daily", "changedump:data": "@hourly"}},
		"changes only":             {[]string{"changedump"}, "", want{"dump:data": "@daily"}},
		"changes only, scheduled":  {[]string{"changedump"}, "@hourly", want{"changedump:data": "@hourly"}},
		"a schedule, but not said": {[]string{"changelist"}, "@hourly", want{}},
	} {
		cfg := small(t.TempDir())
		s := cfg.Sets["data"]
		s.Publish, s.ChangeDump.Schedule = c.publish, c.schedule
		cfg.Sets["data"] = s
		b := mustOpen(t, cfg)
		got := want{}
		for _, j := range b.jobs(t.Context()) {
			if j.Name == "dump:data" || j.Name == "changedump:data" {
				got[j.Name] = j.Schedule
				if j.Subject != "set:data" {
					t.Errorf("%s: the job %s excludes those on %s", name, j.Name, j.Subject)
				}
			}
		}
		for job, schedule := range c.want {
			if got[job] != schedule {
				t.Errorf("%s: %s by %q, want %q", name, job, got[job], schedule)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: jobs %v, want %v", name, got, c.want)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cfg := small(t.TempDir())
	s := cfg.Sets["data"]
	s.ChangeDump.Schedule = "now and then"
	cfg.Sets["data"] = s
	if err := cfg.Validate(); err == nil {
		t.Error("any text is a schedule")
	}
}
