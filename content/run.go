package content

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Report is the state of a set's files, and the result of a run.
type Report struct {
	Led       int64     `json:"led"`       // files linked from descriptions
	Resources int64     `json:"resources"` // the listed ones among them: present at their last look
	Elsewhere int64     `json:"elsewhere"` // on hosts outside content.allow: linked, never fetched
	Missing   int64     `json:"missing"`   // are not there (404, 410)
	Failing   int64     `json:"failing"`   // their last look failed; the record of the look before stands
	Waiting   int64     `json:"waiting"`   // due, left for the next runs
	Looked    int64     `json:"looked"`    // in this run
	Created   int64     `json:"created"`
	Updated   int64     `json:"updated"`
	Deleted   int64     `json:"deleted"`
	Held      *Held     `json:"held,omitempty"`
	Troubles  []Trouble `json:"troubles,omitempty"` // some of the missing, failing and elsewhere
	Time      time.Time `json:"time"`
}

// Held are missing files, too many at once to delete them unasked. ID is another one for other
// files.
type Held struct {
	ID        string    `json:"id"`
	Reason    string    `json:"reason"`
	Deletions int64     `json:"deletions"`
	Of        int64     `json:"of"`   // listed files
	Time      time.Time `json:"time"` // since when
}

// Trouble names a file and its problem.
type Trouble struct {
	URL   string     `json:"url"`
	Error string     `json:"error"`
	Since *time.Time `json:"since,omitempty"`
}

// look is the record of the last look at a file, as JSON.
type look struct {
	Version  int       `json:"version"`
	At       time.Time `json:"at"`
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"modified,omitempty"` // Last-Modified as it came
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"` // why it failed
	Fails    int       `json:"fails,omitempty"`
	Misses   int       `json:"misses,omitempty"` // looks in a row without the file
	Since    time.Time `json:"since,omitzero"`   // since when it fails or is missing
	NoHash   bool      `json:"no_hash,omitempty"`
}

const lookVersion = 1

// alwaysAllowed is how many missing files are never too many, unless they are all.
const alwaysAllowed = 10

var (
	lookPrefix = []byte("k") // + file key -> look
	reportKey  = []byte("S") // Report of the last run
)

func lookKey(url string) []byte {
	k := changetrack.FileKey(url)
	return append(bytes.Clone(lookPrefix), k[:]...)
}

func readLook(b []byte) (l look, err error) {
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("record of a file that was looked at: %w", err)
	}
	if l.Version > lookVersion {
		return l, fmt.Errorf("record of a file that was looked at has version %d: %w", l.Version, kv.ErrNewer)
	}
	return l, nil
}

// Link finds the files linked from each description, and removes files without a link from the log.
// It makes no requests. Call it before publishing the log.
func (f *Follower) Link(ctx context.Context) (changetrack.FileChanges, error) {
	if err := f.log.LinkFiles(ctx, changetrack.LinkOptions{Properties: f.properties(), Files: f.addresses}); err != nil {
		return changetrack.FileChanges{}, err
	}
	return f.log.DropFiles(ctx)
}

// Status is the report of the last run, nil when there was none.
func (f *Follower) Status(ctx context.Context) (*Report, error) {
	b, err := f.store.Get(ctx, reportKey)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	rep := new(Report)
	if err == nil {
		err = json.Unmarshal(b, rep)
	}
	if err != nil {
		return nil, fmt.Errorf("report of the files of %s: %w", f.log.Set(), err)
	}
	return rep, nil
}

// Gone yields the listed files of view missing at their last look, in the order of
// changetrack.FileKey, after the given one; nil starts at the beginning.
func (f *Follower) Gone(ctx context.Context, view *changetrack.View, after *rdfres.Digest) iter.Seq2[changetrack.FileState, error] {
	return func(yield func(changetrack.FileState, error) bool) {
		var from rdfres.Digest
		if after != nil {
			from = *after
		}
		for st, err := range view.CurrentFiles(ctx, from, rdfres.Digest{}) {
			var l look
			if err == nil {
				if after != nil && changetrack.FileKey(st.URL) == from || !f.allowed(st.URL) {
					continue
				}
				var b []byte
				if b, err = f.store.Get(ctx, lookKey(st.URL)); errors.Is(err, kv.ErrNotFound) {
					continue
				}
				if err == nil {
					l, err = readLook(b)
				}
			}
			if (err != nil || l.gone()) && !yield(st, err) || err != nil {
				return
			}
		}
	}
}

