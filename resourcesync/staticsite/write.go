package staticsite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Options of Write; all but Progress are needed.
type Options struct {
	Set       string            // its name: the first folder of its addresses
	BaseURL   string            // of the addresses of the documents
	Transport http.RoundTripper // answers below BaseURL
	Dir       string            // made when it is not there
	Progress  func(stage string, done, total int64)
}

// Report tells the work of Write. Each file counts once, however many lists name it:
// Written and Unchanged together are Documents and Resources.
type Report struct {
	Set       string  `json:"set"`
	Dir       string  `json:"dir"`
	Documents int64   `json:"documents"`
	Resources int64   `json:"resources"` // representations, packages, and files linked from entries
	Packages  int64   `json:"packages"`
	Written   int64   `json:"written"` // new or changed files
	Unchanged int64   `json:"unchanged"`
	Removed   int64   `json:"removed"`
	Bytes     int64   `json:"bytes"` // written
	Seconds   float64 `json:"seconds"`
}

// ErrMoved reports a resource that differs from its list: most often the source has published since, so the
// documents are read again.
var ErrMoved = errors.New("the source has changed while it was exported")

// tries is how often a source is begun again after changes meanwhile.
const tries = 3

// stagePrefix begins the name of a set's folder for documents, until everything else is there.
const stagePrefix = ".rsbridge-export-"

// sharedFiles describe all sets. They stand outside the folder of a set.
var sharedFiles = []string{"about", "about.ttl"}

// capabilityList is written last.
const capabilityList = "capabilitylist.xml"

type site struct {
	o      Options
	base   *url.URL
	client *http.Client
	stage  string
	rep    *Report
	done   int64           // files looked at; those in several lists, several times
	read   map[string]bool // documents, by address
	waits  int             // left for the index of names
}

// Write makes Dir the static site of a set. It may run while the source publishes. Files of other
// sets in the same folder stay. Files of somebody else in the place of a first export are refused.
func Write(ctx context.Context, o Options) (*Report, error) {
	base, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", o.Set, err)
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	began := time.Now()
	for try := 1; ; try++ {
		s := &site{o: o, base: base, client: &http.Client{Transport: o.Transport}, stage: filepath.Join(o.Dir, stagePrefix+o.Set),
			rep: &Report{Set: o.Set, Dir: o.Dir}, read: map[string]bool{}, waits: mostWaits}
		err := s.write(ctx)
		if err == nil {
			s.rep.Seconds = time.Since(began).Seconds()
			return s.rep, nil
		}
		if !errors.Is(err, ErrMoved) || try == tries {
			return s.rep, fmt.Errorf("export %s to %s: %w", o.Set, o.Dir, err)
		}
	}
}

func (s *site) write(ctx context.Context) (err error) {
	if st, err := os.Stat(s.o.Dir); err == nil && !st.IsDir() {
		return errors.New("there is a file of that name; a folder is wanted")
	}
	if err := s.sparesOthers(); err != nil {
		return err
	}
	if err := s.emptyStage(); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(s.stage)
		} else { // an empty one tells the next run of this one
			err = errors.Join(err, s.emptyStage())
		}
	}()
	root := s.base.String()
	if err := s.document(ctx, root+"/"+s.o.Set+"/"+capabilityList); err != nil {
		return err
	}
	for _, name := range []string{"/" + s.o.Set + "/about", "/" + s.o.Set + "/about.ttl", "/" + s.o.Set + "/about.jsonld", "/" + s.o.Set + "/about.nt", "/" + s.o.Set + "/about.rdf", "/" + s.o.Set + "/about.html"} {
		if err := s.resource(ctx, root+name, nil, false); err != nil {
			return err
		}
	}
	for _, name := range sharedFiles {
		found, err := s.fetch(ctx, root+"/"+name, nil)
		if err != nil {
			return err
		}
		if found {
			s.rep.Resources++
		}
	}
	if err := s.alphabet(ctx); err != nil {
		return err
	}
	if err := s.publish(); err != nil {
		return err
	}
	sets, err := s.description(ctx, root+"/.well-known/resourcesync")
	if err != nil {
		return err
	}
	if err := s.start(ctx, sets); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	s.rep.Unchanged = max(0, s.rep.Documents+s.rep.Resources-s.rep.Written)
	return nil
}

