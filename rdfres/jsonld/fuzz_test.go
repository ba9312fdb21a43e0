package jsonld_test

import (
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

func FuzzJSONLD(f *testing.F) {
	for _, s := range []string{
		`[{"@id":"http://e/s","@type":["http://e/C"],"http://e/p":[{"@value":"a","@language":"en"},{"@list":[1,2.5,true]}]}]`,
		`{"@context":{"a":"http://e/a"},"a":{"@id":"_:b"},"@graph":[]}`, `{"@graph":[{"http://e/p":{"@set":["\ud83c\udf03"]}}]}`, `{"http://e/p":{},"@id":"b","@reverse":{"http://e/q":{}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"@context":[null,"http://c/far",{"@version":1.1,"@vocab":"http://e/","@base":"x/","@language":"en","p":{"@id":"e:p","@container":["@graph","@id"]},"r":{"@reverse":"e:r","@container":"@index"},"T":{"@id":"e:T","@context":{"@propagate":true,"q":{"@type":"@vocab"}}},"t":{"@id":"e:t","@container":"@type"},"l":{"@id":"l","@container":"@language"},"j":{"@type":"@json"},"n":"@nest","i":{"@id":"i","@container":"@index","@index":"e:x"},"li":{"@container":"@list","@protected":true}}],"@type":"T","q":"T","p":{"a":{"q":1}},"r":{"x":{"@id":"y"}},"t":{"T":{"q":"a"}},"l":{"en":["a",null],"@none":"b"},"j":{"b":[1.50,null],"a":"\u20ac"},"n":{"z":2},"i":{"k":{"@id":"m"}},"li":[[1],[]],"@included":[{"@id":"u","z":{"@value":"v","@type":"e:d"}}]}`))
	rdftest.FuzzFormat(f, rdfres.JSONLD)
}
