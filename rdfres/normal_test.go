package rdfres

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

var update = flag.Bool("update-probes", false, "write testdata/normal/written.nt anew; the answers of the stores must be measured again then")

func readTriples(t testing.TB, path string) (ts []Triple) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range readQuads(t, data) {
		ts = append(ts, q.Triple)
	}
	return ts
}

func TestProbesAreTheMeasuredOnes(t *testing.T) {
	var b []byte
	for _, tr := range ProbeTriples() {
		if err := tr.O.Check(); err != nil {
			t.Error(err)
		}
		b = tr.AppendLine(b)
	}
	path := filepath.Join("testdata", "normal", "written.nt")
	if *update {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b, want) {
		t.Errorf("the probes are not those that the stores were asked (%v)", err)
	}
	if n := len(SortUnique(ProbeTriples())); n != len(ProbeTriples()) {
		t.Errorf("%d different probes of %d", n, len(ProbeTriples()))
	}
}

// TestMeasuredStores holds what was measured: the answers of real stores to the
// probes are in testdata/normal, see the README there.
func TestMeasuredStores(t *testing.T) {
	written := readTriples(t, "testdata/normal/written.nt")
	for _, tt := range []struct {
		store       string
		rules       string
		unexplained []string // objects
	}{
		{"oxigraph", "boolean decimal-18places double-lenient duration float-lenient integer-64bit-one language-case time-18places", nil},
		{"fuseki", "boolean-trimmed decimal-47bit double-62bit float-trimmed integer-56bit language-case time-ms", nil},
		{"rdf4j", "language-case", nil},
		{"virtuoso", "boolean decimal-15places double-6digits duration float-6digits integer-64bit-typed language-case time-us-dated virtuoso-values", virtuosoLoses},
	} {
		t.Run(tt.store, func(t *testing.T) {
			read := readTriples(t, "testdata/normal/"+tt.store+".nt")
			n, unexplained := DetectNormalForm(written, read)
			if got := strings.Join(n.Rules, " "); got != tt.rules {
				t.Errorf("rules %s\nwant  %s", got, tt.rules)
			}
			var objects []string
			for _, u := range unexplained {
				objects = append(objects, string(u.O))
			}
			var want []string
			for _, v := range tt.unexplained {
				want = append(want, string(xsdTerm(strings.ReplaceAll(v, "_", " "))))
			}
			if !slices.Equal(objects, want) {
				t.Errorf("unexplained:\n%s", strings.Join(objects, "\n"))
			}
			if len(n.Unknown()) != 0 {
				t.Errorf("unknown rules %v", n.Unknown())
			}
			again, none := DetectNormalForm(read, read)
			if len(again.Rules) > 0 || len(none) > 0 {
				t.Errorf("a store that keeps everything: %v, %v", again, none)
			}
			data, err := json.Marshal(n)
			var back NormalForm
			if err != nil || json.Unmarshal(data, &back) != nil || !slices.Equal(back.Rules, n.Rules) {
				t.Errorf("%s does not come back (%v)", data, err)
			}
		})
	}
}

