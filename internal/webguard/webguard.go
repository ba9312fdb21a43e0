// Package webguard restricts the addresses a program fetches on behalf of others.
//
// Documents of a source and descriptions in a store may hold any address: of the machine itself, of
// a neighbour in the private network, of a cloud's metadata service. So a program fetches only from
// hosts named in its configuration, at the first request and at every redirect ([Rules.Allowed]).
// The address behind a host name must be a public one, unless the configuration allows private ones
// ([Dialer]). So a name pointing elsewhere tomorrow opens no door.
package webguard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

var (
	// ErrNotAllowed is an address outside of the rules.
	ErrNotAllowed = errors.New("host is not allowed")
	// ErrScheme is an address without http or https.
	ErrScheme = errors.New("scheme cannot be fetched")
	// ErrPrivate is a host name resolved into a private network.
	ErrPrivate = errors.New("address is not a public one")
)

// Rule allows a host, or everything below an address.
type Rule struct {
	Host, Port string // Port "": any
	Own        bool   // a source's own host: the default ports of both schemes are one
	Prefix     string // the address begins with it; "": the whole host
}

// ParseRule reads "host" or "host:port"; of an address the host.
func ParseRule(text string) (Rule, error) {
	s := strings.TrimSpace(text)
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return Rule{}, fmt.Errorf("%q is neither a host nor host:port", Masked(text))
		}
		s = u.Host
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), ""
	}
	if host == "" || strings.ContainsAny(host, "/ *") { // each host is named: nothing stands for all
		return Rule{}, fmt.Errorf("%q is neither a host nor host:port", Masked(text))
	}
	return Rule{Host: strings.ToLower(host), Port: port}, nil
}

// ParsePrefix reads the text of ParseRule, or an address allowing everything below it:
// "https://repository.example/bitstreams/". Without a path it is the host with that scheme.
func ParsePrefix(text string) (Rule, error) {
	s := strings.TrimSpace(text)
	if !strings.Contains(s, "://") {
		return ParseRule(s)
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return Rule{}, fmt.Errorf("%q is neither a host, nor host:port, nor an http or https address without query", Masked(text))
	}
	return Rule{Host: strings.ToLower(u.Hostname()), Port: Port(u), Prefix: u.Scheme + "://" + u.EscapedPath()}, nil
}

// Port of an address; without one, the default of its scheme.
func Port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// WithoutUser takes the user and the password out of an address: they are for
// requests to its host, not for records and messages.
func WithoutUser(address string) (string, *url.Userinfo) {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address, nil
	}
	user := u.User
	u.User = nil
	return u.String(), user
}

// Rules is a list of allowed hosts and addresses; an empty one allows nothing.
type Rules []Rule

// Allowed tells why an address must not be fetched; nil when it may.
func (rs Rules) Allowed(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: %q", ErrScheme, u.Scheme)
	}
	host, port := strings.ToLower(u.Hostname()), Port(u)
	for _, r := range rs {
		if r.Host != host {
			continue
		}
		if r.Prefix != "" && !r.below(u) {
			continue
		}
		if r.Port == "" || r.Port == port || (r.Own && (r.Port == "80" || r.Port == "443") && (port == "80" || port == "443")) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrNotAllowed, u.Host)
}

// below tells whether an address stands under the prefix, and does not climb out
// of it by dot segments, escaped or not.
func (r *Rule) below(u *url.URL) bool {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	prefix := r.Prefix
	if strings.HasSuffix(prefix, "://") {
		prefix += "/"
	}
	if !strings.HasPrefix(u.Scheme+"://"+path, prefix) {
		return false
	}
	plain := strings.ReplaceAll(u.Path, `\`, "/")
	for range 3 { // a server may undo an escape of an escape
		again, err := url.PathUnescape(plain)
		if err != nil || again == plain {
			break
		}
		plain = strings.ReplaceAll(again, `\`, "/")
	}
	for segment := range strings.SplitSeq(plain, "/") {
		if segment == ".." {
			return false
		}
	}
	return true
}

// Dialer opens connections to hosts let through by the rules. A host written as an address was
// meant by the person who wrote it. Any other name must resolve to public addresses, unless
// Private.
type Dialer struct {
	Private  bool // names may lead into private networks
	Strict   bool // addresses must be public ones too: a stranger wrote them
	Timeout  time.Duration
	Resolver *net.Resolver // nil: the system's
}

// DialContext is for http.Transport. A transport with it must have no proxy: then
// only the proxy would be looked at.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	n := net.Dialer{Timeout: d.Timeout, KeepAlive: 30 * time.Second, Resolver: d.Resolver}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); d.Strict || err != nil && !d.Private && !strings.EqualFold(host, "localhost") {
		n.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrPrivate, address)
			}
			if !Public(ap.Addr()) {
				return fmt.Errorf("%w: %s is at %s", ErrPrivate, host, ap.Addr())
			}
			return nil
		}
	}
	return n.DialContext(ctx, network, address)
}

// special are the addresses outside the public internet (IANA's special-purpose registries).
var special = func() (out []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/127", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}()

// Public tells whether an address is one of the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// NoAnswer tells whether a request failed because nobody answered: the name of the host
// is unknown, the connection was refused or lost, or time ran out.
func NoAnswer(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var timeout net.Error
	lost := errors.Is(err, io.EOF) // before the first byte of an answer
	return lost || errors.As(err, &dns) || errors.As(err, &op) || errors.As(err, &timeout) && timeout.Timeout()
}

// GatewayStatus tells whether an HTTP status means an absent or busy server behind a proxy.
func GatewayStatus(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// Hint is advice for a person about a source without a trusted connection; "" for any other error.
func Hint(err error) string {
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return "is the name of the host right?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there: is the source running?"
	case errors.As(err, &untrusted):
		return "the certificate is not trusted here, or is of another host: add who signed it to the authorities of this system, or name a file with them in the environment as SSL_CERT_FILE"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it speaks http at this port: use http:// instead of https://"
	}
	return ""
}
