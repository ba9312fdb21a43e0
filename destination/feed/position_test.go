package feed

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// Other packages keep a position, and read none of it: it has no field for them, and its encoding is
// its own.
func TestPositionIsOpaque(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[Position](), reflect.TypeFor[Cursor]()} {
		for i := range of.NumField() {
			if f := of.Field(i); f.IsExported() || f.Anonymous {
				t.Errorf("%s has the field %s", of, f.Name)
			}
		}
	}
	number, at := uint64(7), time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	p := Position{position{LastPoll: at, Cursor: CursorAt(at, &number), Inventory: listState{URL: "u", At: at}, Until: at,
		Missing: missing{Lists: []string{"l"}, Why: "gone"}, Older: olderList{Why: "old"}, Absent: []string{"a"}, Rises: true}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Position
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("%s gives %+v %v, want %+v", text, again, err, p)
	}
}
