// Package content follows the files that descriptions link to.
//
// A description names the thing itself: the PDF of an article, the image of a coin, the full text.
// Through configured properties these files become resources of the set. They stay at their own
// addresses. A [Follower] reads the links from the log of changes ([Follower.Link]), checks each
// file now and then by conditional requests within limits ([Follower.Run]), and logs changes of its
// type, length, time and, if configured, hash.
//
// A store can hold any address. So the Follower fetches only from hosts named in the configuration
// (package webguard). Files elsewhere are linked and counted, nothing more.
package content

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Config of one set. A zero limit means the default beside it.
type Config struct {
	Properties     []string      // IRIs; their objects are the addresses of files
	Hash           bool          // read each changed file for its SHA-256
	Allow          []string      // hosts (host, host:port) or addresses; files below them may be fetched
	Private        bool          // names of Allow may lead into private networks
	Every          time.Duration // a file is looked at again after this time; 24h
	PerRun         int           // files looked at in one run; 1000
	Concurrency    int           // requests at once; 4
	Rate           float64       // requests a second; 10
	MaxBytes       int64         // a longer file gets no hash; 256 MiB
	Timeout        time.Duration // without an answer, or without a byte; 30s
	MaxDeleteRatio float64       // share of files one run may delete (10 always may); less than 0: no limit
}

// Options of New.
type Options struct {
	Now       func() time.Time // nil: time.Now
	Logger    *slog.Logger     // nil: silent
	Progress  func(done, total int64)
	Transport http.RoundTripper // nil: the network, behind a webguard.Dialer
	UserAgent string            // of each request; default webclient.Agent

	resolver *net.Resolver // nil: the system's
}

// Fixed limits.
const (
	maxAddress   = 2000 // bytes of a file's address
	maxPerEntity = 1000 // files followed per description
	redirects    = 5    // in a row
	hostDown     = 5    // failed requests to a host in a row; the run then leaves it alone
	secondLook   = time.Minute
	retryFirst   = 10 * time.Minute // after a failure; doubles up to Every
	namedFiles   = 20
	groupSize    = 200 // files recorded together
)

// Follower follows the files of one set. One Link or Run at a time.
type Follower struct {
	cfg      Config
	o        Options
	log      *changetrack.Log
	store    kv.Store
	rules    webguard.Rules
	client   *http.Client
	needles  [][]byte // properties as bytes, if their IRIs have one spelling only
	property map[string]bool
}

// Check finds the first error of a configuration.
func (c *Config) Check() error {
	for _, p := range c.Properties {
		if u, err := url.Parse(p); err != nil || u.Scheme == "" || strings.ContainsAny(p, "<>\" {}|\\^`") {
			return fmt.Errorf("%q is no IRI of a property", p)
		}
	}
	for _, a := range c.Allow {
		if _, err := webguard.ParsePrefix(a); err != nil {
			return err
		}
	}
	return nil
}

// New gives the follower of a set. store keeps a record of the last look at each file.
func New(store kv.Store, log *changetrack.Log, cfg Config, o Options) (*Follower, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("content of set %s: %w", log.Set(), err)
	}
	set := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	set(&cfg.Every, 24*time.Hour)
	set(&cfg.Timeout, 30*time.Second)
	if cfg.PerRun <= 0 {
		cfg.PerRun = 1000
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = 4
	}
	if cfg.Rate <= 0 {
		cfg.Rate = 10
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 256 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	f := &Follower{cfg: cfg, o: o, log: log, store: store, property: map[string]bool{}}
	for _, a := range cfg.Allow {
		r, err := webguard.ParsePrefix(a)
		if err != nil {
			return nil, err // checked
		}
		f.rules = append(f.rules, r)
	}
	for _, p := range cfg.Properties {
		f.property[p] = true
		f.needles = append(f.needles, needle(p))
	}
	transport := o.Transport
	if transport == nil {
		dialer := &webguard.Dialer{Private: cfg.Private, Timeout: cfg.Timeout, Resolver: o.resolver}
		transport = &http.Transport{
			DialContext: dialer.DialContext, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: cfg.Concurrency, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: cfg.Timeout, ResponseHeaderTimeout: cfg.Timeout,
		}
	}
	f.client = &http.Client{Transport: webclient.Named(transport, o.UserAgent), Jar: &webclient.Cookies{}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > redirects {
			return fmt.Errorf("%w: more than %d in a row", errRedirects, redirects)
		}
		return f.rules.Allowed(req.URL)
	}}
	return f, nil
}

