package accept

import "testing"

var offers = [][]string{{"application/ld+json", "application/json"}, {"text/turtle", "text/n3"}, {"text/html", "application/xhtml+xml"}}

func TestBest(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   string // "" none
	}{
		{nil, "application/ld+json"},
		{[]string{" "}, "application/ld+json"},
		{[]string{"*/*"}, "application/ld+json"},
		{[]string{"*"}, "application/ld+json"},
		{[]string{"text/*"}, "text/turtle"},
		{[]string{"TEXT/HTML"}, "text/html"},
		{[]string{"text/html;q=0.9, text/turtle;q=0.8"}, "text/html"},
		{[]string{"text/html ; level=1 ; Q=0.2", "text/turtle;q=0.3"}, "text/turtle"},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, "text/html"},
		{[]string{"*/*, text/turtle;q=0.5"}, "application/ld+json"},
		{[]string{"*/*, application/ld+json;q=0"}, "text/turtle"},                 // the most specific range decides
		{[]string{"*/*;q=0.1, application/json;q=0.05"}, "text/turtle"},           // another name is more specific than a range
		{[]string{"application/json, application/ld+json;q=0"}, ""},               // and less than the type
		{[]string{"application/*;q=0.5, text/n3"}, "text/turtle"},                 // ranges mean no other names
		{[]string{"application/*;q=0.5, text/html;q=0.5"}, "application/ld+json"}, // the first of equals
		{[]string{"application/xhtml+xml"}, "text/html"},
		{[]string{"image/png"}, ""},
		{[]string{"text"}, ""},
		{[]string{"text/"}, ""},
		{[]string{"/*"}, ""},
		{[]string{"text/turtle;q=NaN"}, ""},
		{[]string{"text/turtle;q=2"}, ""},
		{[]string{"text/turtle;q=-1"}, ""},
		{[]string{"text/turtle;q="}, ""},
		{[]string{"text/turtle;q=1.0;q=0"}, "text/turtle"},
		{[]string{",, ,text/html,"}, "text/html"},
	} {
		i, ok := Best(c.header, offers...)
		if ok != (c.want != "") || ok && offers[i][0] != c.want {
			t.Errorf("%q: %d %v, want %q", c.header, i, ok, c.want)
		}
	}
	if _, ok := Best(nil); ok {
		t.Error("the best of nothing")
	}
}

func TestWeight(t *testing.T) {
	for header, want := range map[string]struct {
		q     float64
		named bool
	}{
		"":                           {},
		"*/*":                        {1, false},
		"text/*;q=0.5, */*":          {0.5, false},
		"text/html;q=0.001":          {0.001, true},
		"text/html;q=0":              {0, true},
		"application/xhtml+xml":      {1, true},
		"text/html;q=0.2, text/html": {1, true}, // the larger of equals
	} {
		if q, named := Weight([]string{header}, offers[2]...); q != want.q || named != want.named {
			t.Errorf("%q: %v %v, want %v", header, q, named, want)
		}
	}
}

func TestGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "x-gzip": true, "GZIP;q=0.1": true, "deflate, gzip;q=1.0, *;q=0.5": true, "*": true,
		"*;q=0": false, "gzip;q=0, *": false, "gzip;q=0": false, "identity": false, "br": false, "*;q=0, gzip": true,
	} {
		if got := Gzip([]string{header}); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
	if Gzip(nil) {
		t.Error("no header")
	}
}

func TestMatches(t *testing.T) {
	for header, want := range map[string]bool{
		`"abc"`: true, `W/"abc"`: true, `"x", "abc"`: true, `*`: true, `"abc-gzip"`: true, ` W/"abc-gzip" `: true,
		`abc`: false, `"ABC"`: false, `"abcd"`: false, ``: false, `"abc`: false, `"x","y"`: false,
	} {
		if got := Matches([]string{header}, "abc"); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
	if !Matches([]string{`"x"`, `"abc"`}, "abc") {
		t.Error("the second of two headers")
	}
}
