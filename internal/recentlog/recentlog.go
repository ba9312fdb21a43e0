// Package recentlog keeps the newest lines of a log in memory, beside writing them.
package recentlog

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Line is one line of the log.
type Line struct {
	Time    time.Time
	Level   slog.Level
	Message string
	Attrs   []slog.Attr
}

// Get is the value of an attribute of the line, "" without it.
func (l Line) Get(key string) string {
	for _, a := range l.Attrs {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// Text are the attributes as the log writes them, without those of the given keys.
func (l Line) Text(without ...string) string {
	var b strings.Builder
	for _, a := range l.Attrs {
		if slices.Contains(without, a.Key) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.Key + "=" + a.Value.String())
	}
	return b.String()
}

// most bounds the lines kept, and longest the bytes of a line's attribute.
const (
	most    = 2000
	longest = 2000
)

// Handler writes to another handler, and keeps the newest lines.
type Handler struct {
	slog.Handler
	attrs []slog.Attr
	group string
	ring  *ring
}

type ring struct {
	mu    sync.Mutex // guards the lines
	lines []Line
	next  int // place of the next line, once there are most
}

// New is a handler around another one.
func New(h slog.Handler) *Handler { return &Handler{Handler: h, ring: &ring{}} }

// Of is the handler of a logger that keeps its lines, nil of another one.
func Of(log *slog.Logger) *Handler {
	h, _ := log.Handler().(*Handler)
	return h
}

// Logger is a logger that keeps its lines: the given one, or one around it.
func Logger(log *slog.Logger) *slog.Logger {
	if Of(log) != nil {
		return log
	}
	return slog.New(New(log.Handler()))
}

// Handle writes and keeps a line.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	line := Line{Time: r.Time, Level: r.Level, Message: r.Message, Attrs: slices.Clone(h.attrs)}
	r.Attrs(func(a slog.Attr) bool {
		line.Attrs = append(line.Attrs, h.short(a))
		return true
	})
	h.ring.add(line)
	return h.Handler.Handle(ctx, r)
}

// short is an attribute as text: its value may change later.
func (h *Handler) short(a slog.Attr) slog.Attr {
	text := a.Value.Resolve().String()
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return slog.String(h.group+a.Key, text)
}

// WithAttrs is a handler with the same lines.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.Handler, out.attrs = h.Handler.WithAttrs(attrs), slices.Clone(h.attrs)
	for _, a := range attrs {
		out.attrs = append(out.attrs, h.short(a))
	}
	return &out
}

// WithGroup is a handler with the same lines.
func (h *Handler) WithGroup(name string) slog.Handler {
	out := *h
	out.Handler, out.group = h.Handler.WithGroup(name), h.group+name+"."
	return &out
}

func (r *ring) add(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < most {
		r.lines = append(r.lines, l)
		return
	}
	r.lines[r.next] = l
	r.next = (r.next + 1) % most
}

// Lines are the kept lines since a time, oldest first, as keep chooses.
func (h *Handler) Lines(from time.Time, keep func(Line) bool) (out []Line) {
	h.ring.mu.Lock()
	defer h.ring.mu.Unlock()
	for i := range h.ring.lines {
		l := h.ring.lines[(h.ring.next+i)%len(h.ring.lines)]
		if !l.Time.Before(from) && keep(l) {
			out = append(out, l)
		}
	}
	return out
}
