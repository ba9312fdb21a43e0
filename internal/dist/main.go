// Command dist fills dist/ with the files of a release: archives of the static binary, packages
// for Debian and Fedora, software bills of materials, and the checksums of them all.
//
//	go run ./internal/dist -revision COMMIT -time SECONDS [-out dist] [-target linux/amd64]...
//
// The version is that of internal/version. The same tree, revision and time give the same bytes, in any folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/version"
)

// Targets are the systems of a release.
var targets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// release is what is made.
type release struct {
	version, revision string
	time              time.Time
	out               string // a folder
	packages, sbom    bool
}

func run(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("dist", flag.ContinueOnError)
	r := release{}
	f.StringVar(&r.revision, "revision", "", "the commit, COMMIT-dirty if files differ from it")
	seconds := f.Int64("time", 0, "the time of the commit, in seconds since 1970")
	f.StringVar(&r.out, "out", "dist", "the folder to fill; it is emptied first")
	f.BoolVar(&r.packages, "packages", true, "make packages for Debian and Fedora")
	f.BoolVar(&r.sbom, "sbom", true, "make software bills of materials")
	var chosen []string
	f.Func("target", "OS/ARCH; again for more (default: all)", func(s string) error {
		if !slices.Contains(targets, s) {
			return fmt.Errorf("it is one of %s", strings.Join(targets, ", "))
		}
		chosen = append(chosen, s)
		return nil
	})
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return errors.New("usage: dist [flags]")
	}
	r.version = version.Of(r.revision)
	r.time = time.Unix(*seconds, 0).UTC()
	if len(chosen) == 0 {
		chosen = targets
	}
	var err error
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, t := range chosen {
		system, arch, _ := strings.Cut(t, "/")
		if err := r.target(ctx, system, arch); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return sums(r.out)
}

// target makes the files for one system.
func (r *release) target(ctx context.Context, system, arch string) error {
	work, err := os.MkdirTemp("", "rsbridge-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	name := "rsbridge"
	if system == "windows" {
		name += ".exe"
	}
	bin := filepath.Join(work, name)
	if err := r.build(ctx, bin, system, arch); err != nil {
		return err
	}
	if err := os.Chtimes(bin, r.time, r.time); err != nil {
		return err
	}
	base := fmt.Sprintf("rsbridge_%s_%s_%s", r.version, system, arch)
	if err := r.archive(filepath.Join(r.out, base), bin, system); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if r.packages && system == "linux" {
		for _, kind := range []string{"deb", "rpm"} {
			if err := r.pack(ctx, kind, bin, arch); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	if r.sbom {
		if err := r.materials(ctx, filepath.Join(r.out, base+".cdx.json"), bin); err != nil {
			return fmt.Errorf("bill of materials: %w", err)
		}
	}
	return nil
}

const at = "github.com/rsbridge/rsbridge/internal/version"

// build makes the static binary, stripped. Nothing in it tells the folder of the build, so two
// builds of one tree are the same.
func (r *release) build(ctx context.Context, bin, system, arch string) error {
	link := fmt.Sprintf("-s -w -buildid= -X %s.revision=%s", at, r.revision)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags=nomsgpack", "-gcflags=all=-dwarf=false", "-ldflags="+link, "-o", bin, "./cmd/rsbridge")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	return said(cmd)
}

// tool runs a pinned tool of packaging/tools, built for this machine. It shares the compiled
// standard library with the program.
func tool(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "-modfile=packaging/tools/go.mod", name}, args...)...)
	cmd.Env = append(os.Environ(), append([]string{"GOFLAGS=-trimpath -gcflags=all=-dwarf=false -ldflags=-w", "CGO_ENABLED=0", "GOOS=", "GOARCH="}, env...)...)
	return said(cmd)
}

// pack makes a package for Debian or Fedora.
func (r *release) pack(ctx context.Context, kind, bin, arch string) error {
	return tool(ctx, []string{"VERSION=" + r.version, "ARCH=" + arch, "BINARY=" + bin, "SOURCE_DATE_EPOCH=" + fmt.Sprint(r.time.Unix())},
		"nfpm", "package", "--config", "packaging/nfpm.yaml", "--packager", kind, "--target", r.out+string(filepath.Separator))
}

// materials makes the software bill of materials of a binary, in CycloneDX.
func (r *release) materials(ctx context.Context, file, bin string) error {
	return tool(ctx, nil, "cyclonedx-gomod", "bin", "-json", "-licenses", "-assert-licenses", "-noserial", "-notimestamp", "-version", "v"+r.version, "-output", file, bin)
}

// said runs a command; its words come with the error.
func said(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:min(4, len(cmd.Args))], " "), err, out)
	}
	return nil
}
