package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"rsbridge": main,
	})
}

// TestScripts runs the command as a user does. Beside testscript's commands there
// are: port NAME... (free ports into variables), exits N COMMAND... (wants this
// exit code), files DIR PORT (a plain file server until the end), answers URL (waits until it does), get URL FILE, post URL
// UPDATE, and those of faultyCmds and daemonCmds. With the condition [postgres] $POSTGRES is an empty database.
//
// With -short, which is how the race detector runs, there are only the scripts with
// a daemon; the others run without it.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		daemon := regexp.MustCompile(`(?m)^exec .*rsbridge (run|expose|mirror)\b.*&$`)
		scripts = slices.DeleteFunc(scripts, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && !daemon.Match(text)
		})
	}
	postgres := ""
	if os.Getenv(teststores.EnvPostgres) != "" {
		postgres = teststores.Postgres(t)
	}
	cmds := scriptCmds()
	maps.Copy(cmds, faultyCmds())
	maps.Copy(cmds, daemonCmds())
	testscript.Run(t, testscript.Params{
		Files: scripts,
		Cmds:  cmds,
		Condition: func(name string) (bool, error) {
			if name != "postgres" {
				return false, errors.New("unknown condition")
			}
			return postgres != "", nil
		},
		Setup: func(env *testscript.Env) error {
			env.Values[proxiesKey{}] = proxies{}
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("POSTGRES", postgres)
			env.Defer(func() { // what the daemons of a failed script have logged
				if t, ok := env.T().(interface{ Failed() bool }); !ok || !t.Failed() {
					return
				}
				logs, _ := filepath.Glob(filepath.Join(env.WorkDir, "*log*"))
				for _, file := range logs {
					text, err := os.ReadFile(file)
					env.T().Log(file, err, "\n", string(text[max(0, len(text)-20_000):]))
				}
			})
			return nil
		},
	})
}

func scriptCmds() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"port": func(ts *testscript.TestScript, _ bool, args []string) {
			for _, name := range args {
				port, err := teststores.FreePort()
				ts.Check(err)
				ts.Setenv(name, port)
			}
		},
		"exits": func(ts *testscript.TestScript, _ bool, args []string) {
			err := ts.Exec(args[1], args[2:]...)
			got := "0"
			if err != nil {
				got = regexp.MustCompile(`\d+$`).FindString(err.Error())
			}
			if got != args[0] {
				ts.Fatalf("%v: %v, want exit status %s", args[1:], err, args[0])
			}
		},
		"answers": func(ts *testscript.TestScript, _ bool, args []string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				if res, err := http.Get(args[0]); err == nil {
					res.Body.Close()
					return
				}
				select {
				case <-ctx.Done():
					ts.Fatalf("%s does not answer", args[0])
				case <-tick.C:
				}
			}
		},
		"get": func(ts *testscript.TestScript, _ bool, args []string) {
			res, err := http.Get(args[0])
			ts.Check(err)
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), raw, 0o600))
		},
		"post": func(ts *testscript.TestScript, _ bool, args []string) {
			res, err := http.Post(args[0], "application/sparql-update", strings.NewReader(args[1]))
			ts.Check(err)
			defer res.Body.Close()
			if res.StatusCode/100 != 2 {
				ts.Fatalf("%s: %s", args[0], res.Status)
			}
		},
		"files": func(ts *testscript.TestScript, _ bool, args []string) {
			l, err := net.Listen("tcp", "127.0.0.1:"+args[1])
			ts.Check(err)
			for ext, typ := range map[string]string{".nt": "application/n-triples", ".ttl": "text/turtle", ".jsonld": "application/ld+json", ".rdf": "application/rdf+xml"} {
				ts.Check(mime.AddExtensionType(ext, typ)) // as a server of linked data is configured
			}
			srv := &http.Server{Handler: http.FileServer(http.Dir(ts.MkAbs(args[0])))}
			go srv.Serve(l) // ends with Close
			ts.Defer(func() { srv.Close() })
		},
		"expand": func(ts *testscript.TestScript, _ bool, args []string) {
			for _, file := range args {
				text := os.Expand(ts.ReadFile(file), ts.Getenv)
				ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
			}
		},
	}
}
