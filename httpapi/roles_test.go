package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/access"
)

// TestRolesOfRoutes: the description names the role of every route, and the server keeps to it. A request
// without a token gets 401, one with a lesser role 403, and one with this role or a higher one neither.
func TestRolesOfRoutes(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	var doc struct {
		Paths map[string]map[string]struct{ Security []map[string][]access.Role }
	}
	w.get("/openapi.json", &doc)
	h := httpapi.New(w.b, httpapi.Options{})
	secrets := map[access.Role]string{"": ""}
	for _, r := range access.Roles() {
		secrets[r] = w.token(access.Token{Name: "my-" + string(r), Role: r})
	}
	described := map[string]bool{}
	for path, methods := range doc.Paths {
		at := strings.NewReplacer("{name}", "nobody", "{id}", "999999").Replace(path)
		for method, op := range methods {
			method = strings.ToUpper(method)
			described[method+" "+path] = true
			need := roleOf(op.Security)
			if !slices.Contains(access.Roles(), need) {
				t.Errorf("%s %s has the role %q in the description", method, path, need)
				continue
			}
			sent := []string{method}
			if method == http.MethodGet {
				sent = append(sent, http.MethodHead)
			}
			for _, method := range sent {
				for role, secret := range secrets {
					want := http.StatusOK // or any other
					switch {
					case role == "":
						want = http.StatusUnauthorized
					case !role.Has(need):
						want = http.StatusForbidden
					}
					ctx, cancel := context.WithCancel(t.Context())
					if strings.HasSuffix(path, "/events") { // it has no end of its own
						cancel()
					}
					r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+at, nil)
					if secret != "" {
						r.Header.Set("Authorization", "Bearer "+secret)
					}
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					cancel()
					refused := rec.Code == http.StatusUnauthorized || rec.Code == http.StatusForbidden
					if refused != (want != http.StatusOK) || refused && rec.Code != want {
						t.Errorf("%s %s as %q: %d, and the description says %s", method, path, role, rec.Code, need)
					}
				}
			}
		}
	}
	for _, r := range h.(*gin.Engine).Routes() {
		path := regexp.MustCompile(`:([a-z]+)`).ReplaceAllString(r.Path, "{$1}")
		if strings.HasPrefix(path, "/api/") && r.Method != http.MethodHead && !described[r.Method+" "+path] {
			t.Errorf("%s %s is not in the description", r.Method, r.Path)
		}
	}
	if len(described) < 40 {
		t.Errorf("%d routes only", len(described))
	}
}

// roleOf is the role that all ways to log in name, "" if they do not. No way at all is for a bridge without
// tokens.
func roleOf(security []map[string][]access.Role) (role access.Role) {
	ways := map[string]bool{}
	for _, by := range security {
		for way, roles := range by {
			if len(roles) != 1 || role != "" && role != roles[0] {
				return ""
			}
			ways[way], role = true, roles[0]
		}
	}
	if !ways["token"] || !ways["basic"] {
		return ""
	}
	return role
}
