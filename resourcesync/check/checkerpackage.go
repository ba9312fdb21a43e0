package check

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file checks packages: rules 70, 73 to 75, 78, 79, 81, 124.

// walkDump goes through the packages of a dump.
func (c *Checker) walkDump(ctx context.Context, d *seen) error {
	if c.o.SkipPackages {
		return nil
	}
	for i := range d.entries {
		if err := c.dumpEntry(ctx, d, &d.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// dumpEntry fetches and checks one package. Its error is of ctx, or of the
// disk.
func (c *Checker) dumpEntry(ctx context.Context, d *seen, e *seenEntry) error {
	if typ := resourcesync.NormalizeType(e.meta.Type); typ != "" && typ != "application/zip" {
		c.cover.lost()
		return nil // rule 72 has told
	}
	if c.o.Progress != nil {
		c.o.Progress(e.loc)
	}
	got, err := c.o.Fetch(ctx, e.loc)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && got.Status != 200 {
		got.Body.Close()
		err = fmt.Errorf("status %d", got.Status)
	}
	if err != nil {
		c.cover.lost()
		c.find(d, 74, SeverityError, e.line, "the package %s cannot be fetched: %v", clip(e.loc), err)
		return nil
	}
	defer got.Body.Close()
	f, err := os.CreateTemp(c.o.TempDir, "package-*.zip")
	if err != nil {
		return fmt.Errorf("resourcesync: keeping the package %s: %w", clip(e.loc), err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sums := newDigests()
	size, err := io.Copy(io.MultiWriter(f, sums), got.Body)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.find(d, 74, SeverityError, e.line, "the package %s cannot be fetched: %v", clip(e.loc), err)
		return nil
	}
	c.promises(d, 81, SeverityWarning, e.line, "the package "+clip(e.loc), &e.meta.Hash, e.meta.Length, sums)
	return c.packageFile(ctx, d, e, f, size)
}

func (c *Checker) packageFile(ctx context.Context, d *seen, e *seenEntry, f io.ReaderAt, size int64) error {
	o := c.o.Package
	o.Reader.BaseURL = e.loc
	p, err := resourcesync.OpenPackage(f, size, o)
	if err != nil {
		c.cover.lost()
		c.find(d, 74, SeverityError, e.line, "%s", messageOf(err))
		return nil
	}
	body, err := p.Open(resourcesync.ManifestName)
	if err != nil {
		c.find(d, 74, SeverityError, e.line, "%s", messageOf(err))
		return nil
	}
	m := &seen{location: e.loc + "!/" + resourcesync.ManifestName, context: c.context()}
	c.docs[m.location] = m
	m.archived = true // no Capability List lists it
	c.validate(m, body, e.loc, "")
	body.Close()
	if m.problem != "" {
		return ctx.Err()
	}
	if want := d.head.Meta.Capability + "-manifest"; m.head.Meta.Capability != want {
		c.find(m, 75, SeverityError, 0, "the capability is %q, want %s", clip(string(m.head.Meta.Capability)), want)
	}
	if err := c.members(ctx, p, m); err != nil {
		return err
	}
	if e.contents != "" {
		return c.contents(ctx, d, e, p)
	}
	return nil
}

// members holds the manifest against the package: rules 70, 78, 79, 124.
func (c *Checker) members(ctx context.Context, p *resourcesync.Package, m *seen) error {
	r, closer, err := p.Manifest()
	if err != nil {
		c.find(m, 74, SeverityError, 0, "%s", messageOf(err))
		return nil
	}
	defer closer.Close()
	for _, fault := range p.Faults() {
		c.find(m, 74, SeverityError, 0, "%s", fault)
	}
	used := map[string]bool{p.Member(resourcesync.ManifestName): true}
	var e resourcesync.Entry
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.NextInto(&e); err == io.EOF {
			break
		} else if err != nil {
			c.find(m, 74, SeverityError, 0, "%s", messageOf(err))
			return nil
		}
		if e.Meta.Path != "" {
			if body, err := p.Open(e.Meta.Path); err == nil { // a failure is told with the promises
				c.resourceBody(m, e.Line, &e, "", body).Close()
			}
			c.member(p, m, e.Line, e.Meta.Path, e.Loc, e.Meta.Type, &e.Meta.Hash, e.Meta.Length, used)
		}
		for i := range e.Links {
			if l := &e.Links[i]; l.Path != "" {
				c.member(p, m, e.Line, l.Path, l.Href, l.Type, &l.Hash, l.Length, used)
			}
		}
	}
	for _, name := range p.Names() {
		if !used[name] {
			c.find(m, 79, SeverityWarning, 0, "%q is in the package, but not in its manifest", clip(name))
		}
	}
	return nil
}

func (c *Checker) member(p *resourcesync.Package, m *seen, line int, path, loc, typ string, h *resourcesync.Hashes, length int64, used map[string]bool) {
	body, err := p.Open(path)
	if err != nil {
		c.find(m, 78, SeverityError, line, "%s", messageOf(err))
		return
	}
	defer body.Close()
	used[p.Member(path)] = true
	sums := newDigests()
	if err := c.readBody(m, line, loc, promise{hash: h, length: length, typ: typ}, "", body, sums); err != nil {
		c.find(m, 78, SeverityError, line, "%s", messageOf(err))
		return
	}
	c.promises(m, 78, SeverityError, line, fmt.Sprintf("%q", clip(path)), h, length, sums)
}

// contents is rule 73.
func (c *Checker) contents(ctx context.Context, d *seen, e *seenEntry, p *resourcesync.Package) error {
	got, err := c.o.Fetch(ctx, e.contents)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && got.Status != 200 {
		got.Body.Close()
		err = fmt.Errorf("status %d", got.Status)
	}
	if err != nil {
		c.find(d, 73, SeverityError, e.line, "the contents link %s cannot be fetched: %v", clip(e.contents), err)
		return nil
	}
	defer got.Body.Close()
	inside, err := p.Open(resourcesync.ManifestName)
	if err != nil {
		return nil // told by rule 74
	}
	defer inside.Close()
	if difference := compareDocuments(got.document(), inside, e.loc); difference != "" {
		c.find(d, 73, SeverityError, e.line, "the manifest at %s is not the one in %s: %s", clip(e.contents), clip(e.loc), difference)
	}
	return ctx.Err()
}

// compareDocuments says how two documents differ, "" if they do not.
func compareDocuments(a, b io.Reader, base string) string {
	ra, err := resourcesync.NewReader(a, resourcesync.ReaderOptions{BaseURL: base})
	if err != nil {
		return messageOf(err)
	}
	rb, err := resourcesync.NewReader(b, resourcesync.ReaderOptions{BaseURL: base})
	if err != nil {
		return messageOf(err)
	}
	var ea, eb resourcesync.Entry
	var ba, bb []byte
	for n := 1; ; n++ {
		erra, errb := ra.NextInto(&ea), rb.NextInto(&eb)
		switch {
		case erra == io.EOF && errb == io.EOF:
			if headKey(ra.Head()) != headKey(rb.Head()) {
				return "their roots differ"
			}
			return ""
		case erra == io.EOF || errb == io.EOF:
			return fmt.Sprintf("one has %d entries, the other more", n-1)
		case erra != nil:
			return messageOf(erra)
		case errb != nil:
			return messageOf(errb)
		}
		ba, bb = digestEntry(ba[:0], &ea), digestEntry(bb[:0], &eb)
		if !bytes.Equal(ba, bb) {
			return fmt.Sprintf("entry %d (%s) differs", n, clip(ea.Loc))
		}
	}
}

func headKey(h *resourcesync.Head) string {
	m := h.Meta
	b := digestEntry(nil, &resourcesync.Entry{Loc: "urn:root", HasMeta: true, Links: h.Links, Meta: resourcesync.Meta{
		Capability: m.Capability, At: m.At, Completed: m.Completed, From: m.From, Until: m.Until, Length: -1, Ext: m.Ext}})
	return fmt.Sprint(h.Index, string(b))
}

// digests computes the three known digests at once.
type digests struct {
	md5, sha1, sha256 hash.Hash
	size              int64
}

func newDigests() *digests { return &digests{md5: md5.New(), sha1: sha1.New(), sha256: sha256.New()} }

func (d *digests) Write(b []byte) (int, error) {
	d.md5.Write(b)
	d.sha1.Write(b)
	d.sha256.Write(b)
	d.size += int64(len(b))
	return len(b), nil
}

// prove tells whether some promised hash is that of the bytes, and none is another.
func (d *digests) prove(h *resourcesync.Hashes) bool {
	some := false
	for promised, sum := range map[*string]hash.Hash{&h.MD5: d.md5, &h.SHA1: d.sha1, &h.SHA256: d.sha256} {
		if *promised != "" && *promised != hex.EncodeToString(sum.Sum(nil)) {
			return false
		}
		some = some || *promised != ""
	}
	return some
}

// promises holds length and hashes against the bytes.
func (c *Checker) promises(d *seen, rule int, severity string, line int, what string, h *resourcesync.Hashes, length int64, sums *digests) {
	if length >= 0 && length != sums.size {
		c.find(d, rule, severity, line, "%s has %d bytes, promised were %d", what, sums.size, length)
	}
	for _, x := range []struct {
		name, promised string
		sum            hash.Hash
	}{{"md5", h.MD5, sums.md5}, {"sha-1", h.SHA1, sums.sha1}, {"sha-256", h.SHA256, sums.sha256}} {
		if x.promised == "" {
			continue
		}
		if got := hex.EncodeToString(x.sum.Sum(nil)); got != x.promised {
			c.find(d, rule, severity, line, "%s has the %s %s, promised was %s", what, x.name, got, x.promised)
		}
	}
}

// messageOf is the message of an error without the place.
func messageOf(err error) string {
	if de, ok := err.(*resourcesync.DocumentError); ok {
		if de.Line > 0 {
			return fmt.Sprintf("%s (line %d)", de.Message, de.Line)
		}
		return de.Message
	}
	return err.Error()
}
