package faces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
)

// The faces by their names in the configuration.
const (
	LDES = "ldes" // Linked Data Event Stream
	OAI  = "oai"  // OAI-PMH 2.0
	IIIF = "iiif" // IIIF Change Discovery 1.0
)

// SetConfig configures the faces of a set.
type SetConfig struct {
	Name  string // one segment of a path (naming.CheckSet)
	Title string // for people; default: the name
	Log   *changetrack.Log
	Faces []string // the enabled ones

	// Base gives the present base URL: scheme://host[:port][/path], no trailing slash. It is called
	// at every request.
	Base func(context.Context) string
	// Location gives the address of an entity's description; may be nil.
	Location func(ctx context.Context, entity string) (string, error)
	// Settled gives a time up to which every change is visible: now, or the start of a running
	// scan. nil: now.
	Settled func() time.Time
	// Changes and Versions are how long the log and the superseded versions are
	// kept (changetrack.Log.Retain); 0: for ever.
	Changes, Versions time.Duration
	Email             string // of the person responsible for the repository; default admin@HOST
}

// Options of New.
type Options struct {
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: silent
}

// Faces shows the faces of all sets. Safe for concurrent use.
type Faces struct {
	now  func() time.Time
	log  *slog.Logger
	sets map[string]*set

	closed atomic.Bool
}

// set is one set with faces.
type set struct {
	SetConfig
	f *Faces

	mu       sync.Mutex
	floor    uint64    // guarded by mu; see set.begin
	earliest time.Time // guarded by mu; a lower bound of all datestamps, once it was looked for
}

// New makes the faces of sets; those without a face are passed over.
func New(sets []SetConfig, o Options) (*Faces, error) {
	f := &Faces{now: o.Now, log: o.Logger, sets: map[string]*set{}}
	if f.now == nil {
		f.now = time.Now
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.log = f.log.With("component", "faces")
	for _, c := range sets {
		if len(c.Faces) == 0 {
			continue
		}
		for _, face := range c.Faces {
			if !slices.Contains(Names, face) {
				return nil, fmt.Errorf("faces: the set %s: face %q: want one of %s", c.Name, face, strings.Join(Names, ", "))
			}
		}
		if c.Log == nil || c.Base == nil {
			return nil, fmt.Errorf("faces: the set %s has no log or no base URL", c.Name)
		}
		if f.sets[c.Name] != nil {
			return nil, fmt.Errorf("faces: two sets are named %s", c.Name)
		}
		if c.Title == "" {
			c.Title = c.Name
		}
		if c.Settled == nil {
			c.Settled = f.now
		}
		f.sets[c.Name] = &set{SetConfig: c, f: f}
	}
	return f, nil
}

// Close makes every later request fail with 503. Requests under way go on, so stop the HTTP server
// before closing the store.
func (f *Faces) Close() { f.closed.Store(true) }

// Handler answers below the addresses of the faces, and passes every other
// request on. It routes on the escaped path, below the path of the base URL as
// well as at the root, whichever a proxy in front of it sends.
func (f *Faces) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, shown, rest := f.find(r.Context(), r.URL.EscapedPath())
		if s == nil {
			next.ServeHTTP(w, r)
			return
		}
		f.serve(w, r, s, shown, rest)
	})
}

// find takes a path apart: the set, the face and the rest, "" or beginning with a slash. The set is
// nil if the path is no face's.
func (f *Faces) find(ctx context.Context, path string) (s *set, shown *face, rest string) {
	split := func(path string) (*set, *face, string) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		s := f.sets[name]
		if s == nil {
			return nil, nil, ""
		}
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		for i := range known {
			if k := &known[i]; k.segment == rest[:end] && slices.Contains(s.Faces, k.Name) {
				return s, k, rest[end:]
			}
		}
		return nil, nil, ""
	}
	if s, shown, rest := split(path); s != nil {
		return s, shown, rest
	}
	for _, s := range f.sets {
		if u, err := url.Parse(s.Base(ctx)); err == nil && u.Path != "" {
			if below, ok := strings.CutPrefix(path, u.EscapedPath()+"/"+s.Name+"/"); ok {
				return split("/" + s.Name + "/" + below)
			}
		}
	}
	return nil, nil, ""
}

