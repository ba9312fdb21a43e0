package jsonpatch_test

import (
	"fmt"

	"github.com/rsbridge/rsbridge/jsonpatch"
)

func Example() {
	from, to := []byte(`{"name": "Berlin", "mayors": [{"name": "Kai"}]}`), []byte(`{"mayors": [{"name": "Kai"}], "name": "Berlin", "area": 891}`)
	patch, err := jsonpatch.Diff(from, to)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(patch))
	got, err := jsonpatch.Apply(from, patch)
	if err != nil {
		panic(err)
	}
	same, err := jsonpatch.Equal(got, to) // the order of members does not count
	fmt.Println(same, err)
	// Output:
	// [{"op":"add","path":"/area","value":891}]
	// true <nil>
}
