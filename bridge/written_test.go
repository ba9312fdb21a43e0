package bridge

import (
	"encoding/json"
	"testing"
)

// Settings are told as a person writes them.
func TestWritten(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "nothing", `""`: "nothing", `[]`: "nothing", `"cbd"`: `"cbd"`, `["http://a","*"]`: `["http://a", "*"]`,
		`{"Classes":null,"Prefixes":null,"Query":""}`:            "nothing",
		`{"Classes":["http://a#C"],"Prefixes":[],"Query":"x y"}`: `{classes: ["http://a#C"], query: "x y"}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := written(v); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