func (f *Faces) serve(w http.ResponseWriter, r *http.Request, s *set, shown *face, rest string) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
	allow := "GET, HEAD, OPTIONS"
	if shown.posts {
		allow = "GET, HEAD, POST, OPTIONS"
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		h.Set("Allow", allow)
		h.Set("Access-Control-Allow-Methods", allow)
		h.Set("Access-Control-Allow-Headers", "Accept, Content-Type, If-None-Match")
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		if r.Method != http.MethodPost || !shown.posts {
			h.Set("Allow", allow)
			f.fail(w, r, &statusError{code: http.StatusMethodNotAllowed, reason: "This address can only be read."})
			return
		}
	}
	if f.closed.Load() {
		f.fail(w, r, &statusError{code: http.StatusServiceUnavailable, reason: "The source is being closed."})
		return
	}
	q := &request{set: s, w: w, r: r, settled: s.Settled(), base: s.Base(r.Context()) + "/" + s.Name}
	q.view = s.Log.View(r.Context())
	defer q.view.Close()
	defer func() {
		if q.stop != nil {
			q.stop()
		}
	}()
	err := q.view.Err()
	if err == nil {
		err = shown.answer(q, r.Context(), rest)
	}
	if err != nil {
		f.fail(w, r, err)
	}
}

// request is one request to a face of a set, answered from one view of its log.
type request struct {
	*set
	w       http.ResponseWriter
	r       *http.Request
	view    *changetrack.View
	settled time.Time // taken before the view: every change up to it is in the view
	base    string    // address of the set
	stop    func()    // runs before the view is closed; may be nil
}

// ready fails before the first complete scan.
func (q *request) ready() error {
	if _, _, ok := q.view.BaselineEnd(); !ok {
		return notFound("The set %s has not been published yet.", q.Name).hint("It will be after the first complete scan of its store; ask again then.")
	}
	return nil
}

// begin is the sequence after which the log has every change, and the bytes of every version made
// by one. It is the tail of the log. If versions are kept for a shorter time than changes, it is
// the last change whose version may be gone. retainEvery is the least time between two runs of
// Retain.
func (q *request) begin(ctx context.Context) (uint64, error) {
	tail, _ := q.view.Tail()
	head, _ := q.view.Head()
	if q.Versions > 0 && (q.Changes == 0 || q.Versions < q.Changes) {
		bound := q.f.now().Truncate(retainEvery).Add(retainEvery - q.Versions)
		seq, err := q.view.SequenceAt(ctx, bound)
		switch {
		case errors.Is(err, changetrack.ErrBeyondRetention):
		case err != nil:
			return 0, err
		default:
			tail = max(tail, seq)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return min(max(tail, q.floor), head), nil
}

// retainEvery is the step of the bound of kept versions. Addresses depend on that bound, and must
// not move at every request.
const retainEvery = time.Hour

// lost notes a version without its bytes. From now on the faces begin after the change that ended
// the version. This happens if versions were once kept for a shorter time than now.
func (q *request) lost(ctx context.Context, entity string, sequence uint64) error {
	for c, err := range q.view.History(ctx, entity) {
		if err != nil {
			return err
		}
		if c.Sequence > sequence {
			q.mu.Lock()
			q.floor = max(q.floor, c.Sequence)
			q.mu.Unlock()
			break
		}
	}
	return fmt.Errorf("the version %d of %s is no longer kept", sequence, entity)
}

// change gives one change of the log; false when the view does not have it.
func (q *request) change(ctx context.Context, sequence uint64) (changetrack.Change, bool, error) {
	if sequence == 0 {
		return changetrack.Change{}, false, nil
	}
	for c, err := range q.view.Changes(ctx, sequence-1) {
		return c, err == nil && c.Sequence == sequence, err
	}
	return changetrack.Change{}, false, nil
}
