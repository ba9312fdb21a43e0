package feed

import (
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/destination/item"
)

// What was taken back stays so when later additions are taken back too.
func TestUndo(t *testing.T) {
	for name, c := range map[string]struct {
		do   string // a letter adds a resource; [ sets a mark, ] goes back to it, 0 to the beginning
		want string
	}{
		"all":                         {"ab0", ""},
		"all, and others after it":    {"ab0[c]d", "d"},
		"the same place twice":        {"a[b]c]d", "ad"},
		"a later place":               {"a[b][c]d", "ad"},
		"a later place, with between": {"a[b]c[d]e", "ace"},
		"an earlier place":            {"a[b[c]]d", "ad"},
		"nothing":                     {"a[]b", "ab"},
		"all but nothing":             {"a0[]b[]", "b"},
	} {
		v, err := NewInventory(t.TempDir(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		var marks []uint64
		for i, r := range c.do {
			switch last := len(marks) - 1; r {
			case '[':
				marks = append(marks, v.Mark())
			case ']':
				v.Undo(marks[last])
				if next := i + 1; next == len(c.do) || c.do[next] == ']' && last > 0 {
					marks = marks[:last]
				}
			case '0':
				v.Undo(0)
			default:
				if err := v.Add(&item.Item{Loc: "http://a.example/" + string(r)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got []rune
		for _, it := range v.Items() {
			if it.Err != nil {
				t.Fatal(it.Err)
			}
			got = append(got, rune(it.Item.Loc[len(it.Item.Loc)-1]))
		}
		if slices.Sort(got); string(got) != c.want {
			t.Errorf("%s, %s: %q, want %q", name, c.do, string(got), c.want)
		}
	}
}