// file is the name of the file for an address below the base URL.
func (s *site) file(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	rest, below := strings.CutPrefix(u.Path, s.base.Path+"/")
	if !below || u.Scheme != s.base.Scheme || u.Host != s.base.Host || u.RawQuery != "" {
		return "", fmt.Errorf("%s is not below %s", address, s.base)
	}
	if rest == "" || path.Clean(rest) != rest || !filepath.IsLocal(filepath.FromSlash(rest)) {
		return "", fmt.Errorf("%s cannot be a file", address)
	}
	return filepath.FromSlash(rest), nil
}

func (s *site) get(ctx context.Context, address string) (*http.Response, error) {
	return s.ask(ctx, http.MethodGet, address)
}

// ask sends a request; a nil response stands for 404.
func (s *site) ask(ctx context.Context, method, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Prefer", "static") // descriptions without services of a program
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	switch res.StatusCode {
	case http.StatusOK:
		return res, nil
	case http.StatusNotFound, http.StatusGone:
		res.Body.Close()
		return nil, nil
	}
	res.Body.Close()
	return nil, fmt.Errorf("%s answers %s", address, res.Status)
}

// document stages a document, rewritten for files, and writes the files it leads to.
func (s *site) document(ctx context.Context, address string) error {
	if s.read[address] {
		return nil
	}
	s.read[address] = true
	name, err := s.file(address)
	if err != nil {
		return err
	}
	res, err := s.get(ctx, address)
	if err != nil {
		return err
	}
	if res == nil {
		if s.rep.Documents == 0 {
			return fmt.Errorf("%s is not there: the set has published nothing yet; scan it first", address)
		}
		return fmt.Errorf("%s is not there: %w", address, ErrMoved)
	}
	defer res.Body.Close()
	s.rep.Documents++
	r, err := resourcesync.NewReader(res.Body, resourcesync.ReaderOptions{BaseURL: address})
	if err != nil {
		return err
	}
	out, err := create(filepath.Join(s.stage, name))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := s.copyDocument(ctx, r, out, func() (bool, error) { return s.stands(ctx, address, res.Header.Get("ETag")) }); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if err := out.Close(); err != nil {
		return err
	}
	if t, err := http.ParseTime(res.Header.Get("Last-Modified")); err == nil {
		if err := os.Chtimes(out.Name(), t, t); err != nil {
			return err
		}
	}
	return s.tables(ctx, address)
}

// tables writes the pages of a document for people, if the source has any: NAME.html, NAME.2.html, and
// so on.
func (s *site) tables(ctx context.Context, address string) error {
	base, ok := strings.CutSuffix(address, ".xml")
	if !ok || s.read[base+".html"] {
		return nil
	}
	for n := 1; ; n++ {
		page := base + ".html"
		if n > 1 {
			page = fmt.Sprintf("%s.%d.html", base, n)
		}
		found, err := s.fetch(ctx, page, nil)
		if err != nil || !found {
			return err
		}
		s.rep.Resources++
		s.read[page] = true
	}
}

// stands tells whether a document is still as it was read.
func (s *site) stands(ctx context.Context, address, etag string) (bool, error) {
	if etag == "" {
		return false, nil
	}
	res, err := s.ask(ctx, http.MethodHead, address)
	if err != nil || res == nil {
		return false, err
	}
	return res.Header.Get("ETag") == etag, res.Body.Close()
}