// Look tells of the last look at one file: its time, and the problem found, "" if none.
func (f *Follower) Look(ctx context.Context, url string) (at time.Time, trouble string, err error) {
	if !f.allowed(url) {
		return at, elsewhere, nil
	}
	b, err := f.store.Get(ctx, lookKey(url))
	if errors.Is(err, kv.ErrNotFound) {
		return at, "it was not looked at yet", nil
	}
	if err != nil {
		return at, "", err
	}
	l, err := readLook(b)
	return l.At, l.trouble(), err
}

const elsewhere = "its host is not one of content.allow: it is linked, and never asked for"

// gone tells whether the file was surely not there at the last look.
func (l *look) gone() bool {
	return l.Fails == 0 && (l.Misses > 1 || l.Misses > 0 && l.Status == http.StatusGone)
}

func (l *look) trouble() string {
	switch {
	case l.Fails > 0:
		return l.Error
	case l.Misses > 0:
		return fmt.Sprintf("it is not there: status %d", l.Status)
	}
	return ""
}

// Run looks at the due files, those with the longest wait first, and records the changes. accept is
// the id of held files: those of them still missing go. With another id held it allows nothing. An
// error or the end of ctx leaves consistent records.
func (f *Follower) Run(ctx context.Context, accept string) (Report, error) {
	r := &run{f: f, ctx: ctx, id: accept, now: f.o.Now().UTC().Truncate(time.Microsecond)}
	if err := r.run(ctx); err != nil {
		return r.rep, fmt.Errorf("files of set %s: %w", f.log.Set(), err)
	}
	return r.rep, nil
}

type run struct {
	f      *Follower
	ctx    context.Context
	id     string // of the held files to let go
	accept bool   // they are held still
	now    time.Time
	rep    Report

	group    []outcome
	gone     []outcome       // would be deleted
	heldBack []rdfres.Digest // would be, and were not looked at in this run
}

// candidate is a file due for a look.
type candidate struct {
	url     string
	current *changetrack.FileVersion
	look    look
	missing bool // it is listed, and was gone at its last look
}

// outcome is the result of a look.
type outcome struct {
	candidate
	found   *changetrack.FileVersion // nil: unchanged, missing or failed
	changed bool
	gone    bool // surely not there
	skipped bool // not looked at after all
}

func (r *run) run(ctx context.Context) error {
	f := r.f
	before, err := f.Status(ctx)
	if err != nil {
		return err
	}
	r.accept = before != nil && before.Held != nil && r.id != "" && before.Held.ID == r.id
	view := f.log.View(ctx)
	files, err := view.Files(ctx)
	var due []candidate
	if err == nil {
		due, err = r.plan(ctx, view)
	}
	view.Close()
	if err == nil {
		err = r.lookAt(due)
	}
	if err == nil {
		err = r.record(ctx)
	}
	if err == nil {
		err = r.recordGone(ctx, files, before)
	}
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // what was found is in the log: the report goes with it
	view = f.log.View(ctx)
	defer view.Close()
	if r.rep.Resources, err = view.Files(ctx); err != nil {
		return err
	}
	r.rep.Time = r.now
	data, err := json.Marshal(r.rep)
	if err != nil {
		return err
	}
	b := f.store.Batch()
	defer b.Close()
	b.Set(reportKey, data)
	return b.Commit(ctx, false)
}

// oldest keeps the candidates with the longest wait; the shortest of them is on top.
type oldest []candidate

