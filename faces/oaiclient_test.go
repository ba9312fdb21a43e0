package faces

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"math/rand/v2"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestOAIHarvester lets sickle (PyPI) harvest a repository whole, then what
// changed, deletions among it.
func TestOAIHarvester(t *testing.T) {
	python := teststores.Python(t)
	var base string
	w := newWorld(t, SetConfig{Base: func(context.Context) string { return base }, Changes: 3 * time.Hour, Versions: 3 * time.Hour})
	srv := httptest.NewServer(w.h)
	defer srv.Close()
	base = srv.URL
	r := rand.New(rand.NewPCG(13, 14))
	w.grow(450)
	have, since := map[string]string{}, ""
	for range 5 {
		cmd := exec.CommandContext(t.Context(), python, "testdata/oai-harvest.py", base+"/data/oai", "rdf", since)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("sickle: %v\n%s", err, stderr.String())
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		deleted := 0
		var records []oaiRecord
		for i, line := range lines {
			var l struct {
				Date, Identifier, Raw string
				Deleted               bool
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				since = l.Date
				continue
			}
			var rec oaiRecord
			if err := xml.Unmarshal([]byte(l.Raw), &rec); err != nil {
				t.Fatal(err)
			}
			if l.Deleted {
				deleted++
			}
			if l.Deleted != (rec.Header.Status == "deleted") || rec.Header.Identifier != l.Identifier {
				t.Errorf("%s: sickle has %v", l.Raw, l)
			}
			records = append(records, rec)
		}
		apply(have, records)
		w.checkCopy(have)
		t.Logf("%d records, %d of them deleted, up to %s", len(records), deleted, since)
		w.clock.add(time.Hour)
		w.change(r, 500, 40)
		w.retain(3*time.Hour, 3*time.Hour)
	}
}
