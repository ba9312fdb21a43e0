// Command notices writes NOTICE: every third-party module in the binary with its
// licence text.
//
//	go run ./internal/notices > NOTICE
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run() error {
	cmd := exec.Command("go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}}|{{.Version}}|{{.Dir}}{{end}}{{end}}`, "./cmd/rsbridge")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the binary is built
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the modules: %w", err)
	}
	modules := strings.Fields(string(list))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	var out bytes.Buffer
	out.WriteString("rsbridge\nCopyright the rsbridge authors\n\nThe binary contains the following third-party modules.\nThe schema.org data in examples/schemaorg has a licence of its own, beside it.\n")
	texts := map[string][]string{} // licence text -> modules
	var order []string
	for _, m := range modules {
		f := strings.SplitN(m, "|", 3)
		text, err := licence(f[2])
		if err != nil {
			return fmt.Errorf("%s: %w", f[0], err)
		}
		if texts[text] == nil {
			order = append(order, text)
		}
		texts[text] = append(texts[text], f[0]+" "+f[1])
	}
	for _, text := range order {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(texts[text], "\n"), text)
	}
	_, err = os.Stdout.Write(out.Bytes())
	return err
}

// licence reads the licence files of a module.
func licence(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !(strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING") || strings.HasPrefix(name, "NOTICE")) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		parts = append(parts, strings.TrimSpace(strings.ReplaceAll(string(raw), "\r\n", "\n")))
	}
	if len(parts) == 0 {
		return "(The module carries no licence file.)", nil
	}
	return strings.Join(parts, "\n\n"), nil
}
