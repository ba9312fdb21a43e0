// Package dashboard shows a bridge to its operators: pages of its sets, mirrors and runs,
// made on the server. A small script renews them in place at each event; without scripts they are
// read and used as they are, by links and forms.
//
// The caller decides who may come in. The pages of [Dashboard.ServeHTTP] stand at [Patterns], and
// link to each other by relative addresses, so they may be served below any path.
package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// Patterns are the beginnings of the paths served here; one with a slash at its end is a folder.
var Patterns = []string{"/", "/assets/", "/sets/", "/destinations/", "/runs", "/runs/", "/search", "/check"}

type userKey struct{}

// WithUser is a context of a request of a logged-in user. Pages for one without the role "operate" have
// no buttons for actions.
func WithUser(ctx context.Context, user access.User) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// policy lets a page load its own files, and send its forms here; nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Dashboard answers requests for the pages of one bridge.
type Dashboard struct {
	b       *bridge.Bridge
	log     *slog.Logger
	mux     *http.ServeMux
	pages   map[look]*template.Template
	version string // of the assets, in their addresses
	past    past
	labels  labels
	counter counter
}

// look is a template, for users that may act or may read alone.
type look struct {
	name string
	acts bool
}

// New makes the dashboard of a bridge.
func New(b *bridge.Bridge, log *slog.Logger) *Dashboard {
	d := &Dashboard{b: b, log: log, mux: http.NewServeMux(), pages: map[look]*template.Template{}, past: past{runner: b.Runner()}, labels: newLabels()}
	sum := sha256.New()
	for _, name := range assetNames() {
		data, _ := assetFiles.ReadFile("assets/" + name) // it is embedded
		sum.Write(data)
	}
	d.version = hex.EncodeToString(sum.Sum(nil)[:6])
	names, _ := fs.Glob(templateFiles, "templates/*.html") // the pattern is right
	for _, acts := range []bool{true, false} {
		layout := template.New("").Funcs(functions).Funcs(template.FuncMap{"acts": func() bool { return acts }})
		template.Must(layout.ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
		for _, file := range names {
			name := strings.TrimSuffix(path.Base(file), ".html")
			d.pages[look{name, acts}] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, file))
		}
	}
	for pattern, page := range map[string]pageFunc{
		"GET /{$}":                            d.home,
		"GET /sets/{name}":                    d.set,
		"GET /sets/{name}/held":               d.setHeld,
		"GET /sets/{name}/entity":             d.entity,
		"GET /destinations/{name}":            d.destination,
		"GET /destinations/{name}/held":       d.destinationHeld,
		"GET /destinations/{name}/difference": d.difference,
		"GET /runs":                           d.runs,
		"GET /runs/{id}":                      d.run,
		"GET /search":                         d.search,
		"GET /check":                          d.check,
	} {
		d.mux.Handle(pattern, d.page(page))
	}
	d.mux.HandleFunc("GET /assets/{file}", d.asset)
	d.mux.HandleFunc("POST /sets/{name}/{action}", d.actOnSet)
	d.mux.HandleFunc("POST /destinations/{name}/{action}", d.actOnDestination)
	d.mux.HandleFunc("POST /runs/{id}/cancel", d.cancel)
	d.mux.Handle("/", d.page(func(*http.Request) (*page, error) {
		return nil, notFound("There is no such page.")
	}))
	return d
}

// Icon is the sign of a tab without a page of the dashboard, as SVG.
func Icon() []byte {
	data, _ := assetFiles.ReadFile("assets/icon-idle.svg") // it is embedded
	return data
}

func assetNames() (names []string) {
	all, _ := assetFiles.ReadDir("assets") // it is embedded
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

// ServeHTTP answers one request.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser hides the origin of its forms
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if r.Method == http.MethodPost && !sameOrigin(r) {
		d.fail(w, r, &statusError{http.StatusForbidden, "The form is of another origin.", "Send it from a page of this dashboard; programs use the API."})
		return
	}
	d.mux.ServeHTTP(w, r)
}

// sameOrigin tells whether a browser sends a form of our own page. A request without its
// origin is not by one.
func sameOrigin(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false
	}
	return http.NewCrossOriginProtection().Check(r) == nil
}

// page is the data of a template.
type page struct {
	name   string // of the template
	status int    // 0: 200

	Title  string
	Root   string // leads from the page to the start page
	Assets string // version of the assets
	User   string // who has logged in, and may log out
	Head   Head
	Body   any
}

type pageFunc func(*http.Request) (*page, error)

// statusError is an error for people.
type statusError struct {
	status int
	text   string
	hint   string
}

func (e *statusError) Error() string { return e.text }

func notFound(text string) error { return &statusError{http.StatusNotFound, text, ""} }

func (d *Dashboard) page(make pageFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := make(r)
		if err != nil {
			d.fail(w, r, err)
			return
		}
		d.show(w, r, p)
	})
}

// rootOf leads from the page of a request to the start page.
func rootOf(r *http.Request) string {
	if n := strings.Count(r.URL.Path, "/") - 1; n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

func (d *Dashboard) show(w http.ResponseWriter, r *http.Request, p *page) {
	p.Root, p.Assets = rootOf(r), d.version
	user, closed := r.Context().Value(userKey{}).(access.User)
	p.User = user.Name
	var err error
	if p.Head.Now.IsZero() {
		p.Head, err = d.head(r.Context())
	}
	if err != nil {
		d.log.Error("the head of the dashboard cannot be told", "error", err)
		p.Head = Head{Worst: toneBad, Sentence: "The state cannot be read: " + webguard.MaskedText(err.Error())}
	}
	var out bytes.Buffer
	if err := d.pages[look{p.name, !closed || user.Role.Has(access.Operate)}].ExecuteTemplate(&out, "layout", p); err != nil {
		d.log.Error("a page of the dashboard cannot be made", "path", r.URL.Path, "error", err)
		http.Error(w, "The page cannot be made; the log tells more.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write(bytes.ToValidUTF8(out.Bytes(), []byte("\ufffd"))) // an address may hold any bytes; the reader may be gone
}

// fail shows an error as a page.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known *statusError
	if !errors.As(err, &known) {
		known = &statusError{http.StatusInternalServerError, "This cannot be shown: " + webguard.MaskedText(err.Error()), ""}
		switch {
		case errors.Is(err, bridge.ErrUnknown), errors.Is(err, jobs.ErrUnknown):
			known.status, known.text = http.StatusNotFound, sentence(err.Error())
		case errors.Is(err, bridge.ErrNothingHeld):
			known.status, known.text = http.StatusNotFound, "Nothing is held any more."
		case errors.Is(err, context.Canceled):
			return
		default:
			d.log.Error("a page of the dashboard cannot be made", "path", r.URL.Path, "error", err)
		}
	}
	d.show(w, r, &page{name: "error", Title: http.StatusText(known.status), Body: Fault{known.text, known.hint}, status: known.status})
}

// Fault is the page of an error.
type Fault struct{ Text, Hint string }

// asset sends a file. Browsers keep it as long as its address has its version.
func (d *Dashboard) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	data, err := assetFiles.ReadFile("assets/" + name)
	if err != nil {
		d.fail(w, r, notFound("There is no such file."))
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	if r.URL.RawQuery == d.version {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	_, _ = w.Write(data) // the reader may be gone
}