func (s *site) copyDocument(ctx context.Context, r *resourcesync.Reader, out io.Writer, stands func() (bool, error)) error {
	h := *r.Head()
	w, err := resourcesync.NewWriter(out, h)
	if err != nil {
		return err
	}
	k := h.Meta.Capability
	packages := !h.Index && (k == resourcesync.ResourceDump || k == resourcesync.ChangeDump)
	leads := h.Index || k == resourcesync.CapabilityList || k.Archive()
	var e resourcesync.Entry
	for {
		if err := r.NextInto(&e); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if leads && e.Meta.Capability.Notification() {
			continue // a file server sends no notifications
		}
		if !h.Index && (k == resourcesync.ResourceList || k == resourcesync.ChangeList) {
			if err := s.headerLinks(ctx, &e); err != nil {
				return err
			}
		}
		if err := s.links(ctx, &e); err != nil {
			return err
		}
		if err := w.Write(&e); err != nil {
			return err
		}
		switch {
		case leads:
			err = s.document(ctx, e.Loc)
		case packages:
			err = s.resource(ctx, e.Loc, &e.Meta, true)
		case e.Meta.Change == resourcesync.Deleted:
		case e.Meta.Ext[resourcesync.ExtKind] == resourcesync.KindFile: // it stays where it is
		case k == resourcesync.ResourceList:
			if err = s.resource(ctx, e.Loc, &e.Meta, true); errors.Is(err, ErrMoved) {
				// A list made by schedule, or an archived one, stays as it is when its
				// resources change: as at the source, Change Lists tell later changes.
				if ok, serr := stands(); serr != nil {
					err = serr
				} else if ok {
					err = s.resource(ctx, e.Loc, nil, false)
				}
			}
		default: // a change; later ones may have replaced it
			err = s.resource(ctx, e.Loc, nil, false)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// headerLinks adds to an entry the other formats named in the Link header of its resource: a file
// server sends no such header. RDF/XML is left out, since it is not there for every resource.
func (s *site) headerLinks(ctx context.Context, e *resourcesync.Entry) error {
	if e.Meta.Change == resourcesync.Deleted || !strings.HasPrefix(e.Loc, s.base.String()+"/") {
		return nil
	}
	res, err := s.ask(ctx, http.MethodHead, e.Loc)
	if err != nil || res == nil {
		return err
	}
	for _, l := range resourcesync.TypedHeaderLinks(res.Header.Values("Link"), resourcesync.RelAlternate) {
		there := func(have resourcesync.Link) bool { return have.Rel == l.Rel && have.Href == l.Href }
		if path.Ext(l.Href) != ".rdf" && !slices.ContainsFunc(e.Links, there) {
			e.Links = append(e.Links, l)
		}
	}
	return res.Body.Close()
}

// links drops links to services of a program, and writes the files of the others.
func (s *site) links(ctx context.Context, e *resourcesync.Entry) error {
	kept := e.Links[:0]
	for _, l := range e.Links {
		switch l.Rel {
		case resourcesync.RelMemento, resourcesync.RelTimeGate, resourcesync.RelTimeMap:
			continue
		}
		if strings.HasPrefix(l.Href, s.base.String()+"/") {
			switch _, err := s.file(l.Href); {
			case err != nil || l.Rel == resourcesync.RelCanonical || path.Ext(l.Href) == "" && !strings.HasSuffix(l.Href, "/about"):
				continue // negotiated, even with a dot in the name; or a version
			case l.Rel == resourcesync.RelContents: // the manifest, byte for byte the package's own
				if err := errors.Join(s.resource(ctx, l.Href, nil, true), s.tables(ctx, l.Href)); err != nil {
					return err
				}
			case l.Rel == resourcesync.RelUp, l.Rel == resourcesync.RelIndex, l.Href == e.Loc:
			case strings.HasSuffix(l.Href, "/about"): // written once, at the end
			default:
				if err := s.resource(ctx, l.Href, nil, false); err != nil {
					return err
				}
			}
		}
		kept = append(kept, l)
	}
	e.Links = kept
	return nil
}

// resource writes the file of an address. With must the file has to be there, as meta promises.
func (s *site) resource(ctx context.Context, address string, meta *resourcesync.Meta, must bool) error {
	found, err := s.fetch(ctx, address, meta)
	if err == nil && must && !found {
		return fmt.Errorf("%s is not there: %w", address, ErrMoved)
	}
	return err
}

// fetch writes the file of an address, if the source has it. A file with the promised content is not
// fetched.
func (s *site) fetch(ctx context.Context, address string, meta *resourcesync.Meta) (found bool, err error) {
	h, err := s.fetchFrom(ctx, address, address, meta)
	return h != nil, err
}

// fetchFrom writes the file of an address with what another one answers, and gives the header of the answer: nil if
// there is none, empty if nobody was asked, with Refresh if it is to be asked again.
func (s *site) fetchFrom(ctx context.Context, address, from string, meta *resourcesync.Meta) (http.Header, error) {
	name, err := s.file(address)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.o.Dir, name)
	if meta != nil && meta.Hash.SHA256 != "" {
		if sum, n, err := digest(file); err == nil && sum == meta.Hash.SHA256 && n == meta.Length {
			s.step()
			return http.Header{}, nil
		}
	}
	res, err := s.get(ctx, from)
	if err != nil || res == nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.Header.Get("Refresh") != "" {
		return res.Header, nil // its page is not ready
	}
	body := io.Reader(res.Body)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		if body, err = s.relative(address, res.Body); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
	}
	tmp, err := create(filepath.Join(s.stage, ".part"))
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(tmp, hash), body)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if meta != nil && meta.Hash.SHA256 != "" && sum != meta.Hash.SHA256 {
		return nil, fmt.Errorf("%s has other bytes than its list promises: %w", address, ErrMoved)
	}
	s.step()
	if have, _, err := digest(file); err == nil && have == sum {
		return res.Header, nil
	}
	if t, err := http.ParseTime(res.Header.Get("Last-Modified")); err == nil {
		if err := os.Chtimes(tmp.Name(), t, t); err != nil {
			return nil, err
		}
	}
	s.wrote(n)
	return res.Header, place(tmp.Name(), file)
}

