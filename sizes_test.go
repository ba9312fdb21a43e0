package rsbridge_test

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Limits of size. A type over its limit answers several questions: give a part of
// its methods a type of its own, with the few fields of that part.
const (
	maxMethods = 60 // of a type
	maxFields  = 20 // of a struct of state
	maxLines   = 7500
	maxFiles   = 40 // of a package, without tests
)

// ownPlan are packages with a size of their own.
var ownPlan = []string{"internal/embedstore"}

const sizeLimits = "testdata/sizes.txt"

var lower = flag.Bool("update", false, "lower the limits of sizes to what they are")

// TestSizes holds types and packages to the limits of size. testdata/sizes.txt
// has those above; -update lowers them, nothing raises them.
func TestSizes(t *testing.T) {
	limits := readSizes(t)
	found := sizes(t)
	var lowered strings.Builder
	for _, what := range slices.Sorted(maps.Keys(found)) {
		n := found[what]
		kind, name, _ := strings.Cut(what, " ")
		usual := map[string]int{"methods": maxMethods, "fields": maxFields, "lines": maxLines, "files": maxFiles}[kind]
		if (kind == "lines" || kind == "files") && slices.Contains(ownPlan, name) {
			continue
		}
		if limit := cmp.Or(limits[what], usual); n > limit {
			t.Errorf("%s: %d %s, at most %d", name, n, kind, limit)
		} else if n > usual {
			fmt.Fprintf(&lowered, "%s %d\n", what, n)
		}
		delete(limits, what)
	}
	for what := range limits {
		t.Errorf("%s: nothing is called %s any more", sizeLimits, what)
	}
	if *lower && !t.Failed() {
		if err := os.WriteFile(sizeLimits, []byte(lowered.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readSizes reads lines like "methods bridge.Bridge 79".
func readSizes(t *testing.T) map[string]int {
	t.Helper()
	file, err := os.Open(sizeLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	limits := map[string]int{}
	for in := bufio.NewScanner(file); in.Scan(); {
		at := strings.LastIndexByte(in.Text(), ' ')
		n, err := strconv.Atoi(in.Text()[at+1:])
		if err != nil {
			t.Fatalf("%s: %q: %v", sizeLimits, in.Text(), err)
		}
		limits[in.Text()[:at]] = n
	}
	return limits
}

// sizes counts methods and fields by type, and lines and files by package. Those of
// an embedded struct of the same package count for both types.
func sizes(t *testing.T) map[string]int {
	t.Helper()
	out, embedded := map[string]int{}, map[string][]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		out["files "+dir]++
		out["lines "+dir] += fset.File(file.Pos()).LineCount()
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					out["methods "+dir+"."+typeName(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					s, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					name := dir + "." + s.Name.Name
					if body, ok := s.Type.(*ast.StructType); ok {
						embedded[name] = embeddedIn(body, dir)
						if isState(s.Name.Name, body) {
							out["fields "+name] = body.Fields.NumFields()
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	own := maps.Clone(out)
	for name := range embedded {
		for _, kind := range []string{"methods ", "fields "} {
			if own[kind+name] > 0 {
				out[kind+name] = withEmbedded(own, embedded, kind, name, map[string]bool{})
			}
		}
	}
	return out
}

func withEmbedded(own map[string]int, embedded map[string][]string, kind, name string, seen map[string]bool) int {
	if seen[name] {
		return 0
	}
	seen[name] = true
	n := own[kind+name]
	for _, e := range embedded[name] {
		n += withEmbedded(own, embedded, kind, e, seen)
	}
	return n
}

// embeddedIn names the embedded types of the same package.
func embeddedIn(body *ast.StructType, dir string) (out []string) {
	for _, f := range body.Fields.List {
		if name := typeName(f.Type); len(f.Names) == 0 && name != "" {
			out = append(out, dir+"."+name)
		}
	}
	return out
}

// isState tells a struct of state from options and from records with tags, the
// formats on the wire.
func isState(name string, body *ast.StructType) bool {
	if strings.HasSuffix(name, "Config") || strings.HasSuffix(name, "Options") {
		return false
	}
	tagged := 0
	for _, f := range body.Fields.List {
		if f.Tag != nil {
			tagged++
		}
	}
	return 2*tagged < len(body.Fields.List)
}

// typeName is the name of a type of the same package, without pointer and type
// parameters; "" for another.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
