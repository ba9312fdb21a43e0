package destination

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A batch whose answer is lost may stand in the mirror. Whatever else the source offers
// is not tried then, before the next run has redone it.
func TestBatchWhoseAnswerIsLost(t *testing.T) {
	for _, kind := range []string{"dump", "archive"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours, s.archive, s.dump = true, kind == "archive", kind == "dump"
			fill(s, 4)
			if kind == "archive" {
				b.sync()
				s.put("e1.nt", nt("e1", "second"))
				s.put("e2.nt", nt("e2", "second"))
				s.drop = 5 // a gap
			}
			lost := 2 // the client asks twice
			b.mir.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/update" || lost == 0 {
					return false
				}
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				b.mir.exec(string(body))
				if !strings.Contains(string(body), "/e1>") {
					w.WriteHeader(http.StatusNoContent)
					return true
				}
				if lost--; lost == 0 {
					s.put("e1.nt", nt("e1", "third"))
				}
				w.WriteHeader(http.StatusGatewayTimeout)
				return true
			}
			if rep, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "504") {
				t.Fatalf("%+v %v", rep, err)
			}
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		})
	}
}
