package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/internal/access"
)

//go:embed login.html
var loginHTML string

var (
	loginPage   = template.Must(template.New("login").Parse(loginHTML))
	loginPolicy = "default-src 'none'; style-src '" + hashOf([]byte(loginHTML), "style") + "'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// sessionCookie is the cookie of a browser that has logged in.
const sessionCookie = "rsbridge"

// me is the user of a request.
type me struct {
	Name string      `json:"name"`
	Role access.Role `json:"role"`
	// Login tells whether there is a login, with an end by POST /logout.
	Login bool `json:"login"`
}

func (a *api) me(c *gin.Context) (any, error) {
	u := userOf(c)
	return me{u.Name, u.Role, a.users.Closed()}, nil
}

// bySession is the user of the cookie. A session in use is made longer.
func (a *api) bySession(c *gin.Context) (access.User, bool) {
	cookie, err := c.Request.Cookie(sessionCookie)
	if err != nil {
		return access.User{}, false
	}
	user, longer, ok := a.users.BySession(cookie.Value, time.Now())
	if longer != "" {
		setSession(c, longer, int(access.SessionTime/time.Second))
	}
	return user, ok
}

// begins gives the browser of a user a new session.
func (a *api) begins(c *gin.Context, user access.User) {
	value, err := a.users.Session(user, time.Now())
	if err != nil {
		a.log.Error("no session begins", "who", user.Name, "error", err)
		return
	}
	setSession(c, value, int(access.SessionTime/time.Second))
}

func setSession(c *gin.Context, value string, seconds int) {
	http.SetCookie(c.Writer, &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: c.Request.TLS != nil || strings.EqualFold(c.GetHeader("X-Forwarded-Proto"), "https"),
	})
}

// loginForm shows the page of the login.
func (a *api) loginForm(c *gin.Context) { a.showLogin(c, http.StatusOK, "") }

func (a *api) showLogin(c *gin.Context, status int, fault string) {
	var page bytes.Buffer
	next := c.Query("next")
	if c.Request.Method == http.MethodPost {
		next = c.Request.PostFormValue("next")
	}
	if err := loginPage.Execute(&page, map[string]string{"Next": next, "Fault": fault}); err != nil {
		writeProblem(c, problem(err))
		return
	}
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", loginPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser hides the Origin of its forms
	h.Set("Cache-Control", "no-store")
	c.Data(status, "text/html; charset=utf-8", page.Bytes())
}

const longestForm = 16 << 10 // bytes

// login takes a token from the page of the login, and begins a session.
func (a *api) login(c *gin.Context) {
	if sameOrigin(c); c.IsAborted() {
		return
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, longestForm)
	token := strings.TrimSpace(c.Request.PostFormValue("token"))
	user, ok := a.users.ByToken(token)
	if !ok || user.Role == access.Reader {
		if token == "" || a.slowed(c) {
			a.showLogin(c, http.StatusUnauthorized, "This token is not known here.")
		}
		return
	}
	a.begins(c, user)
	a.note(c, user, http.StatusSeeOther)
	leadTo(c, c.Request.PostFormValue("next"))
}

// logout ends the session of a browser, also for copies of its cookies.
func (a *api) logout(c *gin.Context) {
	if sameOrigin(c); c.IsAborted() {
		return
	}
	if cookie, err := c.Request.Cookie(sessionCookie); err == nil {
		if user, _, ok := a.users.BySession(cookie.Value, time.Now()); ok {
			if err := a.users.Leave(cookie.Value, time.Now()); err != nil {
				a.log.Error("a session is not ended", "who", user.Name, "error", err)
				writeProblem(c, fail(http.StatusInternalServerError, "the session is not ended: "+err.Error(), "mend that, and log out again; revoking the token ends its sessions too"))
				return
			}
			a.note(c, user, http.StatusSeeOther)
		}
	}
	setSession(c, "", -1)
	c.Header("Location", "login")
	c.Status(http.StatusSeeOther)
}

// leadTo leads a browser from the login to a page of this origin, never elsewhere.
func leadTo(c *gin.Context, next string) {
	at := "./"
	if u, err := url.Parse(next); err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && strings.HasPrefix(next, "/") && !strings.ContainsAny(next, "\\\r\n") {
		at += strings.TrimLeft(next, "/")
	}
	c.Header("Location", at)
	c.Status(http.StatusSeeOther)
}

// hashOf is the hash of the first element of a tag in a page, for its policy.
func hashOf(page []byte, tag string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+tag+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"+tag+">"))
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
