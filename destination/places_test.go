package destination

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report tells where the mirror is, and of what is no RDF: a folder has it like any other. An
// audit names a file that is gone.
func TestPlacesOfReports(t *testing.T) {
	inPlaces(t, func(t *testing.T, kind, place string, b *bench, open func() *Destination) {
		if kind == "dump" {
			return
		}
		for name := range filesIn(t, place) {
			if strings.HasSuffix(name, "a.png") {
				if err := os.Remove(filepath.Join(place, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		audit, err := open().Audit(t.Context(), AuditOptions{})
		if err != nil || len(audit.Named) != 1 || !strings.HasPrefix(audit.Named[0].Detail, "its file ") || !strings.HasSuffix(audit.Named[0].Detail, "a.png is gone") {
			t.Errorf("%+v %v", audit.Named, err)
		}
		if st, err := open().Status(t.Context()); err != nil || st.Held != "an audit found the mirror changed or incomplete; audit --repair restores it" {
			t.Errorf("%q %v", st.Held, err)
		}
	})
}
