// Command withstores fetches the real stores and clients that the tests meet,
// starts the servers once, runs a command with their addresses in its
// environment, and names the missing ones at the end.
//
//	go run ./internal/teststores/withstores go test ./...
//
// Downloads go into a cache folder ($RSBRIDGE_CACHE, default
// rsbridge-test in the user's cache folder), by the ordinary package clients:
// pip into a virtual environment, Maven for Fuseki and RDF4J, apt for Virtuoso, Go for versitygw. With CI=true a missing one
// makes it fail.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Versions known to the tests.
var (
	pipPackages = []string{"oxigraph==0.5.13", "pyoxigraph==0.5.13", "resync==2.0.1", "setuptools<80", "jsonpatch==1.33", "lxml==6.0.2", "sickle==0.7.0",
		"Flask-WebSub==0.4.1", "celery==5.5.3", "websockets==15.0.1", "moto[server]==5.2.1"}
	fuseki = "org.apache.jena:jena-fuseki-server:5.5.0"
)

// versions are the same for people.
const versions = "Oxigraph 0.5.13, Fuseki 5.5.0 (TDB2), RDF4J 5.0.3 (NativeStore), Virtuoso 7 of Debian, resync 2.0.1"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// missing is a thing not to be had, and how to get it.
type missing struct{ what, why, how string }

type kit struct {
	cache, work string
	missing     []missing
	env         []string
	servers     []*exec.Cmd
}

func run(ctx context.Context, command []string) int {
	if len(command) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withstores COMMAND...")
		return 2
	}
	k := &kit{env: os.Environ()}
	if err := k.folders(); err != nil {
		fmt.Fprintln(os.Stderr, "withstores:", err)
		return 1
	}
	defer os.RemoveAll(k.work)
	defer k.stop()
	if k.python(ctx) {
		k.oxigraph(ctx)
		k.moto(ctx)
	}
	k.versitygw(ctx)
	k.fuseki(ctx)
	k.rdf4j(ctx)
	k.virtuoso(ctx)
	k.postgres(ctx)
	k.browser(ctx)
	k.npm(ctx)
	k.promtool(ctx)
	k.cleanDebian(ctx)
	k.mkdocs(ctx)
	k.openapi(ctx)
	list := filepath.Join(k.work, "missing")
	k.env = append(k.env, teststores.EnvMissing+"="+list, teststores.EnvVersions+"="+versions)

	code := 0
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	failed := &failures{}
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = k.env, io.MultiWriter(os.Stdout, failed), os.Stderr, 10*time.Second
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "withstores: %s: %v\n", strings.Join(command, " "), err)
		code = 1
	}
	failed.repeat(os.Stdout)
	for _, m := range k.missing {
		fmt.Printf("NOT RUN: what needs %s: %s\n         to have it: %s\n", m.what, m.why, m.how)
	}
	if tests, err := os.ReadFile(list); err == nil {
		fmt.Printf("tests passed over:\n%s", tests)
	}
	if len(k.missing) > 0 && os.Getenv("CI") == "true" {
		fmt.Println("CI=true: everything must run")
		return 1
	}
	return code
}

func (k *kit) folders() error {
	k.cache = os.Getenv("RSBRIDGE_CACHE")
	if k.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			dir = os.TempDir()
		}
		k.cache = filepath.Join(dir, "rsbridge-test")
	}
	if err := os.MkdirAll(k.cache, 0o755); err != nil {
		return err
	}
	var err error
	k.work, err = os.MkdirTemp("", "rsbridge-stores-")
	return err
}

func (k *kit) lack(what, how string, err error) bool {
	k.missing = append(k.missing, missing{what, firstLines(err.Error()), how})
	return false
}

func firstLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	return strings.Join(lines, " | ")
}

// fetching is how long a package client may take.
const fetching = 10 * time.Minute

// starting is how long a server may take before it answers.
const starting = 5 * time.Minute

// do runs a client quietly; its words come with the error.
func do(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, fetching)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (k *kit) venv(tool string) string { return filepath.Join(k.cache, "venv", "bin", tool) }