// TestVirtuosoValues: what Virtuoso keeps side by side is not one in its normal form,
// what it keeps once is. Pairs as measured, by update and by upload.
func TestVirtuosoValues(t *testing.T) {
	n, _ := DetectNormalForm(readTriples(t, "testdata/normal/written.nt"), readTriples(t, "testdata/normal/virtuoso.nt"))
	for _, tt := range []struct {
		a, b string
		one  bool
	}{
		{"1^negativeInteger", "1^integer", false}, {"1^negativeInteger", "01^negativeInteger", false}, {"-1^negativeInteger", "-1^integer", true}, {"300^byte", "300^short", false}, {"-1^unsignedInt", "-1^int", false},
		{"-0^unsignedInt", "0^integer", false}, {"+0^nonPositiveInteger", "0^integer", false}, {"0^positiveInteger", "0^integer", false}, {"5^integer", "5.0^decimal", true}, {"5^integer", "5^float", true}, {"1^boolean", "1^unsignedByte", true},
		{"0.1^float", "0.1^decimal", false}, {"0.1^float", "0.1^double", false}, {"0.1^double", "0.1^decimal", true}, {"0.5^float", "0.5^double", true},
		{"2020-01-01T00:00:00Z^dateTime", "2020-01-01T01:00:00+01:00^dateTime", true}, {"2020-01-01T00:00:00Z^dateTime", "2020-01-01T00:00:00^dateTime", false}, {"2020-01-01T00:00:00-00:00^dateTime", "2020-01-01T00:00:00^dateTime", true},
		{"2020-01-01^date", "2020-01-01T00:00:00^dateTime", true}, {"2020-01-01Z^date", "2020-01-01T00:00:00Z^dateTime", true}, {"2020^gYear", "2020-01^gYearMonth", true}, {"2020^gYear", "2020Z^gYear", false},
		{"2020-01-01T00:00:00Z^dateTimeStamp", "2020-01-01T00:00:00Z^dateTime", false}, {"2020-01-01T00:00:00Z^dateTimeStamp", "2020-01-01T00:00:00+00:00^dateTimeStamp", false}, {"2020-01-01T00:00:00Z^dateTime", "2019-12-31T24:00:00Z^dateTime", false},
		{"00:30:00+01:00^time", "23:30:00Z^time", true}, {"10:00:00^time", "10:00:00Z^time", false}, {"---01^gDay", "---01-00:00^gDay", false}, {"--02-29Z^gMonthDay", "--02-29+00:00^gMonthDay", false},
	} {
		if got := n.Term(xsdTerm(tt.a)) == n.Term(xsdTerm(tt.b)); got != tt.one {
			t.Errorf("%s and %s are one: %v", tt.a, tt.b, got)
		}
	}
}

// TestDetectConfusedLiteral: a Fuseki that had held the xsd:long of the same digits
// gave it back for an integer. One such literal must not bring a rule that takes
// for one what the store keeps side by side: the mirror would lose one of them.
func TestDetectConfusedLiteral(t *testing.T) {
	written := readTriples(t, "testdata/normal/written.nt")
	read := readTriples(t, "testdata/normal/fuseki.nt")
	clean, _ := DetectNormalForm(written, read)
	given, back := xsdTerm("9223372036854775807^integer"), xsdTerm("9223372036854775807^long")
	for i := range read {
		if read[i].O == given {
			read[i].O = back
		}
	}
	n, unexplained := DetectNormalForm(written, read)
	if !slices.Equal(n.Rules, clean.Rules) {
		t.Errorf("rules %v, want %v", n.Rules, clean.Rules)
	}
	if len(unexplained) != 2 || unexplained[0].O != given || unexplained[1].O != back {
		t.Errorf("unexplained: %v", unexplained)
	}
}

// virtuosoLoses is what Virtuoso 7.2.5 refuses, and PT60S, which it gives back as
// PT60.6S.
var virtuosoLoses = strings.Fields(`PT60S^dayTimeDuration
	99999999999999999999^integer 099999999999999999999^integer _true^boolean P1Y^duration P12M^duration P0Y^duration PT60S^duration P1Y0M^duration
	PT36H^duration -PT1.50S^duration P400D^duration P12M^yearMonthDuration P1Y^yearMonthDuration P0Y^yearMonthDuration PT60.6S^dayTimeDuration`)

func xsdTerm(v string) Term {
	lexical, local, ok := strings.Cut(v, "^")
	if !ok {
		lexical, lang, _ := strings.Cut(v, "@")
		return NewLiteral(lexical, lang, "")
	}
	return NewLiteral(lexical, "", chars.XSD+local)
}

