package bridge

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// logged is a Fuseki of its own, with a patch log. It runs with the configuration of the how-to, in
// its folder.
type logged struct {
	t         *testing.T
	jar, dir  string
	port, log string
	run       *exec.Cmd
}

func newLogged(t *testing.T) (*logged, Store) {
	l := &logged{t: t, jar: teststores.Jena(t), dir: t.TempDir()}
	addr, err := teststores.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l.port, l.log = addr[strings.LastIndexByte(addr, ':')+1:], filepath.Join(l.dir, "patch.rdfp")
	page, err := os.ReadFile("../docs/howto/expose-fuseki.md")
	if err != nil {
		t.Fatal(err)
	}
	_, conf, _ := strings.Cut(string(page), "```turtle\n")
	conf, _, _ = strings.Cut(conf, "```")
	if err := os.WriteFile(filepath.Join(l.dir, "conf.ttl"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	l.start()
	t.Cleanup(l.stop)
	st, at := NewStore(), "http://127.0.0.1:"+l.port+"/ds/"
	st.Query, st.Update, st.GraphStore, st.PatchLog, st.Gateway = at+"query", at+"update", at+"data", l.log, true
	st.Timeout = Duration(5 * time.Minute) // on a busy machine
	return l, st
}

func (l *logged) start() {
	l.run = exec.CommandContext(l.t.Context(), "java", "-Xmx400m", "-cp", l.jar, "org.apache.jena.fuseki.main.cmds.FusekiMainCmd", "--localhost", "--port", l.port, "--conf", filepath.Join(l.dir, "conf.ttl"))
	l.run.Dir = l.dir
	out, err := l.run.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.run.Start(); err != nil {
		l.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "Start Fuseki") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // its log must go somewhere
			return
		}
	}
	l.t.Fatal("Fuseki does not start")
}

func (l *logged) stop() {
	_ = l.run.Process.Kill()
	_ = l.run.Wait()
}

// TestPatchLogTellsAll is TestGatewayTellsAll for the patch log of a Fuseki, which is killed,
// rotated, cut and removed in between.
func TestPatchLogTellsAll(t *testing.T) {
	if testing.Short() {
		t.Skip("a Fuseki of its own, in a process that the race detector does not see; it runs without -short")
	}
	l, st := newLogged(t)
	g := newGated(t, st, allKinds)
	g.random("data", "urn:g", true, 25)
	if t.Failed() {
		return
	}
	for what, happens := range map[string]func() error{
		"rotated":            func() error { return os.Rename(l.log, l.log+".1") },
		"removed":            func() error { return os.Remove(l.log) },
		"restarted":          func() error { return nil },
		"cut, and restarted": func() error { return os.Truncate(l.log, 100) },
		"ends in a half line": func() error {
			f, err := os.OpenFile(l.log, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			if _, err := f.WriteString("H id <uuid:x> .\nTX .\nA <urn:e1> <ur"); err != nil {
				return err
			}
			return f.Close()
		},
	} {
		g.update("INSERT DATA { <urn:before> <urn:p> [ <urn:q> \"" + what + "\" ] }")
		l.stop()
		if err := happens(); err != nil {
			t.Fatal(err)
		}
		if what == "removed" {
			for name := range g.cfg.Sets {
				if now, err := g.b.SetStatus(t.Context(), name); err != nil || now.State != StateFailing {
					t.Errorf("set %s without its log: %s, %v", name, now.State, err)
				}
			}
		}
		l.start()
		g.update("DELETE WHERE { <urn:before> <urn:p> ?b . ?b <urn:q> ?o } ; INSERT DATA { <urn:after> <urn:p> [ <urn:q> \"" + what + "\" ] }")
		for range 2 { // the second time the log goes on
			for name := range g.cfg.Sets {
				if g.settle(name) {
					continue
				}
				if rep := do[ScanReport](t, g.b, "scan", name); rep.Held != nil || rep.Created+rep.Updated+rep.Deleted > 0 {
					t.Errorf("%s, set %s: the log did not tell of all:\n%+v", what, name, rep)
				}
			}
			g.update("INSERT DATA { <urn:then> <urn:p> \"" + what + "\" }")
		}
	}
}
