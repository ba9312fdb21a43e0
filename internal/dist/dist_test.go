package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/internal/version"
)

const testRevision, testTime = "0123456789abcdef", "1700000000"

var testVersion = version.Of(testRevision)

func make1(t *testing.T, out string, more ...string) {
	t.Helper()
	args := append([]string{"-revision", testRevision, "-time", testTime, "-target", "linux/" + runtime.GOARCH, "-out", out}, more...)
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
}

// TestRelease makes the files of a release once, for the tests of its archive and its packages.
func TestRelease(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it builds packages for Linux")
	}
	t.Chdir(teststores.Root(t)) // as make dist does
	out := t.TempDir()
	make1(t, out)
	if err := exec.CommandContext(t.Context(), "sh", "-c", "cd '"+out+"' && sha256sum -c SHA256SUMS").Run(); err != nil {
		t.Error("sha256sum -c:", err)
	}
	t.Run("same bytes", func(t *testing.T) { sameBytes(t, out) })
	t.Run("packages", func(t *testing.T) { packages(t, out) })
}

// archived is the line of the archive among the checksums of a folder.
func archived(t *testing.T, out string) string {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(out, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		if strings.HasSuffix(line, ".tar.gz\n") {
			return line
		}
	}
	t.Fatalf("no archive among %s", sums)
	return ""
}

// sameBytes: another tree in another folder gives the same archive, byte for byte, and it holds the
// stripped binary of the version with its papers.
func sameBytes(t *testing.T, out string) {
	root := teststores.Root(t)
	files, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "another place")
	for file := range strings.SplitSeq(strings.Trim(string(files), "\x00"), "\x00") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		to := filepath.Join(copied, file)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(copied)
	again := filepath.Join(copied, "dist")
	make1(t, again, "-packages=false", "-sbom=false")
	if first, second := archived(t, out), archived(t, again); first != second {
		t.Errorf("two builds differ:\n%s\n%s", first, second)
	}
	base := fmt.Sprintf("rsbridge_%s_linux_%s", testVersion, runtime.GOARCH)
	f, err := os.Open(filepath.Join(out, base+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	bin := filepath.Join(t.TempDir(), "rsbridge")
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(h.Name, base+"/"))
		if strings.HasSuffix(h.Name, "/rsbridge") {
			data, err := io.ReadAll(r)
			if err != nil || os.WriteFile(bin, data, 0o700) != nil {
				t.Fatal("the binary cannot be taken out:", err)
			}
			if bytes.Contains(data, []byte(teststores.Root(t))) {
				t.Error("the binary tells the folder of its source")
			}
		}
	}
	want := []string{"rsbridge", "CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "Containerfile", "container/rsbridge.yaml", "rsbridge.service"}
	if !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
	told, err := exec.CommandContext(t.Context(), bin, "--version").Output()
	if err != nil || !strings.HasPrefix(string(told), "rsbridge "+testVersion+" ") || !strings.Contains(string(told), testRevision) {
		t.Errorf("--version prints %q (%v)", told, err)
	}
}

// packages: those for Debian and Fedora and the bill of materials are there. In a clean Debian the
// package is installed, its daemon starts as its user under the protocol of systemd, and a removal
// leaves the state.
func packages(t *testing.T, out string) {
	clean := teststores.CleanDebian(t)
	bill, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("rsbridge_%s_linux_%s.cdx.json", testVersion, runtime.GOARCH)))
	if err != nil {
		t.Fatal(err)
	}
	materials(t, bill)
	rpms, _ := filepath.Glob(filepath.Join(out, "*.rpm"))
	debs, _ := filepath.Glob(filepath.Join(out, "*.deb"))
	if len(debs) != 1 || len(rpms) != 1 {
		t.Fatalf("packages: %v %v", debs, rpms)
	}
	root := t.TempDir()
	command(t, "tar", "-xf", clean, "-C", root, "--exclude=./dev/*")
	command(t, "cp", debs[0], filepath.Join(root, "p.deb"))
	inside := func(args ...string) string {
		t.Helper()
		return command(t, "chroot", append([]string{root}, args...)...)
	}
	inside("/bin/sh", "-c", ": > /dev/null; dpkg -i /p.deb")
	if told := inside("/usr/bin/rsbridge", "--version"); !strings.HasPrefix(told, "rsbridge "+testVersion+" ") {
		t.Errorf("--version prints %q", told)
	}
	inside("/bin/sh", "-c", "test \"$(stat -c '%U %a' /var/lib/rsbridge)\" = 'rsbridge 700' && test \"$(stat -c '%U:%G %a' /etc/rsbridge/rsbridge.yaml)\" = 'root:rsbridge 640'")
	started(t, root)
	inside("/bin/sh", "-c", ": > /dev/null; dpkg -i /p.deb && dpkg -r rsbridge && test -d /var/lib/rsbridge/state && test -f /etc/rsbridge/rsbridge.yaml && ! test -e /usr/bin/rsbridge")
}

// materials holds a bill of materials to the modules of the program.
func materials(t *testing.T, raw []byte) {
	t.Helper()
	var bill struct {
		BomFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version string
			Licenses      []any
		}
	}
	if err := json.Unmarshal(raw, &bill); err != nil {
		t.Fatal(err)
	}
	licensed, pebble := 0, false
	for _, c := range bill.Components {
		pebble = pebble || c.Name == "github.com/cockroachdb/pebble/v2" && c.Version != ""
		if len(c.Licenses) > 0 {
			licensed++
		}
	}
	if bill.BomFormat != "CycloneDX" || bill.Metadata.Component.Version != "v"+testVersion || !pebble || licensed < len(bill.Components)/2 {
		t.Errorf("the bill: %s of %+v, %d components, %d with licences, pebble among them: %v", bill.BomFormat, bill.Metadata.Component, len(bill.Components), licensed, pebble)
	}
}

// started starts the daemon of the package as its user, and ends it, as systemd would.
func started(t *testing.T, root string) {
	t.Helper()
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(root, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	command(t, "chmod", "0777", filepath.Join(root, "notify"))
	public, admin := freePort(t), freePort(t)
	command(t, "sed", "-i", "s/127.0.0.1:8080/127.0.0.1:"+public+"/; s/127.0.0.1:8081/127.0.0.1:"+admin+"/", filepath.Join(root, "etc", "rsbridge", "rsbridge.yaml"))
	var said bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "chroot", "--userspec=rsbridge:rsbridge", root, "/usr/bin/rsbridge", "run", "-c", "/etc/rsbridge/rsbridge.yaml")
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"NOTIFY_SOCKET=/notify", "PATH=/usr/bin:/bin"}, &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hears := func(state string) {
		t.Helper()
		for heard := ""; !strings.HasPrefix(heard, state); {
			_ = l.SetReadDeadline(time.Now().Add(30 * time.Second))
			buf := make([]byte, 4096)
			n, err := l.Read(buf)
			if err != nil {
				t.Fatalf("the daemon does not say %s: %v\n%s", state, err, said.String())
			}
			heard = string(buf[:n])
		}
	}
	hears("READY=1")
	res, err := http.Get("http://127.0.0.1:" + admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK || string(body) != "ready\n" {
		t.Errorf("/readyz: %s %q", res.Status, body)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hears("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v\n%s", err, said.String())
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