func TestNormalTerm(t *testing.T) {
	for _, tt := range []struct{ rule, in, want string }{
		{"integer", "+007^integer", "7^integer"}, {"integer", "-0^byte", "0^byte"}, {"integer", "1.0^integer", ""}, {"integer", "^integer", ""}, {"integer", "-^int", ""},
		{"integer", "000000000000000000000000000001000^integer", "1000^integer"}, {"integer", " 1^integer", ""},
		{"integer-56bit", " 01 ^integer", "1^integer"}, {"integer-56bit", "\t01\n^integer", "1^integer"}, {"integer-56bit", "036028797018963968^integer", ""}, {"integer-56bit", "-036028797018963968^integer", "-36028797018963968^integer"},
		{"integer-56bit", "0300^byte", ""}, {"integer-56bit", "00^positiveInteger", ""}, {"integer-56bit", "-01^negativeInteger", "-1^negativeInteger"}, {"integer-56bit", "00^negativeInteger", ""}, {"integer-56bit", "00^nonPositiveInteger", "0^nonPositiveInteger"},
		{"integer-64bit-one", "1^int", "1^integer"}, {"integer-64bit-one", "9223372036854775808^unsignedLong", ""}, {"integer-64bit-one", " 1^int", ""},
		{"decimal", "-00.50^decimal", "-0.5^decimal"}, {"decimal", ".^decimal", ""}, {"decimal", "1.^decimal", "1^decimal"}, {"decimal", "-0.000^decimal", "0^decimal"}, {"decimal", "1e3^decimal", ""},
		{"decimal-47bit", "01.4073748835532700^decimal", ""}, {"decimal-47bit", "140737488355327.^decimal", "140737488355327^decimal"}, {"decimal-47bit", "-140737488355328.^decimal", "-140737488355328^decimal"}, {"decimal-47bit", "140737488355328.^decimal", ""},
		{"decimal-47bit", "140737488355327.0^decimal", "140737488355327^decimal"}, {"decimal-47bit", "0140737488355327.0^decimal", ""}, {"decimal-47bit", "14073748835532.70^decimal", ""},
		{"decimal-18places", "1.0000000000000000000000^decimal", "1^decimal"}, {"decimal-18places", "0.0000000000000000001^decimal", ""}, {"decimal-18places", "0170141183460469231731.687303715884105728^decimal", ""},
		{"decimal-18places", "-0170141183460469231731.687303715884105728^decimal", "-170141183460469231731.687303715884105728^decimal"},
		{"decimal-15places", "1.9999999999999995^decimal", "2^decimal"}, {"decimal-15places", "0.0000000000000004^decimal", "0^decimal"}, {"decimal-15places", "99.9999999999999999^decimal", "100^decimal"},
		{"double", "100^double", "1E+02^double"}, {"double", "1E400^double", "INF^double"}, {"double", "0x1p3^double", ""}, {"double", "1_0^double", ""}, {"double", "inf^double", ""}, {"double", "-0^double", "-0E+00^double"}, {"double", "+INF^double", "INF^double"}, {"double", ".^double", ""}, {"double", "e5^double", ""},
		{"double-lenient", "-Infinity^double", "-INF^double"}, {"double-lenient", "+nan^double", "NaN^double"},
		{"double-62bit", "2e77^double", ""}, {"double-62bit", "5.78960446186581e+76^double", "5.78960446186581E+76^double"}, {"double-62bit", "1.727233711018889e-77^double", ""}, {"double-62bit", "3.454467422037778e-77^double", "3.454467422037778E-77^double"}, {"double-62bit", "1e-320^double", "1E-320^double"},
		{"double-6digits", "123456789^double", "1.23457E+08^double"}, {"float-6digits", "-0^float", "0E+00^float"}, {"float-6digits", "1e-45^float", "0E+00^float"},
		{"float", "16777217^float", "1.6777216E+07^float"}, {"float", "1e39^float", "INF^float"}, {"float-trimmed", " 1 ^float", "1E+00^float"},
		{"boolean", "1^boolean", "true^boolean"}, {"boolean", "true^boolean", ""}, {"boolean", "TRUE^boolean", ""}, {"boolean", " true^boolean", ""}, {"boolean-trimmed", " 0 ^boolean", "false^boolean"},
		{"time", "2020-12-31T24:00:00+00:00^dateTime", "2021-01-01T00:00:00Z^dateTime"}, {"time", "2020-02-30T00:00:00.0Z^dateTime", ""}, {"time", "2020-01-01T00:00:60.0Z^dateTime", ""}, {"time", "-0004-02-29T00:00:00.0Z^dateTime", "-0004-02-29T00:00:00Z^dateTime"},
		{"time", "02020-01-01+00:00^date", ""}, {"time", "12020-01-01+00:00^date", "12020-01-01Z^date"}, {"time", "--02-29+00:00^gMonthDay", "--02-29Z^gMonthDay"}, {"time", "--02-30+00:00^gMonthDay", ""}, {"time", "---31-00:00^gDay", "---31Z^gDay"}, {"time", "24:00:00^time", "00:00:00^time"}, {"time", "2020-01-01+14:01^date", ""},
		{"time-18places", "2020-01-01T00:00:00Z^dateTimeStamp", "2020-01-01T00:00:00Z^dateTime"}, {"time-18places", "2020-01-01T00:00:00.1234567890123456789^dateTime", ""}, {"time-18places", "2020-02-28T24:00:00^dateTime", "2020-02-29T00:00:00^dateTime"},
		{"time-ms", "2020-01-01T00:00:00.10-00:00^dateTime", "2020-01-01T00:00:00.1+00:00^dateTime"}, {"time-ms", "2020-01-01T00:00:00.1230+00:01^dateTime", ""}, {"time-ms", "2020-01-01T00:00:00.12340^dateTime", ""}, {"time-ms", "8000-01-01T00:00:00.0^dateTime", ""}, {"time-ms", "10:00:00.0^time", ""}, {"time-ms", "2020-01-01T24:00:00.0^dateTime", "2020-01-01T24:00:00^dateTime"},
		{"time-us-dated", "2020-01-01T00:00:00.1234567-00:00^dateTime", "2020-01-01T00:00:00.123456^dateTime"}, {"time-us-dated", "-044^gYear", "-0044^gYear"},
		{"duration", "PT36H^duration", "P1DT12H^duration"}, {"duration", "-P0D^duration", "PT0S^duration"}, {"duration", "P0Y^yearMonthDuration", "P0M^yearMonthDuration"}, {"duration", "P1D^yearMonthDuration", ""}, {"duration", "P14M^dayTimeDuration", ""}, {"duration", "P^duration", ""}, {"duration", "P1YT^duration", "P1Y^duration"}, {"duration", "PT1.50S^duration", "PT1.5S^duration"}, {"duration", "P1D1Y^duration", ""}, {"duration", "PT0.5M^duration", ""}, {"duration", "-P1Y2M3DT4H5M6.70S^duration", "-P1Y2M3DT4H5M6.7S^duration"}, {"duration", "PT99999999999999999999S^duration", "P1157407407407407DT9H46M39S^duration"}, {"duration", "P99999999999999999999Y^duration", ""}, {"duration", "PT1HT1M^duration", ""},
		{"language-case", "a@EN-us", "a@en-us"}, {"language-case", "A@en", ""}, {"language-case", "A", ""},
		{"virtuoso-values", "true^boolean", "1^decimal"}, {"virtuoso-values", "1.50E0^double", "1.5^decimal"}, {"virtuoso-values", "INF^double", ""}, {"virtuoso-values", "07^int", "7^decimal"}, {"virtuoso-values", "x^int", ""},
		{"virtuoso-values", "0.1^double", "0.1^decimal"}, {"virtuoso-values", "0.5^float", "0.5^decimal"}, {"virtuoso-values", "0.1^float", ""},
		{"virtuoso-values", "2020-01-01T00:30:00+01:00^dateTime", "2019-12-31T23:30:00Z^dateTime"}, {"virtuoso-values", "2020-01-01^date", "2020-01-01T00:00:00^dateTime"}, {"virtuoso-values", "2020Z^gYear", "2020-01-01T00:00:00Z^dateTime"}, {"virtuoso-values", "2020-02^gYearMonth", "2020-02-01T00:00:00^dateTime"},
		{"virtuoso-values", "00:30:00+01:00^time", "23:30:00Z^time"}, {"virtuoso-values", "24:00:00Z^time", ""}, {"virtuoso-values", "2020-01-01+01:00^date", ""}, {"virtuoso-values", "2019-12-31T24:00:00Z^dateTime", ""}, {"virtuoso-values", "2020-01-01T00:00:00+01:00^dateTimeStamp", ""}, {"virtuoso-values", "--02-29Z^gMonthDay", ""},
		{"integer-64bit-typed", "-01^negativeInteger", "-1^negativeInteger"}, {"integer-64bit-typed", "01^negativeInteger", ""}, {"integer-64bit-typed", "0300^byte", ""}, {"integer-64bit-typed", "-0^unsignedInt", ""}, {"integer-64bit-typed", "-0^nonPositiveInteger", "0^nonPositiveInteger"}, {"integer-64bit-typed", "+0^nonPositiveInteger", ""}, {"integer-64bit-typed", " +05^unsignedByte", "5^unsignedByte"},
		{"time-us-dated", "2020-01-01T00:00:00+00:00^dateTimeStamp", ""}, {"time-us-dated", "---01-00:00^gDay", ""}, {"time-us-dated", "--01+00:00^gMonth", ""}, {"time-us-dated", "--02-29+00:00^gMonthDay", ""}, {"time-us-dated", "2020+00:00^gYear", "2020Z^gYear"},
		{"boolean", "x^string", ""}, {"integer", "01^http", ""},
	} {
		n := NormalForm{Rules: []string{tt.rule}}
		in, want := xsdTerm(tt.in), xsdTerm(tt.want)
		if tt.want == "" {
			want = in
		}
		if got := n.Term(in); got != want {
			t.Errorf("%s: %s = %s, want %s", tt.rule, in, got, want)
		}
		if got := n.Term(want); got != want && tt.want != "" {
			t.Errorf("%s: %s is not kept: %s", tt.rule, want, got)
		}
	}
	for _, other := range []Term{"<urn:x>", "_:b", `"01"^^<urn:own>`, `"x"`, "", `""`} {
		if got := (NormalForm{Rules: normalRules}).Term(other); got != other {
			t.Errorf("%s became %s", other, got)
		}
	}
	tr := Triple{"<urn:s>", "<urn:p>", xsdTerm("01^integer")}
	if got := (NormalForm{Rules: []string{"integer"}}).Triple(tr); got.O != xsdTerm("1^integer") || got.S != tr.S || got.P != tr.P {
		t.Errorf("%v", got)
	}
	if got := (NormalForm{Rules: []string{"integer", "of-tomorrow"}}).Unknown(); !slices.Equal(got, []string{"of-tomorrow"}) {
		t.Errorf("unknown: %v", got)
	}
}

