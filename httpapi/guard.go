package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/internal/access"
)

// guard lets in users with a token or a session, whose role has the powers of need. Without any token
// everybody on loopback is an administrator; then guard refuses requests under the name of another
// machine (a page with a name rebound to loopback). A browser sends some credentials by itself
// (loopback, cookies, remembered basic authentication); with them, guard refuses pages of another
// origin.
func (a *api) guard(c *gin.Context, need access.Role) {
	scheme, given, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	given = strings.TrimLeft(given, " ")
	bearer := strings.EqualFold(scheme, "Bearer") // RFC 9110, section 11.1: in any case
	var user access.User
	var known bool
	switch _, password, basic := c.Request.BasicAuth(); {
	case !a.users.Closed() && a.local:
		if host := hostOf(c.Request.Host); !loopback(host) {
			writeProblem(c, fail(http.StatusForbidden, "the host "+host+" is not loopback", "without a token the API answers on loopback only; set admin.token_file, or run: rsbridge token create"))
			return
		}
		user, known, bearer = access.User{Name: "local", Role: access.Admin}, true, false
	case bearer:
		user, known = a.users.ByToken(given)
	case basic: // with any user name
		given = password
		user, known = a.users.ByToken(given)
	default:
		given = ""
		user, known = a.bySession(c)
	}
	if !known || user.Role == access.Reader {
		a.stranger(c, given)
		return
	}
	if !bearer {
		if sameOrigin(c); c.IsAborted() {
			return
		}
	}
	if !user.Role.Has(need) {
		a.note(c, user, http.StatusForbidden)
		writeProblem(c, fail(http.StatusForbidden, "the token "+user.Name+" has the role "+string(user.Role)+"; this needs "+string(need), ""))
		return
	}
	c.Set(userKey, user)
}

// standsBy refuses what only the leader can do.
func (a *api) standsBy(c *gin.Context) {
	if bridge.LeaderOf(a.b) == "" || c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead {
		return
	}
	writeProblem(c, fail(http.StatusConflict, "this process stands by: "+bridge.LeaderNow(a.b), "send it to the administration of the leader"))
}

const userKey = "user"

// userOf is the user of a request that was let in.
func userOf(c *gin.Context) access.User {
	user, _ := c.Get(userKey)
	u, _ := user.(access.User)
	return u
}

// stranger answers a request without a valid token or session: people are led to the login page.
func (a *api) stranger(c *gin.Context, given string) {
	if given != "" && !a.slowed(c) {
		return
	}
	if given == "" && byPerson(c) {
		c.Header("Location", toRoot(c.Request.URL.Path)+"login?next="+url.QueryEscape(c.Request.URL.RequestURI()))
		c.Header("Cache-Control", "no-store")
		c.AbortWithStatus(http.StatusSeeOther)
		return
	}
	c.Header("WWW-Authenticate", `Bearer realm="rsbridge"`)
	writeProblem(c, fail(http.StatusUnauthorized, "the token is missing or wrong", "send Authorization: Bearer TOKEN, or the token as the password of basic authentication; rsbridge token create makes one"))
}

// byPerson tells whether a browser asks for a page.
func byPerson(c *gin.Context) bool {
	read := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	best, _ := accept.Best(c.Request.Header.Values("Accept"), []string{"application/json"}, []string{"text/html"})
	return read && best == 1 && !strings.HasPrefix(c.Request.URL.Path, "/api/")
}

// toRoot leads from a path to the root, whatever a proxy has taken away before it.
func toRoot(path string) string {
	if n := strings.Count(path, "/") - 1; n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// slowed counts a failed login and waits. It is false, and has answered, when too many wait already.
func (a *api) slowed(c *gin.Context) bool {
	if a.logins.Failed(c.Request.Context(), c.Request.RemoteAddr) {
		return true
	}
	c.Header("Connection", "close")
	c.Header("Retry-After", "10")
	writeProblem(c, fail(http.StatusTooManyRequests, "too many logins from this address have failed", "wait, then send the right token"))
	return false
}

// needs is the role for a request beside the API: for a page, the metrics, a store.
func needs(c *gin.Context) access.Role {
	read := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	if read || strings.HasPrefix(c.FullPath(), "/stores/") && c.Param("rest") == "/query" {
		return access.Read
	}
	return access.Operate
}

// record writes the actions of users into the log. Hints and the requests to stores are left out:
// there are too many of them.
func (a *api) record(c *gin.Context) {
	method, path := c.Request.Method, c.FullPath()
	c.Next()
	if method == http.MethodGet || method == http.MethodHead || strings.HasPrefix(path, "/stores/") || strings.HasSuffix(path, "/touch") {
		return
	}
	a.note(c, userOf(c), c.Writer.Status())
}

// note writes an action into the log.
func (a *api) note(c *gin.Context, user access.User, status int) {
	run, _ := strings.CutPrefix(c.Writer.Header().Get("Location"), runsPath+"/")
	id, _ := strconv.ParseUint(run, 10, 64) // 0: it began none
	if status != http.StatusAccepted {
		id = 0
	}
	err := a.actions.Add(access.Action{Time: time.Now(), Who: user.Name, Role: user.Role, From: hostOf(c.Request.RemoteAddr), Action: c.Request.Method + " " + c.Request.URL.Path, Status: status, Run: id})
	if err != nil {
		a.log.Error("an action is not in the log of actions", "who", user.Name, "path", c.Request.URL.Path, "error", err)
	}
}

// sameOrigin refuses a request by a page of another origin. Sec-Fetch-Site comes from the browser
// alone; without it (HTTP off loopback) the Origin decides.
func sameOrigin(c *gin.Context) {
	read := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	o := c.GetHeader("Origin")
	switch c.GetHeader("Sec-Fetch-Site") {
	case "same-origin", "none":
		return
	case "":
	default:
		if !read && o == "" {
			o = "null"
		}
	}
	if o == "" {
		return
	}
	if u, err := url.Parse(o); err != nil || !strings.EqualFold(u.Host, c.Request.Host) {
		writeProblem(c, fail(http.StatusForbidden, "the page "+o+" is of another origin", "programs elsewhere use Authorization: Bearer TOKEN"))
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
