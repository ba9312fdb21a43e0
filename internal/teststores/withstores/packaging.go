package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// promtool has the checker of Prometheus out of Debian's package; nothing is installed.
func (k *kit) promtool(ctx context.Context) {
	root, err := k.debian(ctx, "prometheus", []string{"prometheus"})
	if err != nil {
		k.lack("promtool", "on Debian or Ubuntu: apt-get update, so that apt-get download can reach prometheus", err)
		return
	}
	k.env = append(k.env, teststores.EnvPromtool+"="+filepath.Join(root, "usr", "bin", "promtool"))
}

// cleanDebian has the tar of a Debian with its essential packages alone, made by mmdebstrap from the
// mirror of this machine.
func (k *kit) cleanDebian(ctx context.Context) {
	const how = "on Debian or Ubuntu, as root: apt-get install mmdebstrap"
	tar := filepath.Join(k.cache, "debian.tar")
	if _, err := os.Stat(tar); err != nil {
		if err := k.makeDebian(ctx, tar); err != nil {
			k.lack("a clean Debian", how, err)
			return
		}
	}
	k.env = append(k.env, teststores.EnvRoot+"="+tar)
}

func (k *kit) makeDebian(ctx context.Context, tar string) error {
	if os.Getuid() != 0 {
		return errors.New("only root can make one")
	}
	install := []string{"-q", "-y", "--no-install-recommends", "install", "mmdebstrap"}
	if _, err := exec.LookPath("mmdebstrap"); err == nil {
	} else if err := do(ctx, "apt-get", install...); err != nil {
		if err = errors.Join(do(ctx, "apt-get", "-q", "update"), do(ctx, "apt-get", install...)); err != nil {
			return err
		}
	}
	release, err := exec.CommandContext(ctx, "sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").Output()
	if err != nil {
		return err
	}
	part := filepath.Join(k.cache, "part.debian.tar") // its end names the form
	// The lists of a mirror may be older than they say.
	if err := do(ctx, "mmdebstrap", "--variant=essential", "--include=passwd", `--aptopt=Acquire::Check-Valid-Until "false"`, strings.TrimSpace(string(release)), part); err != nil {
		return err
	}
	return os.Rename(part, tar)
}

// mkdocs has the maker of the site in a virtual environment of its own.
func (k *kit) mkdocs(ctx context.Context) {
	dir := filepath.Join(k.cache, "site")
	err := k.makeMkdocs(ctx, dir)
	if err != nil {
		k.lack("mkdocs", "install Python 3.9 or later with venv, and let pip reach its package index", err)
		return
	}
	k.env = append(k.env, teststores.EnvMkdocs+"="+filepath.Join(dir, "bin", "mkdocs"))
}

func (k *kit) makeMkdocs(ctx context.Context, dir string) error {
	const file = "packaging/site/requirements.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	mark := filepath.Join(dir, "has")
	if has, err := os.ReadFile(mark); err == nil && string(has) == string(want) {
		return nil
	}
	if err := errors.Join(os.RemoveAll(dir), do(ctx, "python3", "-m", "venv", dir)); err != nil {
		return err
	}
	if err := do(ctx, filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", file); err != nil {
		return err
	}
	return os.WriteFile(mark, want, 0o644)
}