// needle is the part common to every representation with the property; nil if escapes could hide
// it.
func needle(iri string) []byte {
	for _, c := range []byte(iri) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("<>\"\\&'", c) >= 0 {
			return nil
		}
	}
	return []byte(iri)
}

// Close ends idle connections.
func (f *Follower) Close() { f.client.CloseIdleConnections() }

// properties names the linking rule, for LinkFiles.
func (f *Follower) properties() string {
	ps := slices.Clone(f.cfg.Properties)
	slices.Sort(ps)
	return strings.Join(slices.Compact(ps), " ")
}

func (f *Follower) addresses(entity string, format rdfres.Format, data []byte) ([]string, error) {
	some := false
	for _, n := range f.needles {
		some = some || n == nil || bytes.Contains(data, n)
	}
	if !some {
		return nil, nil
	}
	ts, err := codec.Decode(format, data, rdfres.ReadOptions{Name: entity})
	if err != nil {
		return nil, err
	}
	urls := Addresses(ts, f.property)
	if len(urls) > maxPerEntity {
		f.o.Logger.Warn("a description leads to more files than are followed", "entity", entity, "files", len(urls), "followed", maxPerEntity)
		urls = urls[:maxPerEntity]
	}
	return urls, nil
}

// Addresses are the files linked by triples with some properties: IRIs and literals with http or
// https addresses, without their fragments.
func Addresses(ts []rdfres.Triple, properties map[string]bool) (urls []string) {
	for _, t := range ts {
		if !properties[t.P.IRI()] {
			continue
		}
		text := ""
		switch t.O.Kind() {
		case rdfres.KindIRI:
			text = t.O.IRI()
		case rdfres.KindLiteral:
			lexical, _, _ := t.O.Literal()
			text = strings.TrimSpace(lexical)
		}
		if text, ok := address(text); ok && !slices.Contains(urls, text) {
			urls = append(urls, text)
		}
	}
	return urls
}

// address is a text as the address of a file. An IRI becomes its URI (RFC 3987, section 3.1).
func address(text string) (string, bool) {
	text, _, _ = strings.Cut(text, "#")
	if !utf8.ValidString(text) {
		return "", false
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		if c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	text = b.String()
	if len(text) < len("http://h") || len(text) > maxAddress {
		return "", false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c <= ' ' || c >= 0x7f || strings.IndexByte("<>\"{}|\\^`", c) >= 0:
			return "", false
		case c == '%' && (i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2])):
			return "", false
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", false
	}
	return text, true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (f *Follower) allowed(address string) bool {
	u, err := url.Parse(address)
	return err == nil && f.rules.Allowed(u) == nil
}

// Errors shown unchanged.
var (
	errRedirects = errors.New("it is redirected again and again")
	errStalled   = errors.New("no answer in time")
)

// reason shortens a request's error to its part about the file.
func reason(err error) string {
	var ue *url.Error
	if errors.As(err, &ue) {
		where := ue.URL
		err = ue.Err
		if errors.Is(err, webguard.ErrNotAllowed) || errors.Is(err, webguard.ErrScheme) {
			return clip(fmt.Sprintf("it redirects to %s: %v (add it to content.allow if files may be fetched from there)", where, err))
		}
	}
	if errors.Is(err, webguard.ErrPrivate) {
		return clip(err.Error() + " (set content.private if that is meant)")
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return clip("its host is not found: " + dns.Name)
	}
	return clip(err.Error())
}

func clip(s string) string {
	if s = strings.ToValidUTF8(s, "?"); len(s) > 300 {
		return strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}
