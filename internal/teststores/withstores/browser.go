package main

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// browser finds a Chromium, or installs Debian's if it may.
func (k *kit) browser(ctx context.Context) {
	find := func() bool {
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
			if path, err := exec.LookPath(name); err == nil {
				k.env = append(k.env, teststores.EnvBrowser+"="+path)
				return true
			}
		}
		return false
	}
	if find() {
		return
	}
	err := errors.New("there is none, and only root can install it")
	if os.Getuid() == 0 {
		install := []string{"-q", "-y", "--no-install-recommends", "install", "chromium"}
		if err = do(ctx, "apt-get", install...); err != nil {
			err = errors.Join(do(ctx, "apt-get", "-q", "update"), do(ctx, "apt-get", install...))
		}
		if err == nil && find() {
			return
		}
	}
	k.lack("a browser", "install Chromium or Chrome", err)
}
