package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Problem is application/problem+json (RFC 9457). Run is set if that run under way is the reason of
// the refusal.
type Problem struct {
	Type   string    `json:"type"`
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail"`
	Hint   string    `json:"hint,omitempty"`
	Run    *jobs.Run `json:"run,omitempty"`
	// Errors are all faults of a declaration, each at a JSON Pointer into the body.
	Errors []declared.Fault `json:"errors,omitempty"`
}

func (p *Problem) Error() string {
	if p.Hint != "" {
		return p.Detail + " (" + p.Hint + ")"
	}
	return p.Detail
}

// problems is the one table from errors to statuses.
var problems = []struct {
	err    error
	status int
	hint   string
}{
	{bridge.ErrUnknown, http.StatusNotFound, "GET /api/v1/status names what there is"},
	{bridge.ErrInFile, http.StatusConflict, ""},
	{bridge.ErrNoFile, http.StatusConflict, ""},
	{bridge.ErrConfigured, http.StatusConflict, ""},
	{bridge.ErrRemoved, http.StatusConflict, "rsbridge forget removes it from the state"},
	{bridge.ErrUnchanged, http.StatusConflict, ""},
	{jobs.ErrUnknown, http.StatusNotFound, "GET /api/v1/runs lists the runs"},
	{kv.ErrNotFound, http.StatusNotFound, ""},
	{bridge.ErrEntities, http.StatusBadRequest, "{\"entities\":[\"http://...\"]}"},
	{named.ErrMany, http.StatusServiceUnavailable, "nothing of this request was taken; send it again when the store answers and the runs that wait are done"},
	{bridge.ErrApart, http.StatusBadRequest, ""},
	{bridge.ErrBeyond, http.StatusConflict, "the log was set back, or the sequence is of another set"},
	{bridge.ErrWhole, http.StatusConflict, "with neither hints nor entities everything is scanned"},
	{changetrack.ErrBeyondRetention, http.StatusGone, "retention of the set says how long changes and versions are kept"},
	{bridge.ErrOtherHeld, http.StatusConflict, "GET its address /held for what is held now"},
	{bridge.ErrNothingHeld, http.StatusConflict, "GET /api/v1/status shows what is held"},
	{jobs.ErrClosed, http.StatusServiceUnavailable, "the bridge is stopping"},
	{context.Canceled, http.StatusServiceUnavailable, "the request was given up"},
}

// problem turns an error into its answer.
func problem(err error) *Problem {
	p := new(Problem)
	if errors.As(err, &p) {
		return p
	}
	p = &Problem{Type: "about:blank", Status: http.StatusInternalServerError, Detail: err.Error(), Hint: "the log of the bridge tells more"}
	for _, e := range problems {
		if errors.Is(err, e.err) {
			p.Status, p.Hint = e.status, e.hint
			break
		}
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// fail makes a Problem for an error of the request itself.
func fail(status int, detail, hint string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Hint: hint}
}

func writeProblem(c *gin.Context, p *Problem) {
	masked := *p // an address of a request, of a setting or of a source
	masked.Detail, masked.Hint = webguard.MaskedText(p.Detail), webguard.MaskedText(p.Hint)
	c.Header("Content-Type", "application/problem+json")
	c.Header("Cache-Control", "no-store")
	c.AbortWithStatusJSON(p.Status, &masked)
}