// storeForms are the rules of the stores that were measured, and all generic ones.
var storeForms = []NormalForm{
	{Rules: []string{"boolean", "decimal-18places", "double-lenient", "duration", "float-lenient", "integer-64bit-one", "language-case", "time-18places"}},
	{Rules: []string{"boolean-trimmed", "decimal-47bit", "double-62bit", "float-trimmed", "integer-56bit", "language-case", "time-ms"}},
	{Rules: []string{"boolean", "decimal-15places", "double-6digits", "duration", "float-6digits", "integer-64bit-typed", "language-case", "time-us-dated", "virtuoso-values"}},
	{Rules: []string{"boolean", "decimal", "double", "duration", "float", "integer", "language-case", "time"}},
}

func TestNormalTermAllocates(t *testing.T) {
	same := []Term{"<urn:x>", `"plain"`, `"tagged"@en-us`, `"x"^^<urn:own>`, xsdTerm("12^integer"), xsdTerm("1.5^decimal"), xsdTerm("true^boolean"), xsdTerm("2020-01-01^date"), xsdTerm("2020-01-01T00:00:00.5Z^dateTime"), xsdTerm("abc^integer")}
	for _, n := range storeForms[:2] {
		for _, term := range same {
			if got := testing.AllocsPerRun(50, func() { n.Term(term) }); got > 0 {
				t.Errorf("%s: %v allocations", term, got)
			}
		}
	}
}

