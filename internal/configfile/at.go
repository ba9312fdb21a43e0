package configfile

import (
	"reflect"
	"strings"
)

// At is the value at the path of a key in a struct, such as "sets.books.format"; false: there is no such key.
func At(from any, path string) (reflect.Value, bool) {
	v := reflect.Indirect(reflect.ValueOf(from))
	for key := range strings.SplitSeq(path, ".") {
		switch v.Kind() {
		case reflect.Struct:
			f, ok := fieldByKey(v.Type(), key)
			if !ok {
				return v, false
			}
			v = v.FieldByIndex(f.Index)
		case reflect.Map:
			if v = v.MapIndex(reflect.ValueOf(key)); !v.IsValid() {
				return v, false
			}
		default:
			return v, false
		}
	}
	return v, true
}
