package httpapi

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
)

// TestOpening: while a bridge is opened its listeners answer, and the bridge gets them open.
func TestOpening(t *testing.T) {
	cfg := bridge.NewConfig()
	cfg.Sets["data"] = bridge.NewSet()
	lent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Public.Listen, cfg.Admin.Listen = free.Addr().String(), lent.Addr().String()
	free.Close()
	o := AnswerOpening(t.Context(), cfg, Listeners{Admin: lent}, 0, slog.New(slog.DiscardHandler))
	get := func(address string) (int, string, string) {
		t.Helper()
		for {
			res, err := http.Get("http://" + address)
			if err != nil && strings.Contains(err.Error(), "refused") { // not opened yet
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			return res.StatusCode, res.Header.Get("Retry-After"), string(body)
		}
	}
	for address, want := range map[string]string{
		cfg.Public.Listen + "/data/changelist.xml": "503 10",
		cfg.Admin.Listen + "/healthz":              "200 ",
		cfg.Admin.Listen + "/readyz":               "503 ",
		cfg.Admin.Listen + "/api/v1/status":        "503 10",
	} {
		code, again, body := get(address)
		if got := http.StatusText(code); strings.Fields(want)[0] != map[int]string{200: "200", 503: "503"}[code] || !strings.HasSuffix(want, " "+again) || body == "" {
			t.Errorf("%s: %s, again after %q: %s; want %s", address, got, again, body, want)
		}
	}
	l := o.End()
	if l.Public == nil || l.Admin != lent {
		t.Fatalf("listeners %v", l)
	}
	defer l.Close()
	for _, x := range []net.Listener{l.Public, l.Admin} { // they take connections still
		go http.Serve(x, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })) // until Close
		if _, _, body := get(x.Addr().String()); body != "served" {
			t.Errorf("%s after it: %s", x.Addr(), body)
		}
	}
}