func TestValueEqual(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"1^integer", "01^integer", true}, {"1^integer", "1^int", true}, {"1^integer", "1.0^decimal", true}, {"1^integer", "1^float", false}, {"1^float", "1^double", false}, {"1.0^float", "1^float", true},
		{"1^boolean", "true^boolean", true}, {"1^boolean", "1^integer", false}, {"x^boolean", "X^boolean", false}, {"abc^integer", "ABC^integer", false}, {"0^double", "-0^double", true},
		{"a@en", "a@EN", true}, {"a@en", "a@en-us", false}, {"a@en", "b@en", false}, {"a@en", "a", false}, {"a", "a^string", true}, {"a", "b", false},
		{"2020-01-01T00:30:00+01:00^dateTime", "2019-12-31T23:30:00Z^dateTime", true}, {"2020-02-28T23:30:00-01:00^dateTime", "2020-02-29T00:30:00Z^dateTimeStamp", true}, {"2020-01-01T00:00:00^dateTime", "2020-01-01T00:00:00Z^dateTime", false},
		{"2020-01-01T24:00:00Z^dateTime", "2020-01-02T00:00:00.0+00:00^dateTime", true}, {"2020-01-01^date", "2020-01-01Z^date", false}, {"2020-01-01+00:00^date", "2020-01-01Z^date", true}, {"2020^gYear", "2020-01^gYearMonth", false}, {"x^date", "y^date", false},
		{"P1Y^duration", "P12M^yearMonthDuration", true}, {"PT24H^duration", "P1D^dayTimeDuration", true}, {"P1M^duration", "P30D^duration", false}, {"-P0D^duration", "P0Y^duration", true},
		{"0a^hexBinary", "0A^hexBinary", true}, {"A Q==^base64Binary", "AQ==^base64Binary", true}, {"http://a^anyURI", "HTTP://a^anyURI", false},
	} {
		a, b := xsdTerm(tt.a), xsdTerm(tt.b)
		if got := ValueEqual(a, b); got != tt.want || ValueEqual(b, a) != tt.want {
			t.Errorf("ValueEqual(%s, %s) = %v", a, b, got)
		}
	}
	if ValueEqual("<urn:a>", "<urn:b>") || !ValueEqual("<urn:a>", "<urn:a>") || ValueEqual("_:a", `"a"`) {
		t.Error("terms that are no literals")
	}
}

