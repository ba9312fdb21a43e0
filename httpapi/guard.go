package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
)

// guard refuses requests without the token. If there is no token, it refuses requests under the
// name of another machine (a page with a name rebound to loopback). A browser sends some
// credentials by itself (loopback, remembered basic authentication); with them, guard refuses pages
// of another origin.
func (a *api) guard(c *gin.Context) {
	if a.open {
		if host := hostOf(c.Request.Host); !loopback(host) {
			writeProblem(c, fail(http.StatusForbidden, "the host "+host+" is not loopback", "without a token the API answers on loopback only; set admin.token_file"))
			return
		}
		sameOrigin(c)
		return
	}
	scheme, given, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	bearer := strings.EqualFold(scheme, "Bearer") // RFC 9110, section 11.1: in any case
	ok := bearer
	if given = strings.TrimLeft(given, " "); !bearer { // a browser: the dashboard asks with basic authentication, any user name
		_, given, ok = c.Request.BasicAuth()
	}
	sum := sha256.Sum256([]byte(given))
	if !ok || subtle.ConstantTimeCompare(sum[:], a.token[:]) != 1 {
		if c.Request.URL.Path == "/" {
			c.Header("WWW-Authenticate", `Basic realm="rsbridge", charset="UTF-8"`)
		} else {
			c.Header("WWW-Authenticate", `Bearer realm="rsbridge"`)
		}
		if given != "" && !a.logins.failed(c.Request.Context(), c.Request.RemoteAddr) {
			c.Header("Connection", "close")
			c.Header("Retry-After", "10")
			writeProblem(c, fail(http.StatusTooManyRequests, "too many logins from this address have failed", "wait, then send the right token"))
			return
		}
		writeProblem(c, fail(http.StatusUnauthorized, "the token is missing or wrong", "send Authorization: Bearer TOKEN, or the token as the password of basic authentication; admin.token_file holds it"))
		return
	}
	if !bearer {
		sameOrigin(c)
	}
}

// sameOrigin refuses a request by a page of another origin.
func sameOrigin(c *gin.Context) {
	o := c.GetHeader("Origin")
	if o == "" {
		return
	}
	if u, err := url.Parse(o); err != nil || !strings.EqualFold(u.Host, c.Request.Host) {
		writeProblem(c, fail(http.StatusForbidden, "the page "+o+" is of another origin", "programs elsewhere use admin.token_file and Authorization: Bearer TOKEN"))
	}
}

// hostOf is the name or address in a Host header, without port and brackets.
func hostOf(h string) string {
	if name, _, err := net.SplitHostPort(h); err == nil {
		return name
	}
	return strings.Trim(h, "[]")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