func (h oldest) Len() int           { return len(h) }
func (h oldest) Less(i, j int) bool { return h[i].look.At.After(h[j].look.At) }
func (h oldest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *oldest) Push(x any)        { *h = append(*h, x.(candidate)) }
func (h *oldest) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// plan merges the files with their looks. It counts, forgets looks at unlinked files, and chooses
// the candidates.
func (r *run) plan(ctx context.Context, view *changetrack.View) ([]candidate, error) {
	f := r.f
	next, stop := iter.Pull2(f.store.Scan(ctx, lookPrefix, kv.PrefixEnd(lookPrefix)))
	defer stop()
	b := f.store.Batch()
	defer b.Close()
	pair, err, ok := next()
	var chosen oldest
	for st, ferr := range view.LedFiles(ctx) {
		if err = errors.Join(err, ferr, r.ctx.Err()); err != nil {
			return nil, err
		}
		r.rep.Led++
		key := lookKey(st.URL)
		for ok && err == nil && bytes.Compare(pair.Key, key) < 0 {
			b.Delete(pair.Key)
			pair, err, ok = next()
		}
		c := candidate{url: st.URL, current: st.Current}
		if ok && err == nil && bytes.Equal(pair.Key, key) {
			if c.look, err = readLook(pair.Value); err == nil {
				pair, err, ok = next()
			}
		}
		if err != nil {
			return nil, err
		}
		c.missing = c.current != nil && c.look.gone()
		if !f.allowed(st.URL) {
			r.rep.Elsewhere++
			r.trouble(st.URL, elsewhere, time.Time{})
			continue
		}
		if !r.due(&c) {
			r.leave(&c)
			continue
		}
		heap.Push(&chosen, c)
		if len(chosen) > f.cfg.PerRun {
			left := heap.Pop(&chosen).(candidate)
			r.rep.Waiting++
			if r.accept && left.missing { // its last look is enough
				r.gone = append(r.gone, outcome{candidate: left, gone: true})
				r.count(&left)
				continue
			}
			r.leave(&left)
		}
	}
	for ok && err == nil {
		b.Delete(pair.Key)
		pair, err, ok = next()
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(chosen, func(a, b candidate) int { return a.look.At.Compare(b.look.At) })
	return chosen, b.Commit(ctx, false)
}

func (r *run) due(c *candidate) bool {
	l := &c.look
	if l.At.IsZero() {
		return true
	}
	wait := r.f.cfg.Every
	switch {
	case r.accept && l.Misses > 0 && c.current != nil:
		return true
	case l.Fails > 0:
		wait = min(wait, retryFirst<<min(l.Fails-1, 12))
	case l.Misses == 1 && c.current != nil:
		wait = min(wait, secondLook)
	}
	return !r.now.Before(l.At.Add(wait)) || r.now.Before(l.At) // the clock was set back
}

// leave counts a file skipped by this run.
func (r *run) leave(c *candidate) {
	if c.missing {
		r.heldBack = append(r.heldBack, changetrack.FileKey(c.url))
	}
	r.count(c)
}

// count tells how a file stands.
func (r *run) count(c *candidate) {
	switch l := &c.look; {
	case l.Fails > 0:
		r.rep.Failing++
		r.trouble(c.url, l.trouble(), l.Since)
	case l.Misses > 0:
		r.rep.Missing++
		r.trouble(c.url, l.trouble(), l.Since)
	}
}

func (r *run) trouble(url, what string, since time.Time) {
	if len(r.rep.Troubles) < namedFiles {
		t := Trouble{URL: url, Error: what}
		if !since.IsZero() {
			t.Since = &since
		}
		r.rep.Troubles = append(r.rep.Troubles, t)
	}
}

// lookAt asks for every file, some at once.
func (r *run) lookAt(due []candidate) error {
	if len(due) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	p := r.f.prober(r.now)
	work, done := make(chan candidate), make(chan outcome)
	var workers sync.WaitGroup
	for range min(r.f.cfg.Concurrency, len(due)) {
		workers.Go(func() {
			for c := range work {
				o := p.look(ctx, c)
				select {
				case done <- o:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() {
		defer close(done)
		defer workers.Wait()
		defer close(work)
		for _, c := range due {
			select {
			case work <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	n := int64(0)
	var failed error
	for o := range done {
		if failed != nil {
			continue
		}
		n++
		r.f.o.Progress(n, int64(len(due)))
		if failed = r.take(ctx, o); failed != nil {
			cancel()
		}
	}
	return errors.Join(failed, r.ctx.Err())
}

func (r *run) take(ctx context.Context, o outcome) error {
	if o.skipped {
		r.rep.Waiting++
		r.leave(&o.candidate)
		return nil
	}
	r.rep.Looked++
	r.count(&o.candidate)
	if o.gone && o.current != nil {
		r.gone = append(r.gone, o)
		return nil
	}
	if r.group = append(r.group, o); len(r.group) >= groupSize {
		return r.record(ctx)
	}
	return nil
}

// record brings a group into the log, and then the looks.
func (r *run) record(ctx context.Context) error {
	n, err := r.put(ctx, r.group)
	r.group = r.group[:0]
	r.rep.Created += n.Created
	r.rep.Updated += n.Updated
	r.rep.Deleted += n.Deleted
	return err
}

func (r *run) put(ctx context.Context, group []outcome) (n changetrack.FileChanges, err error) {
	if len(group) == 0 {
		return n, nil
	}
	var found []changetrack.FileFound
	for i := range group {
		switch o := &group[i]; {
		case o.gone:
			found = append(found, changetrack.FileFound{URL: o.url, Gone: true})
		case o.found != nil:
			found = append(found, changetrack.FileFound{URL: o.url, Changed: o.changed, Version: *o.found})
		}
	}
	if len(found) > 0 {
		if n, err = r.f.log.RecordFiles(r.ctx, found); err != nil {
			return n, err
		}
	}
	return n, r.keep(context.WithoutCancel(ctx), group) // the log has it
}

// keep writes the looks.
func (r *run) keep(ctx context.Context, group []outcome) error {
	b := r.f.store.Batch()
	defer b.Close()
	for i := range group {
		group[i].look.Version = lookVersion
		data, err := json.Marshal(group[i].look)
		if err != nil {
			return err
		}
		b.Set(lookKey(group[i].url), data)
	}
	return b.Commit(ctx, false)
}

// recordGone deletes missing files, unless they are too many at once: a server with lost or moved
// files answers 404 for all of them. Accepted ones do not count.
func (r *run) recordGone(ctx context.Context, files int64, before *Report) error {
	var goes, others []outcome
	for _, o := range r.gone {
		if r.accept && o.missing {
			goes = append(goes, o)
		} else {
			others = append(others, o)
		}
	}
	files -= int64(len(goes))
	if why := r.tooMany(int64(len(others)+len(r.heldBack)), files); why != "" {
		keys := slices.Clone(r.heldBack)
		for _, o := range others {
			keys = append(keys, changetrack.FileKey(o.url))
		}
		r.rep.Held = &Held{ID: idOf(keys), Deletions: int64(len(keys)), Of: files, Time: r.now, Reason: why}
		if before != nil && before.Held != nil && !r.accept {
			r.rep.Held.Time = before.Held.Time
		}
		r.f.o.Logger.Warn("files that are gone are held", "reason", why)
		if err := r.keep(ctx, others); err != nil {
			return err
		}
		others = nil
	}
	for group := range slices.Chunk(append(goes, others...), groupSize) {
		r.group = append(r.group, group...)
		if err := r.record(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tooMany tells why n missing files of so many wait for a person, "" if they do not.
func (r *run) tooMany(n, files int64) string {
	ratio := r.f.cfg.MaxDeleteRatio
	limit := max(int64(ratio*float64(files)), alwaysAllowed)
	switch {
	case n == 0 || ratio < 0 || n <= limit && n < files:
		return ""
	case n == files && n == 1:
		return "the only file is not there any more"
	case n == files:
		return fmt.Sprintf("none of the %d files is there any more", n)
	}
	return fmt.Sprintf("%d of %d files are not there any more; %d at once are allowed (max_delete_ratio %g)", n, files, limit, ratio)
}

// idOf names a set of files.
func idOf(keys []rdfres.Digest) string {
	slices.SortFunc(keys, func(a, b rdfres.Digest) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for _, k := range keys {
		h.Write(k[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// weak compares entity tags as conditional requests do.
func weak(a, b string) bool { return strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/") }