// FuzzNormalForm: a normal form of any literal is its own, and but for the rules
// that round or join types it is the same value.
func FuzzNormalForm(f *testing.F) {
	for _, p := range ProbeTriples() {
		lexical, lang, datatype := p.O.Literal()
		f.Add(lexical, lang, strings.TrimPrefix(datatype, chars.XSD))
	}
	f.Fuzz(func(t *testing.T, lexical, lang, local string) {
		term := NewLiteral(lexical, lang, chars.XSD+local)
		if term.Check() != nil {
			return
		}
		for i, n := range storeForms {
			once := n.Term(term)
			if err := once.Check(); err != nil {
				t.Fatalf("%s under %v: %v", term, n, err)
			}
			if twice := n.Term(once); twice != once {
				t.Fatalf("%s under %v: %s, then %s", term, n, once, twice)
			}
			if i == 3 && !ValueEqual(term, once) {
				t.Fatalf("%s under %v: %s has another value", term, n, once)
			}
		}
		ValueEqual(term, `"1"^^<http://www.w3.org/2001/XMLSchema#integer>`)
	})
}

func BenchmarkNormalForm(b *testing.B) {
	n := storeForms[0]
	for _, v := range []string{"plain text", "tagged@en", "12^integer", "012^integer", "1.5^decimal", "3.14^double", "2020-01-01T00:00:00Z^dateTime"} {
		b.Run(fmt.Sprint(v), func(b *testing.B) {
			b.ReportAllocs()
			term := xsdTerm(v)
			for b.Loop() {
				n.Term(term)
			}
		})
	}
}
