package sparql

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/internal/pace"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Endpoint is the addresses and the manners of one store.
type Endpoint struct {
	Name        string // as the user calls it, for messages
	Query       string
	Update      string // "" if the store is only read
	GraphStore  string // "" if it has none
	Username    string // Basic, or Digest when the store asks for it
	Password    string
	Timeout     time.Duration     // of one request without progress; default 60s
	Concurrency int               // requests at once; default 2. A stream being read counts
	Rate        float64           // requests a second at most; 0: any number
	Slow        time.Duration     // a query answered later than this makes the next request wait (pace.Pacer); 0: never
	Transport   http.RoundTripper // nil: a transport of its own; an embedded store passes its handler
	// Around is put around the transport, to measure the requests; nil: nothing is.
	Around     func(http.RoundTripper) http.RoundTripper
	Retries    int            // default 4 for passing failures; -1: none
	RetryPause time.Duration  // the first pause, doubled each time; default 500ms
	MaxRows    int64          // configured row limit of the store; 0 unknown
	Logger     *slog.Logger   // with the name of the store, if the lines are to have it; nil: silent
	UserAgent  string         // of each request; default webclient.Agent
	Names      settings.Names // of the settings in hints
}

// Client speaks to one endpoint. Safe for concurrent use.
type Client struct {
	conn connection

	tsv         atomic.Int32 // 0 not known, 1 the store writes the W3C form, 2 it does not (faithfulTSV)
	noTable     atomic.Bool  // something was not for the binary form (errNotForTable)
	xml         atomic.Bool  // the store answers in XML to requests for JSON
	noBinary    atomic.Bool  // the store refused triples as binary RDF and took them otherwise
	takesBinary atomic.Bool  // it has taken some
	updateForms atomic.Bool  // the store takes updates as forms only
}

// connection sends requests to one store: paced, repeated where it helps, in the form
// the store takes. Its errors say what a person can do.
type connection struct {
	endpoint  Endpoint
	http      *http.Client
	transport *http.Transport // its own one; nil when it was given one
	auth      authenticator
	secrets   *strings.Replacer // takes them out of the store's messages
	slots     chan struct{}
	pace      pace.Pacer
	log       *slog.Logger

	manner   atomic.Int32 // how queries are sent: mannerDirect, mannerForm, mannerGet
	direct   atomic.Bool  // a query sent directly was answered
	loader   atomic.Bool  // the store is an Oxigraph, with a loader beside its transactions
	maxRows  atomic.Int64 // as the store advertised
	requests atomic.Int64
	bytes    atomic.Int64
	closed   atomic.Bool
}

// New makes a client; it sends nothing. The addresses must be absolute http or
// https URLs; credentials in the Query address are moved to Username, Password.
func New(e Endpoint) (*Client, error) {
	if e.Query == "" {
		return nil, fmt.Errorf("sparql: store %q: no query address", e.Name)
	}
	for _, a := range []*string{&e.Query, &e.Update, &e.GraphStore} {
		if *a == "" {
			continue
		}
		u, err := webguard.Parse(*a)
		if err != nil {
			return nil, fmt.Errorf("sparql: store %q: address: %w", e.Name, err)
		}
		if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			hint := ""
			if with, err := webguard.WithScheme(*a); err == nil && with != *a {
				hint = ": write http:// or https:// before it"
			}
			return nil, fmt.Errorf("sparql: store %q: address %q is not an http or https URL%s", e.Name, webguard.Masked(redact(*a)), hint)
		}
		if u.User != nil {
			if e.Username == "" {
				e.Username = u.User.Username()
				e.Password, _ = u.User.Password()
			}
			u.User = nil
		}
		u.Fragment = ""
		*a = u.String()
	}
	if e.Timeout <= 0 {
		e.Timeout = 60 * time.Second
	}
	if e.Concurrency <= 0 {
		e.Concurrency = 2
	}
	if e.Retries == 0 {
		e.Retries = 4
	}
	if e.RetryPause <= 0 {
		e.RetryPause = 500 * time.Millisecond
	}
	c := &Client{conn: connection{endpoint: e, slots: make(chan struct{}, e.Concurrency), pace: pace.Pacer{Rate: e.Rate, Slow: e.Slow}, log: e.Logger}}
	if c.conn.log == nil {
		c.conn.log = slog.New(slog.DiscardHandler)
	}
	rt := e.Transport
	if rt == nil {
		c.conn.transport = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			MaxIdleConnsPerHost:   e.Concurrency,
			IdleConnTimeout:       30 * time.Second, // before Oxigraph answers nothing with an error, after 60
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: 2 * time.Second,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // requested and undone here: this shows truncation
		}
		rt = c.conn.transport
	}
	if e.Around != nil {
		rt = e.Around(rt)
	}
	c.conn.http = &http.Client{Transport: webclient.Named(rt, e.UserAgent), CheckRedirect: checkRedirect}
	c.conn.auth = authenticator{username: e.Username, password: e.Password}
	c.conn.secrets = withoutSecrets(e)
	return c, nil
}

// Close drops idle connections; running requests end by their context.
func (c *Client) Close() error {
	c.conn.closed.Store(true)
	if c.conn.transport != nil {
		c.conn.transport.CloseIdleConnections()
	}
	return nil
}

// Endpoint is the endpoint given to New, with defaults filled in and the password removed.
func (c *Client) Endpoint() Endpoint {
	e := c.conn.endpoint
	e.Password = ""
	return e
}

// Traffic is the number of requests sent and of body bytes received so far.
func (c *Client) Traffic() (requests, bytes int64) {
	return c.conn.requests.Load(), c.conn.bytes.Load()
}

// MaxRows is the smallest row limit known: the configured one, or the store's own from a header
// (X-SPARQL-MaxRows); 0: none known.
func (c *Client) MaxRows() int64 {
	n := c.conn.endpoint.MaxRows
	if m := c.conn.maxRows.Load(); m > 0 && (n <= 0 || m < n) {
		n = m
	}
	return n
}

func (c *connection) noteHeaders(h http.Header) {
	c.noteManner(h)
	if strings.Contains(h.Get("Server"), "Oxigraph") {
		c.loader.Store(true)
	}
	for _, name := range []string{"X-Sparql-Maxrows", "X-Sparql-Max-Rows", "X-Result-Limit"} {
		var n int64
		if _, err := fmt.Sscanf(h.Get(name), "%d", &n); err == nil && n > 0 {
			c.maxRows.Store(n)
		}
	}
}

var errRedirect = errors.New("redirect refused")

// checkRedirect follows redirects without a change of method, and never carries credentials to
// another host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) >= 5 {
		return fmt.Errorf("%w: more than 5 redirects", errRedirect)
	}
	if req.Method != first.Method {
		return fmt.Errorf("%w: %s would become %s at %s", errRedirect, first.Method, req.Method, shown(req.URL))
	}
	if req.URL.Host != first.URL.Host || (first.URL.Scheme == "https" && req.URL.Scheme != "https") {
		if first.Method != http.MethodGet && first.Header.Get("Content-Type") != queryType && first.Header.Get("Content-Type") != formType {
			return fmt.Errorf("%w: a write is not sent on to another host (%s)", errRedirect, shown(req.URL))
		}
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	return nil
}
