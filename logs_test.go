package rsbridge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogAttributes: no attribute of a log line is a value of Go's own form, like a slice
// ([a b]), a map, a struct or a pointer: only texts, numbers, times and errors, and what
// writes itself as text.
func TestLogAttributes(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &problems)
	}
	type pkg struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		Module                  *struct{ Main bool }
	}
	exports := map[string]string{}
	var own []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			own = append(own, p)
		}
	}
	files := token.NewFileSet()
	from := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	calls := 0
	for _, p := range own {
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		l := logCalls{info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Defs: map[*ast.Ident]types.Object{}}}
		if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, files, parsed, l.info); err != nil {
			t.Fatal(err)
		}
		// Functions of a package that pass their last arguments on are functions of a log, too.
		for again := true; again; {
			again = false
			for _, f := range parsed {
				again = l.wrappers(f) || again
			}
		}
		for _, f := range parsed {
			l.visit(f, func(value ast.Expr) {
				calls++
				if typ := l.info.TypeOf(value); !plain(typ) {
					t.Errorf("%s: the attribute %s is of type %s: write it as text", files.Position(value.Pos()), types.ExprString(value), typ)
				}
			})
		}
	}
	if calls < 300 {
		t.Errorf("only %d attributes were found: do they go another way now?", calls)
	}
}

// logCalls finds the attributes of log lines in a package.
type logCalls struct {
	info  *types.Info
	wraps map[types.Object]bool // functions that pass ...any on to a log
}

// takes tells from which argument on a call has attributes; -1: it is none of a log.
func (l *logCalls) takes(call *ast.CallExpr) int {
	var id *ast.Ident
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return -1
	}
	fn, ok := l.info.Uses[id].(*types.Func)
	if !ok {
		return -1
	}
	sig := fn.Type().(*types.Signature)
	of := fn.Pkg() != nil && fn.Pkg().Path() == "log/slog"
	if !sig.Variadic() || !of && !l.wraps[fn] {
		return -1
	}
	return sig.Params().Len() - 1
}

// wrappers notes the functions in f that pass their last arguments on to a log.
func (l *logCalls) wrappers(f *ast.File) (found bool) {
	if l.wraps == nil {
		l.wraps = map[types.Object]bool{}
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		obj := l.info.Defs[fn.Name]
		sig := obj.Type().(*types.Signature)
		if !sig.Variadic() || l.wraps[obj] {
			continue
		}
		last := sig.Params().At(sig.Params().Len() - 1)
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !call.Ellipsis.IsValid() || l.takes(call) < 0 {
				return true
			}
			ast.Inspect(call.Args[len(call.Args)-1], func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && l.info.Uses[id] == last {
					l.wraps[obj], found = true, true
				}
				return true
			})
			return true
		})
	}
	return found
}

// visit calls fn for each value of an attribute.
func (l *logCalls) visit(f *ast.File, fn func(ast.Expr)) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		first := l.takes(call)
		if first < 0 {
			return true
		}
		if call.Ellipsis.IsValid() { // of a wrapper, or pieces that append and literals hold
			ast.Inspect(call.Args[len(call.Args)-1], func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok {
					l.pairs(lit.Elts, fn)
				}
				return true
			})
			return true
		}
		l.pairs(call.Args[min(first, len(call.Args)):], fn)
		return true
	})
}

// pairs calls fn for the values among keys and values.
func (l *logCalls) pairs(args []ast.Expr, fn func(ast.Expr)) {
	for i := 0; i < len(args); i++ {
		if typ := l.info.TypeOf(args[i]); strings.HasSuffix(typ.String(), "slog.Attr") {
			continue // its own call is visited, if it takes any
		}
		if i++; i < len(args) {
			fn(args[i])
		}
	}
}

// plain tells whether all handlers write a type as a person would.
func plain(t types.Type) bool {
	if b, ok := t.Underlying().(*types.Basic); ok {
		return b.Info()&(types.IsString|types.IsNumeric|types.IsBoolean) != 0
	}
	if t.String() == "time.Time" {
		return true
	}
	for _, method := range []string{"Error", "LogValue", "MarshalText"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, false, nil, method); obj != nil {
			return true
		}
	}
	return false
}
