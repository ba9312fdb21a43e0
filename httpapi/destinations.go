package httpapi

import (
	"context"
	"iter"
	"net/http"
	"regexp"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
)

// anyDestinationName also finds a destination removed from the configuration.
func (a *api) anyDestinationName(c *gin.Context) (string, error) {
	removed, err := a.b.RemovedDestinations(c.Request.Context())
	if err != nil {
		return "", err
	}
	return c.Param("name"), known(append(a.b.Destinations(), removed...), "destination", c.Param("name"))
}

func (a *api) destinationName(c *gin.Context) (string, error) {
	return c.Param("name"), known(a.b.Destinations(), "destination", c.Param("name"))
}

func (a *api) destinations(c *gin.Context) (any, error) {
	all, err := a.b.DestinationStatuses(c.Request.Context())
	return only(c, all, func(d bridge.DestinationStatus) bridge.State { return d.State }), err
}

func (a *api) destination(c *gin.Context) (any, error) {
	name, err := a.anyDestinationName(c)
	if err != nil {
		return nil, err
	}
	return a.b.DestinationStatus(c.Request.Context(), name)
}

// Differences is a page of the differences of a mirror. Next is the value of after for the next page, "" at the end.
type Differences struct {
	Differences []bridge.Difference `json:"differences"`
	More        bool                `json:"more"` // there are others
	Next        string              `json:"next"`
}

func (a *api) differences(c *gin.Context) (any, error) {
	list, next, err := pageOf(a, c, differencePlace, (*destination.Destination).Differences, func(d bridge.Difference) string { return d.Place })
	return Differences{list, next != "", next}, err
}

// NotRDF is a page of the non-RDF resources of a mirror's source. Next is as in Differences.
type NotRDF struct {
	Resources []bridge.Other `json:"resources"`
	More      bool           `json:"more"` // there are others
	Next      string         `json:"next"`
}

func (a *api) notRDF(c *gin.Context) (any, error) {
	list, next, err := pageOf(a, c, otherPlace, (*destination.Destination).Others, func(o bridge.Other) string { return o.Place })
	return NotRDF{list, next != "", next}, err
}

// Patterns of the places in these lists.
var (
	differencePlace = regexp.MustCompile(`^([fud][0-9a-f]{32})?$`)
	otherPlace      = regexp.MustCompile(`^(o[0-9a-f]{32})?$`)
)

// pageOf is a page of a list of the requested destination. next is the place after which the rest begins, "" at the
// end.
func pageOf[T any](a *api, c *gin.Context, form *regexp.Regexp, tell func(*destination.Destination, context.Context, string) iter.Seq2[T, error], place func(T) string) (list []T, next string, err error) {
	name, err := a.destinationName(c)
	if err != nil {
		return nil, "", err
	}
	most, err := limit(c, 1000, 10000)
	if err != nil {
		return nil, "", err
	}
	after := c.Query("after")
	if !form.MatchString(after) {
		return nil, "", noPlace(after)
	}
	dest, err := a.b.Destination(name)
	if err != nil {
		return nil, "", fail(http.StatusConflict, "the destination could not be opened: "+err.Error(), "mend that; its next run tries again")
	}
	list = []T{}
	for v, err := range tell(dest, c.Request.Context(), after) {
		if err != nil {
			return nil, "", err
		}
		if len(list) == most {
			return list, place(list[most-1]), nil
		}
		list = append(list, v)
	}
	return list, "", nil
}

func noPlace(after string) *Problem {
	return fail(http.StatusBadRequest, "after="+after+" is no place", "take it from next of the page before")
}

// pauseSet pauses the scans of a set, or lets them go on.
func (a *api) pauseSet(paused bool) func(c *gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		name, err := a.setName(c)
		if err != nil {
			return nil, err
		}
		if _, err := arguments(c, new(no)); err != nil {
			return nil, err
		}
		if err := bridge.PauseSet(c.Request.Context(), a.b, name, paused); err != nil {
			return nil, err
		}
		return a.b.SetStatus(c.Request.Context(), name)
	}
}

func (a *api) pause(paused bool) func(c *gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		name, err := a.destinationName(c)
		if err != nil {
			return nil, err
		}
		if _, err := arguments(c, new(no)); err != nil {
			return nil, err
		}
		if err := a.b.Pause(c.Request.Context(), name, paused); err != nil {
			return nil, err
		}
		return a.b.DestinationStatus(c.Request.Context(), name)
	}
}
