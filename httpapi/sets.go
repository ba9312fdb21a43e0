package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/push"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// known is nil when the list names name.
func known(list []string, kind, name string) error {
	if slices.Contains(list, name) {
		return nil
	}
	return fail(http.StatusNotFound, "there is no "+kind+" "+name, "there are: "+strings.Join(list, ", "))
}

func (a *api) setName(c *gin.Context) (string, error) {
	return c.Param("name"), known(a.b.Sets(), "set", c.Param("name"))
}

func (a *api) sets(c *gin.Context) (any, error) {
	all, err := a.b.SetStatuses(c.Request.Context())
	return only(c, all, func(s bridge.SetStatus) bridge.State { return s.State }), err
}

// only are the members of a list in the state that is asked for.
func only[T any](c *gin.Context, all []T, state func(T) bridge.State) []T {
	want := bridge.State(c.Query("state"))
	return slices.DeleteFunc(all, func(x T) bool { return want != "" && state(x) != want })
}

func (a *api) set(c *gin.Context) (any, error) {
	name, err := a.setName(c)
	if err != nil {
		return nil, err
	}
	return a.b.SetStatus(c.Request.Context(), name)
}

func (a *api) mirrors(c *gin.Context) (any, error) {
	name, err := a.setName(c)
	if err != nil {
		return nil, err
	}
	st, err := a.b.SetStatus(c.Request.Context(), name)
	return append([]push.Mirror{}, st.Mirrors...), err
}

func (a *api) changes(c *gin.Context) (any, error) {
	name, err := a.setName(c)
	if err != nil {
		return nil, err
	}
	most, err := limit(c, 1000, 10000)
	if err != nil {
		return nil, err
	}
	out, err := a.b.Changes(c.Request.Context(), name, c.Query("since"), most)
	if errors.Is(err, bridge.ErrSince) {
		return nil, fail(http.StatusBadRequest, err.Error(), "")
	}
	return out, err
}

func (a *api) diff(c *gin.Context) (any, error) {
	name, err := a.setName(c)
	if err != nil {
		return nil, err
	}
	out, err := a.b.Diff(c.Request.Context(), name, c.Query("entity"), c.Query("from"), c.Query("to"))
	if errors.Is(err, bridge.ErrPoint) {
		return nil, fail(http.StatusBadRequest, err.Error(), "")
	}
	return out, err
}

// description answers the representation of one entity, now or as it was.
func (a *api) description(c *gin.Context) (any, error) {
	name, err := a.setName(c)
	if err != nil {
		return nil, err
	}
	at, f, err := versionAsked(c)
	if err != nil {
		return nil, err
	}
	data, ver, err := a.b.Describe(c.Request.Context(), name, c.Query("entity"), at, f)
	if err != nil {
		return nil, err
	}
	if f == "" {
		f = ver.Format
	}
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
	if contentType := f.ContentType(); contentType != "" {
		c.Data(http.StatusOK, contentType, data)
	} else { // of a linked file
		c.Data(http.StatusOK, "application/json", data)
	}
	return nil, nil
}

func versionAsked(c *gin.Context) (at time.Time, f rdfres.Format, err error) {
	if s, given := c.GetQuery("at"); given {
		if at, err = resourcesync.ParseTime(s, true); err != nil {
			return at, f, fail(http.StatusBadRequest, "at="+s+" is no time like 2026-01-31T12:00:00Z", "")
		}
	}
	return at, rdfres.Format(c.Query("as")), nil
}

// mirrorDescription answers with a mirror's description of one entity, now or at a time.
func (a *api) mirrorDescription(c *gin.Context) (any, error) {
	at, f, err := versionAsked(c)
	if err != nil {
		return nil, err
	}
	data, err := a.b.DescribeMirror(c.Request.Context(), c.Param("name"), c.Query("entity"), at, f)
	if err != nil {
		return nil, err
	}
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
	c.Data(http.StatusOK, cmp.Or(f, rdfres.NTriples).ContentType(), data)
	return nil, nil
}

// heldPage is a page of held changes; form is the pattern of after.
func heldPage(c *gin.Context, form *regexp.Regexp, page func(after string, limit int) (*bridge.Held, error)) (any, error) {
	most, err := limit(c, 100, 10000)
	if err != nil {
		return nil, err
	}
	after := c.Query("after")
	if !form.MatchString(after) {
		return nil, noPlace(after)
	}
	h, err := page(after, most)
	if errors.Is(err, bridge.ErrNothingHeld) {
		return nil, fail(http.StatusNotFound, err.Error(), "")
	}
	return h, err
}

var (
	setPlace         = regexp.MustCompile(`^((file-)?[0-9a-f]{64})?$`)
	destinationPlace = regexp.MustCompile(`^([0-9a-f]{32})?$`)
)

func (a *api) setHeld(c *gin.Context) (any, error) {
	name, err := a.setName(c)
	if err != nil {
		return nil, err
	}
	return heldPage(c, setPlace, func(after string, limit int) (*bridge.Held, error) {
		return a.b.SetHeld(c.Request.Context(), name, after, limit)
	})
}

func (a *api) destinationHeld(c *gin.Context) (any, error) {
	name, err := a.destinationName(c)
	if err != nil {
		return nil, err
	}
	return heldPage(c, destinationPlace, func(after string, limit int) (*bridge.Held, error) {
		return a.b.DestinationHeld(c.Request.Context(), name, after, limit)
	})
}

// Resources is a page of resources. Next is the value of after for the next page, "" at the end.
type Resources struct {
	Resources []bridge.ResourceLine `json:"resources"`
	Next      string                `json:"next"`
}

func (a *api) resources(c *gin.Context) (any, error) {
	name, err := a.setName(c)
	if err != nil {
		return nil, err
	}
	most, err := limit(c, 100, 10000)
	if err != nil {
		return nil, err
	}
	after := c.Query("after")
	if _, err := rdfres.ParseDigest(after); after != "" && err != nil {
		return nil, fail(http.StatusBadRequest, "after="+after+" is no key", "take it from next of the page before")
	}
	res, next, err := a.b.Resources(c.Request.Context(), name, c.Query("entity"), after, most)
	return Resources{res, next}, err
}
