package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// npmPackages are the clients in JavaScript known to the tests.
var npmPackages = []string{"ldes-client@0.3.0", "pubsubhubbub@1.0.2", "eventsource@4.1.1", "wscat@6.1.0", "axe-core@4.14.1"}

// npm installs the clients in JavaScript once for each list of packages.
func (k *kit) npm(ctx context.Context) {
	const how = "install Node.js 20 or later with npm, and let it reach its registry"
	dir := filepath.Join(k.cache, "npm")
	mark := filepath.Join(dir, "has")
	want := strings.Join(npmPackages, " ")
	if has, err := os.ReadFile(mark); err != nil || string(has) != want {
		err := os.RemoveAll(dir)
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = do(ctx, "npm", append([]string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"}, npmPackages...)...)
		}
		if err == nil {
			err = do(ctx, "node", "--version")
		}
		if err == nil {
			err = os.WriteFile(mark, []byte(want), 0o644)
		}
		if err != nil {
			k.lack("Node.js (ldes-client, pubsubhubbub, eventsource, wscat, axe-core)", how, err)
			return
		}
	}
	k.env = append(k.env, teststores.EnvNpm+"="+dir)
}
