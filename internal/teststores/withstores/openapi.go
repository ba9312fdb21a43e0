package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// The checkers of the API's description.
const (
	redoclyPackage      = "@redocly/cli@2.77.0"
	schemathesisPackage = "schemathesis==4.32.5"
)

// openapi has the checkers in folders of their own.
func (k *kit) openapi(ctx context.Context) {
	npm := filepath.Join(k.cache, "redocly")
	if err := once(npm, redoclyPackage, func() error {
		return do(ctx, "npm", "install", "--prefix", npm, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", redoclyPackage)
	}); err != nil {
		k.lack("redocly", "install Node.js 20 or later with npm, and let it reach its registry", err)
	} else {
		k.env = append(k.env, teststores.EnvRedocly+"="+filepath.Join(npm, "node_modules", ".bin", "redocly"))
	}
	venv := filepath.Join(k.cache, "schemathesis")
	if err := once(venv, schemathesisPackage, func() error {
		return errors.Join(do(ctx, "python3", "-m", "venv", venv),
			do(ctx, filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", schemathesisPackage))
	}); err != nil {
		k.lack("schemathesis", "install Python 3.10 or later with venv, and let pip reach its package index", err)
		return
	}
	k.env = append(k.env, teststores.EnvSchemathesis+"="+filepath.Join(venv, "bin", "schemathesis"))
}

// once fills a folder with packages, unless they are there.
func once(dir, want string, fill func() error) error {
	mark := filepath.Join(dir, "has")
	if has, err := os.ReadFile(mark); err == nil && string(has) == want {
		return nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(want), 0o644)
}
