package bridge

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// foreign is a program of others. It ends with its test.
type foreign struct {
	*testing.T
	name  string
	lines chan string
}

func runForeign(t *testing.T, name, program string, args ...string) *foreign {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	if _, err := cmd.StdinPipe(); err != nil { // at its end the program ends
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var faults strings.Builder
	cmd.Stderr = &faults
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &foreign{T: t, name: name, lines: make(chan string, 10_000)}
	read := make(chan struct{})
	go func() { // ends with the program
		defer close(read)
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		stop()
		<-read
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s: %s", name, faults.String())
		}
	})
	return p
}

// next is the first group of a pattern in the next line that has it.
func (p *foreign) next(pattern string) string {
	p.Helper()
	find := regexp.MustCompile(pattern)
	for line := range p.lines {
		if found := find.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	p.Fatalf("%s ends before a line like %s", p.name, pattern)
	return ""
}

// TestForeignSubscribers: clients of others hear each change, over the hub with a secret, over a
// WebSocket and by server-sent events.
func TestForeignSubscribers(t *testing.T) {
	t.Parallel()
	modules, python := teststores.Npm(t), teststores.Python(t)
	p := newPushing(t, "events")
	at := p.base + "/data/notify/change"
	listener, _ := filepath.Abs("testdata/listener.mjs")
	since := p.publish("")
	programs := []*foreign{
		runForeign(t, "pubsubhubbub", "node", listener, modules, "pubsubhubbub", at, p.base+"/hub"),
		runForeign(t, "eventsource", "node", listener, modules, "eventsource", at),
		runForeign(t, "websockets", python, "testdata/listener.py", "ws"+strings.TrimPrefix(at, "http")),
		runForeign(t, "wscat", filepath.Join(modules, "node_modules", ".bin", "wscat"), "--connect", fmt.Sprintf("ws%s?since=%d", strings.TrimPrefix(at, "http"), since)),
	}
	for _, c := range programs[:3] { // wscat says nothing
		c.next("^(open)")
	}
	for p.source.forms.push.Listeners("data").WebSub == 0 { // verified by then
		p.publish("")
	}
	triples := ""
	for i := range 2 {
		triples += fmt.Sprintf("<http://e.example/x%d> <http://e.example/p> \"1\" .\n", i)
		p.publish(triples)
	}
	for _, c := range programs {
		for i := range 2 {
			want := fmt.Sprintf("http://e.example/x%d", i)
			if got := c.next(`rs:md change="created".*<rs:ln rel="describes" href="([^"]*)"`); got != want {
				t.Errorf("%s hears of %s, want %s", c.name, got, want)
			}
		}
	}
}

// TestForeignHub: a mirror follows over the hub Flask-WebSub, told by the notification, by the
// topic's address, or by both.
func TestForeignHub(t *testing.T) {
	t.Parallel()
	hub := runForeign(t, "Flask-WebSub", teststores.Python(t), "testdata/websub-hub.py", filepath.Join(t.TempDir(), "hub.sqlite3"))
	address := "http://127.0.0.1:" + hub.next(`^(\d+)$`) + "/hub "
	for _, mode := range []string{"fat", "ping", "both"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newPushing(t, "websub", address+mode)
			at := p.publish("")
			runs := p.mirror.Runner().Watch(t.Context())
			p.mirror.Start(t.Context())
			p.follow(runs, at)
			for i := range 3 {
				p.follow(runs, p.publish(fmt.Sprintf("<http://e.example/%d> <http://e.example/p> \"1\" .\n", i)))
			}
			p.equal()
			if way := p.mirror.dests["copy"].live.Way(); way != "websub" {
				t.Errorf("heard by %s", way)
			}
		})
	}
}