func (s *site) step() {
	s.done++
	s.o.Progress("files", s.done, 0)
}

func (s *site) wrote(n int64) {
	s.rep.Written++
	s.rep.Bytes += n
}

// publish puts the staged documents in place: lists first, then the documents naming them.
func (s *site) publish() error {
	var last string
	err := filepath.WalkDir(s.stage, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".part" {
			return err
		}
		if d.Name() == capabilityList {
			last = p
			return nil
		}
		return s.putDocument(p)
	})
	if err == nil && last != "" {
		err = s.putDocument(last)
	}
	return err
}

func (s *site) putDocument(staged string) error {
	rel, err := filepath.Rel(s.stage, staged)
	if err != nil {
		return err
	}
	file := filepath.Join(s.o.Dir, rel)
	sum, n, err := digest(staged)
	if err != nil {
		return err
	}
	if have, _, err := digest(file); err == nil && have == sum {
		return nil
	}
	s.wrote(n)
	return place(staged, file)
}

// description writes the Source Description, of the sets in the folder: one
// document, also if the source has an index of them. It gives the names of the sets.
func (s *site) description(ctx context.Context, address string) (sets []string, err error) {
	name, err := s.file(address)
	if err != nil {
		return nil, err
	}
	out, err := create(filepath.Join(s.stage, name))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	var w *resourcesync.Writer
	if err := s.exported(ctx, address, func(h resourcesync.Head, e *resourcesync.Entry) (err error) {
		if w == nil {
			h.Index = false
			if w, err = resourcesync.NewWriter(out, h); err != nil {
				return err
			}
		}
		if e == nil {
			return nil
		}
		sets = append(sets, path.Base(path.Dir(e.Loc)))
		return w.Write(e)
	}); err != nil {
		return nil, err
	}
	if err := errors.Join(w.Close(), out.Close()); err != nil {
		return nil, err
	}
	s.rep.Documents++
	return sets, s.putDocument(out.Name())
}

// exported calls f with the head of a Source Description or of an index of them, and then with each
// entry of an exported set.
func (s *site) exported(ctx context.Context, address string, f func(resourcesync.Head, *resourcesync.Entry) error) error {
	res, err := s.get(ctx, address)
	if err != nil {
		return err
	}
	if res == nil {
		return fmt.Errorf("%s is not there", address)
	}
	defer res.Body.Close()
	r, err := resourcesync.NewReader(res.Body, resourcesync.ReaderOptions{BaseURL: address})
	if err == nil {
		err = f(*r.Head(), nil)
	}
	if err != nil {
		return err
	}
	for {
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if r.Head().Index {
			if err := s.exported(ctx, e.Loc, f); err != nil {
				return err
			}
			continue
		}
		list, err := s.file(e.Loc)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(s.o.Dir, list)); err != nil {
			continue // not exported
		}
		if err := f(*r.Head(), e); err != nil {
			return err
		}
	}
}
