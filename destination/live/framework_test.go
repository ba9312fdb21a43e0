package live

import (
	"fmt"
	"log/slog"
	"testing"
)

// TestFramework: new sets, lists and dumps begin a sync; the growth of a Change List does not. A
// notification that cannot be read begins one.
func TestFramework(t *testing.T) {
	log := &lines{}
	h, err := Open(Options{Name: "copy", Source: "http://source.example", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(capability, change string) string {
		return fmt.Sprintf(`<url><loc>http://source.example/%s.xml</loc><rs:md capability="%s" change="%s"/></url>`, capability, capability, change)
	}
	grown := entry("changelist", "updated")
	for body, wakes := range map[string]bool{
		grown:                                      false,
		grown + grown:                              false,
		entry("changelist", "created"):             true,
		entry("resourcedump", "created"):           true,
		grown + entry("description", "updated"):    true,
		entry("capabilitylist", "deleted") + grown: true,
		"<url>": true,
	} {
		x := &hearing{s: h, c: &channel{}, framework: true}
		x.take([]byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="framework-notification"/>` + body + "</urlset>"))
		select {
		case <-h.hints:
			if !wakes {
				t.Errorf("%s begins a sync", body)
			}
		default:
			if wakes {
				t.Errorf("%s begins none", body)
			}
		}
		if h.Announced().Position != 0 {
			t.Errorf("%s is a position", body)
		}
		if x.opened(); h.Way() != Polling {
			t.Errorf("changes are heard by %s", h.Way())
		}
		<-h.hints
	}
	if n := log.count("cannot be read"); n != 1 || log.count("\n") != 1 {
		t.Errorf("told %d times: %s", n, log)
	}
}
