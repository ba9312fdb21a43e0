package httpapi

import (
	"context"
	"iter"
	"net/http"

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

// Differences of a mirror. More: there are others beyond the limit.
type Differences struct {
	Differences []bridge.Difference `json:"differences"`
	More        bool                `json:"more"`
}

func (a *api) differences(c *gin.Context) (any, error) {
	list, more, err := firstOf(a, c, (*destination.Destination).Differences)
	return Differences{list, more}, err
}

// NotRDF are the non-RDF resources of a mirror's source. More: there are others beyond the limit.
type NotRDF struct {
	Resources []bridge.Other `json:"resources"`
	More      bool           `json:"more"`
}

func (a *api) notRDF(c *gin.Context) (any, error) {
	list, more, err := firstOf(a, c, (*destination.Destination).Others)
	return NotRDF{list, more}, err
}

// firstOf is the beginning of a list of the requested destination, as long as the request allows;
// more tells whether it goes on.
func firstOf[T any](a *api, c *gin.Context, tell func(*destination.Destination, context.Context) iter.Seq2[T, error]) (list []T, more bool, err error) {
	name, err := a.destinationName(c)
	if err != nil {
		return nil, false, err
	}
	most, err := limit(c, 1000, 10000)
	if err != nil {
		return nil, false, err
	}
	dest, err := a.b.Destination(name)
	if err != nil {
		return nil, false, fail(http.StatusConflict, "the destination could not be opened: "+err.Error(), "mend that; its next run tries again")
	}
	list = []T{}
	for v, err := range tell(dest, c.Request.Context()) {
		if err != nil {
			return nil, false, err
		}
		if len(list) == most {
			return list, true, nil
		}
		list = append(list, v)
	}
	return list, false, nil
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