// python makes the virtual environment once for each list of packages.
func (k *kit) python(ctx context.Context) bool {
	const how = "install Python 3.9 to 3.13 with venv, and let pip reach its package index"
	mark := filepath.Join(k.cache, "venv", "has")
	want := strings.Join(pipPackages, " ")
	if has, err := os.ReadFile(mark); err != nil || string(has) != want {
		fmt.Println("fetching Python packages:", want)
		err := os.RemoveAll(filepath.Join(k.cache, "venv"))
		if err == nil {
			err = do(ctx, "python3", "-m", "venv", filepath.Join(k.cache, "venv"))
		}
		if err == nil {
			err = do(ctx, k.venv("python"), append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}, pipPackages...)...)
		}
		if err == nil {
			err = os.WriteFile(mark, []byte(want), 0o644)
		}
		if err != nil {
			return k.lack("Python (pyoxigraph, resync) and Oxigraph", how, err)
		}
	}
	k.env = append(k.env, teststores.EnvPython+"="+k.venv("python"))
	return true
}

func (k *kit) oxigraph(ctx context.Context) {
	port := freePort()
	base := "http://127.0.0.1:" + port
	err := k.start(ctx, "oxigraph", base+"/", nil, k.venv("oxigraph"), "serve", "--location", filepath.Join(k.work, "oxigraph"), "--bind", "127.0.0.1:"+port)
	if err != nil {
		k.lack("Oxigraph", "pip install "+pipPackages[0], err)
		return
	}
	k.env = append(k.env, teststores.EnvOxigraph+"="+base)
}

func (k *kit) fuseki(ctx context.Context) {
	jar, err := k.maven(ctx, fuseki)
	if err != nil {
		k.lack("Fuseki", javaHow, err)
		return
	}
	k.env = append(k.env, teststores.EnvJena+"="+jar)
	port, db := freePort(), filepath.Join(k.work, "fuseki-db")
	base := "http://127.0.0.1:" + port
	err = os.MkdirAll(db, 0o755)
	if err == nil {
		err = k.start(ctx, "fuseki", base+"/$/ping", []string{"FUSEKI_BASE=" + filepath.Join(k.work, "fuseki")},
			"java", "-Xmx2g", "-jar", jar, "--tdb2", "--loc="+db, "--update", "--localhost", "--port="+port, "/ds")
	}
	if err != nil {
		k.lack("Fuseki", javaHow, err)
		return
	}
	k.env = append(k.env, teststores.EnvFuseki+"="+base+"/ds")
}

// start starts a server and waits until it answers.
func (k *kit) start(ctx context.Context, name, ready string, env []string, command string, args ...string) error {
	return k.startIn(ctx, k.work, name, answers(ready), env, command, args...)
}

// startIn is start in a folder of its own.
func (k *kit) startIn(ctx context.Context, dir, name string, ready func() bool, env []string, command string, args ...string) error {
	log, err := os.Create(filepath.Join(k.work, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(command, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	k.servers = append(k.servers, cmd)
	deadline := time.After(starting)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if ready() {
			fmt.Println("started", name)
			return nil
		}
		select {
		case err := <-ended:
			words, _ := os.ReadFile(log.Name())
			return errors.Join(fmt.Errorf("%s ended at once: %s", name, words), err)
		case <-deadline:
			return fmt.Errorf("%s did not answer within %s", name, starting)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// answers tells whether there is an answer at an address.
func answers(addr string) func() bool {
	return func() bool {
		res, err := http.Get(addr)
		if err != nil {
			return false
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return true
	}
}

func (k *kit) stop() {
	for _, cmd := range k.servers {
		if runtime.GOOS == "windows" {
			cmd.Process.Kill()
		} else {
			cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, cmd := range k.servers {
		for range 100 { // wait until start's goroutine has reaped it
			if cmd.Process.Signal(syscall.Signal(0)) != nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		cmd.Process.Kill()
	}
}

// freePort is "0", a port without answers, if none is free.
func freePort() string {
	port, err := teststores.FreePort()
	if err != nil {
		return "0"
	}
	return port
}
