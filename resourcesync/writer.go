package resourcesync

import (
	"errors"
	"fmt"
	"io"
)

// Writer writes a 1.1 document: root links, root rs:md, then the entries, in the order of the XML
// Schemas. It streams; its memory does not grow with the document.
//
// It refuses root times and entry shapes forbidden by 1.1 (see NewWriter and AppendEntry). The
// targets of links are the caller's responsibility.
type Writer struct {
	w     io.Writer
	buf   []byte
	index bool
	count int
	bytes int64
	err   error // sticky
}

const (
	writerFlush = 32 << 10
	xmlHead     = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	namespaces  = ` xmlns="` + NamespaceSitemap + `" xmlns:rs="` + NamespaceRS + `" xmlns:rsb="` + NamespaceBridge + `">` + "\n"
)

// NewWriter writes the root. It uses Index, Links, and of Meta the capability, the four times and
// Ext. The prefix rsb is always declared, for entries rendered earlier.
//
// With the dialect DialectSocket it writes a notification without rs:md at the root.
//
// It refuses: no capability; at or completed on change documents, from or until on resource
// documents, and the lack of a mandatory at or from; at after completed, from after until; an index
// of manifests or notifications; a link without rel or href.
func NewWriter(w io.Writer, h Head) (*Writer, error) {
	if err := checkHead(&h); err != nil {
		return nil, fmt.Errorf("resourcesync: writing a document: %w", err)
	}
	out := &Writer{w: w, index: h.Index, buf: make([]byte, 0, 4<<10)}
	b := append(out.buf, xmlHead...)
	if h.Index {
		b = append(b, "<sitemapindex"...)
	} else {
		b = append(b, "<urlset"...)
	}
	b = append(b, namespaces...)
	var err error
	for i := range h.Links {
		b = append(b, "  "...)
		if b, err = appendLink(b, &h.Links[i]); err != nil {
			return nil, fmt.Errorf("resourcesync: writing a %s: root %w", h.Meta.Capability, err)
		}
		b = append(b, '\n')
	}
	out.buf = b
	if h.Dialect == DialectSocket {
		return out, nil
	}
	root := Meta{
		Capability: h.Meta.Capability, At: h.Meta.At, Completed: h.Meta.Completed,
		From: h.Meta.From, Until: h.Meta.Until, Length: -1, Ext: h.Meta.Ext,
	}
	b = append(b, "  "...)
	if b, err = appendMeta(b, &root); err != nil {
		return nil, fmt.Errorf("resourcesync: writing a %s: root %w", h.Meta.Capability, err)
	}
	out.buf = append(b, '\n')
	return out, nil
}

// checkHead holds a root against the rules 6, 16, 19 to 21, 25 and 26.
func checkHead(h *Head) error {
	m := &h.Meta
	c := m.Capability
	switch {
	case h.Dialect == DialectSocket && !c.Notification():
		return fmt.Errorf("a %s is no notification", c)
	case c == "":
		return errors.New("the root has no capability")
	case h.Index && (c.Manifest() || c.Notification()):
		return fmt.Errorf("a %s is a urlset, it has no index form", c)
	case c.Snapshot() && m.At.IsZero():
		return fmt.Errorf("a %s needs the attribute at on its root", c)
	case c.Changes() && m.From.IsZero():
		return fmt.Errorf("a %s needs the attribute from on its root", c)
	case c == ChangeNotification && (m.From.IsZero() || m.Until.IsZero()):
		return fmt.Errorf("a %s needs the attributes from and until on its root", c)
	case c.Changes() && !(m.At.IsZero() && m.Completed.IsZero()):
		return fmt.Errorf("a %s has from and until on its root, not at and completed", c)
	case c.Snapshot() && !(m.From.IsZero() && m.Until.IsZero()):
		return fmt.Errorf("a %s has at and completed on its root, not from and until", c)
	case !m.Completed.IsZero() && m.Completed.Before(m.At):
		return fmt.Errorf("completed %s is before at %s", FormatTime(m.Completed), FormatTime(m.At))
	case !m.Until.IsZero() && m.Until.Before(m.From):
		return fmt.Errorf("until %s is before from %s", FormatTime(m.Until), FormatTime(m.From))
	}
	return nil
}

// Write appends an entry: a url, or in an index a sitemap. A refused entry (see AppendEntry) leaves
// the document as it was.
func (w *Writer) Write(e *Entry) error {
	if w.err != nil {
		return w.err
	}
	b, err := appendEntry(w.buf, e, w.index)
	if err != nil {
		return err
	}
	w.buf = b
	w.count++
	return w.flush(writerFlush)
}

// WriteRaw appends n entries made by AppendEntry. The bytes are
// not looked at.
func (w *Writer) WriteRaw(entries []byte, n int) error {
	if w.err != nil {
		return w.err
	}
	w.count += n
	if len(w.buf)+len(entries) <= cap(w.buf) {
		w.buf = append(w.buf, entries...)
		return w.flush(writerFlush)
	}
	if err := w.flush(0); err != nil {
		return err
	}
	return w.put(entries)
}

// Close ends the document. It does not close the io.Writer. Without Close the
// document is not well-formed. Closing again does nothing.
func (w *Writer) Close() error {
	if w.err != nil {
		if w.err == errClosed {
			return nil
		}
		return w.err
	}
	end := "</urlset>\n"
	if w.index {
		end = "</sitemapindex>\n"
	}
	w.buf = append(w.buf, end...)
	if err := w.flush(0); err != nil {
		return err
	}
	w.err = errClosed
	return nil
}

// Count gives the number of entries so far.
func (w *Writer) Count() int { return w.count }

// Size gives the number of bytes so far, those still held included.
func (w *Writer) Size() int64 { return w.bytes + int64(len(w.buf)) }

var errClosed = errors.New("resourcesync: writing to a document that is closed")

func (w *Writer) flush(above int) error {
	if len(w.buf) <= above {
		return nil
	}
	err := w.put(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *Writer) put(b []byte) error {
	n, err := w.w.Write(b)
	w.bytes += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("resourcesync: writing a document: %w", err)
	}
	return w.err
}
