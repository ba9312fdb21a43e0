package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/rsbridge/rsbridge/bridge"
)

// watchEvery is the time between two looks.
const watchEvery = 2 * time.Second

// nowStatus reads the status once, from the daemon or the state. Between two calls a daemon may start
// or end.
func nowStatus(ctx context.Context, a *app) (st bridge.Status, err error) {
	s, _, end, err := a.reading(ctx)
	if err != nil {
		return st, err
	}
	defer func() {
		if e := end(); e != nil {
			err = errors.Join(err, e)
		}
	}()
	return s.Status(ctx)
}

// watchStatus shows the status again and again, until ctx ends: a screen on a terminal, else a line for each
// set, destination and mirror when it has changed. Only the first look may fail.
func watchStatus(ctx context.Context, a *app) error {
	v := viewOf(a)
	for first := true; ; first = false {
		st, err := nowStatus(ctx, a)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = v.show(st)
		} else if !first {
			err = v.fault(err)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.watchEvery):
		}
	}
}

// view is how a watched status is shown.
type view interface {
	show(bridge.Status) error
	fault(error) error // it could not be read
}

func viewOf(a *app) view {
	if a.json {
		return jsonView{a}
	}
	out := a.out
	if c, ok := out.(*counted); ok {
		out = c.Writer
	}
	if w := cwriter.New(out); w.IsTerminal() {
		return &screen{to: w, size: w.GetTermSize, now: time.Now}
	}
	return &changedLines{w: a.out, now: time.Now}
}

// jsonView prints a document a look.
type jsonView struct{ a *app }

func (v jsonView) show(st bridge.Status) error { return json.NewEncoder(v.a.out).Encode(st) }
func (v jsonView) fault(err error) error       { v.a.note("rsbridge: %v", err); return nil }

// screen draws the whole status in place.
type screen struct {
	to interface {
		io.Writer
		Flush(lines int) error
	}
	size func() (width, height int, err error)
	now  func() time.Time
	last string // status
	at   time.Time
}

func (s *screen) show(st bridge.Status) error {
	var text strings.Builder
	if err := sayStatus(&text, st); err != nil {
		return err
	}
	s.last, s.at = text.String(), s.now()
	return s.draw("rsbridge status, " + s.at.Format(time.TimeOnly) + ", Ctrl-C ends")
}

func (s *screen) fault(err error) error {
	return s.draw(fmt.Sprintf("as of %s; the status cannot be read: %s", s.at.Format(time.TimeOnly), oneLine(err.Error())))
}

// draw writes as much as fits: a line that is wrapped would not be overwritten.
func (s *screen) draw(head string) error {
	width, height, err := s.size()
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(head+"\n\n"+s.last, "\n"), "\n")
	if most := max(height-1, 1); len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("... %d more lines", len(lines)-most+1))
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) >= width {
			line = string([]rune(line)[:max(width-1, 0)])
		}
		if _, err := io.WriteString(s.to, line+"\n"); err != nil {
			return err
		}
	}
	return s.to.Flush(len(lines))
}

// changedLines prints a line when it has changed.
type changedLines struct {
	w    io.Writer
	now  func() time.Time
	said map[string]string // the last line of each subject
}

func (c *changedLines) show(st bridge.Status) error {
	said := map[string]string{}
	say := func(subject, text string) error {
		said[subject] = text
		if c.said[subject] == text {
			return nil
		}
		_, err := fmt.Fprintf(c.w, "%s %s: %s\n", c.now().UTC().Format(time.RFC3339), subject, text)
		return err
	}
	for _, s := range st.Sets {
		text := fmt.Sprintf("%s, %s, sequence %d", s.State, plural(s.Resources, "resource"), s.Sequence)
		if s.Why != "" {
			text += "; " + oneLine(s.Why)
		}
		if err := say("set "+s.Name, text); err != nil {
			return err
		}
		for _, m := range s.Mirrors {
			if err := say(fmt.Sprintf("set %s, mirror %s (key %.8s)", s.Name, m.Name, m.Key), "behind "+behindBy(m.BehindSeconds, m.BehindChanges)); err != nil {
				return err
			}
		}
	}
	for _, d := range st.Destinations {
		text := fmt.Sprintf("%s, %s, %s, behind %s", d.State, plural(d.Resources, "resource"), yes(d.InSync, "in sync", "not in sync"), behindBy(d.BehindSeconds, d.BehindChanges))
		if d.Live != "" {
			text += ", by " + d.Live
		}
		if d.Why != "" {
			text += "; " + oneLine(d.Why)
		}
		if err := say("destination "+d.Name, text); err != nil {
			return err
		}
	}
	c.said = said
	return nil
}

func (c *changedLines) fault(err error) error {
	text := oneLine(err.Error())
	if c.said[""] != text {
		c.said[""] = text
		_, err = fmt.Fprintf(c.w, "%s the status cannot be read: %s\n", c.now().UTC().Format(time.RFC3339), text)
		return err
	}
	return nil
}
