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

// tree goes to the top of the repository, as make dist does.
func tree(t *testing.T) {
	t.Helper()
	t.Chdir(teststores.Root(t))
}

func make1(t *testing.T, out string, more ...string) {
	t.Helper()
	args := append([]string{"-revision", testRevision, "-time", testTime, "-target", "linux/" + runtime.GOARCH, "-out", out}, more...)
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
}

// TestSameBytes: two trees in two folders give the same archive, byte for byte, and it holds the
// stripped binary of the version with its papers.
func TestSameBytes(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it builds the program twice")
	}
	root := teststores.Root(t)
	files, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	var sums []string
	var out string
	for _, name := range []string{"a", "another place"} {
		copied := filepath.Join(t.TempDir(), name)
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
		out = filepath.Join(copied, "dist")
		make1(t, out, "-packages=false", "-sbom=false")
		sum, err := os.ReadFile(filepath.Join(out, sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(sum))
	}
	if sums[0] != sums[1] || !strings.Contains(sums[0], ".tar.gz\n") {
		t.Errorf("two builds differ:\n%s\n%s", sums[0], sums[1])
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

// TestPackages: the packages for Debian and Fedora and the bill of materials are made. In a clean
// Debian the package is installed, its daemon starts as its user under the protocol of systemd, and
// a removal leaves the state.
func TestPackages(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it builds packages for Linux")
	}
	clean := teststores.CleanDebian(t)
	tree(t)
	out := t.TempDir()
	make1(t, out)
	bill, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("rsbridge_%s_linux_%s.cdx.json", testVersion, runtime.GOARCH)))
	if err != nil {
		t.Fatal(err)
	}
	materials(t, bill)
	if err := exec.CommandContext(t.Context(), "sh", "-c", "cd '"+out+"' && sha256sum -c SHA256SUMS").Run(); err != nil {
		t.Error("sha256sum -c:", err)
	}
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
