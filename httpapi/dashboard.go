package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"

	"github.com/gin-gonic/gin"
)

//go:embed dashboard.html
var dashboardHTML []byte

// dashboardPolicy lets the page run its own script and style, known by their
// hashes, and reach this origin; nothing else.
var dashboardPolicy = "default-src 'none'; style-src '" + hashOf(dashboardHTML, "style") + "'; script-src '" + hashOf(dashboardHTML, "script") +
	"'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// hashOf is the hash of the first element of a tag in a page, for its policy.
func hashOf(page []byte, tag string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+tag+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"+tag+">"))
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// dashboard is one page using the API; it loads nothing from elsewhere.
func dashboard(c *gin.Context) {
	c.Header("Content-Security-Policy", dashboardPolicy)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Cache-Control", "no-cache")
	c.Data(http.StatusOK, "text/html; charset=utf-8", dashboardHTML)
}
