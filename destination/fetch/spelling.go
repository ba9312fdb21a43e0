package fetch

import (
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// Spelling gives an address of the web in one of its spellings, to be compared with others: without
// scheme, fragment, usual port and "www.", and without escapes. All names of this machine are one. It
// is "" for no address.
func Spelling(base *url.URL, address string) string {
	u, err := base.Parse(address)
	if err != nil && strings.Contains(address, "://") {
		return address // with a sign of percent, say
	}
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	host := strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), "www.")
	if strings.IndexFunc(host, func(r rune) bool { return r > 0x7f }) >= 0 {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil {
			host = ascii
		}
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "localhost"
	}
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		host += ":" + port
	}
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		query = u.RawQuery
	}
	return host + "/" + strings.TrimPrefix(u.Path, "/") + "?" + query
}
