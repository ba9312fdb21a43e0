package sparqlsrc

import (
	"fmt"
	"strings"
	"testing"
)

// TestAnswer: the digest of an answer under the key of the one of before is that, if and
// only if the same triples came in the same order.
func TestAnswer(t *testing.T) {
	type triple [3]string
	var all []triple
	for i := range 2000 { // several blocks
		all = append(all, triple{fmt.Sprintf("<http://example.org/%d>", i/3), "<http://example.org/p>", fmt.Sprintf("_:b%d", i)})
	}
	digest := func(before string, all []triple) string {
		a, err := newAnswer(before)
		if err != nil {
			t.Fatal(err)
		}
		a.begin()
		a.add([]byte("<of a download that did not hold>"), []byte("<p>"), []byte("<o>"))
		a.begin()
		for _, tr := range all {
			a.add([]byte(tr[0]), []byte(tr[1]), []byte(tr[2]))
		}
		return a.String()
	}
	first := digest("", all)
	if again := digest(first, all); again != first {
		t.Errorf("the same triples are %s, then %s", first, again)
	}
	if other := digest("", all); other == first || digest(strings.Repeat("0", 64), all) == first {
		t.Error("a key is used twice")
	}
	with := func(i int, tr triple) []triple {
		out := append([]triple(nil), all...)
		out[i] = tr
		return out
	}
	swapped := with(7, all[1000])
	swapped[1000] = all[7]
	for what, other := range map[string][]triple{
		"none":             nil,
		"one less":         all[:len(all)-1],
		"one more":         append(with(0, all[0]), all[0]),
		"another label":    with(1500, triple{all[1500][0], all[1500][1], "_:c1500"}),
		"another order":    swapped,
		"another boundary": with(1, triple{all[1][0], all[1][1][:5], all[1][1][5:] + all[1][2]}),
		"another subject":  with(1, triple{"<s>", all[1][1], all[1][2]}),
		"the same subject": with(3, triple{all[2][0], all[3][1], all[3][2]}),
	} {
		if digest(first, other) == first {
			t.Errorf("%s: the same digest", what)
		}
	}
	if (*answer)(nil).String() != "" {
		t.Error("no digest is a digest")
	}
}
