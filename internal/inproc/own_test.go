package inproc

import (
	"net/http"
	"testing"
)

type answersAs int

func (a answersAs) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

// Only what is below the base URL is this bridge's own: beside its path another
// source may live, behind the same proxy.
func TestOwnOrWeb(t *testing.T) {
	const own, web = 200, 404
	rt := OwnOrWeb{Bases: func() []string { return []string{"https://data.example/rs", "http://old.example"} }, Own: answersAs(own), Web: answersAs(web)}
	for address, want := range map[string]int{
		"https://data.example/rs":                          own,
		"https://Data.example/rs/.well-known/resourcesync": own,
		"https://data.example/rsx/capabilitylist.xml":      web,
		"https://data.example/other/capabilitylist.xml":    web,
		"https://data.example/.well-known/resourcesync":    web,
		"http://data.example/rs/.well-known/resourcesync":  web,
		"http://old.example":                               own,
		"http://old.example/data/r/a.nt?version=3":         own,
		"http://old.example.net/.well-known/resourcesync":  web,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := rt.RoundTrip(r)
		if err != nil || res.StatusCode != want {
			t.Errorf("%s: %v %v, want %d", address, res, err, want)
		}
	}
}
