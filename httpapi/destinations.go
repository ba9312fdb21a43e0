package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
)

func (a *api) destinationName(c *gin.Context) (string, error) {
	return c.Param("name"), known(a.b.Destinations(), "destination", c.Param("name"))
}

func (a *api) destinations(c *gin.Context) (any, error) {
	st, err := a.b.Status(c.Request.Context())
	return st.Destinations, err
}

func (a *api) destination(c *gin.Context) (any, error) {
	name, err := a.destinationName(c)
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
	name, err := a.destinationName(c)
	if err != nil {
		return nil, err
	}
	most, err := limit(c, 1000, 10000)
	if err != nil {
		return nil, err
	}
	dest, err := a.b.Destination(name)
	if err != nil {
		return nil, fail(http.StatusConflict, "the destination could not be opened: "+err.Error(), "mend that; its next run tries again")
	}
	out := Differences{Differences: []bridge.Difference{}}
	for d, err := range dest.Differences(c.Request.Context()) {
		if err != nil {
			return nil, err
		}
		if len(out.Differences) == most {
			out.More = true
			break
		}
		out.Differences = append(out.Differences, d)
	}
	return out, nil
}

// NotRDF are resources of a mirror's source that are no RDF. More: there are
// others beyond the limit.
type NotRDF struct {
	Resources []bridge.Other `json:"resources"`
	More      bool           `json:"more"`
}

func (a *api) notRDF(c *gin.Context) (any, error) {
	name, err := a.destinationName(c)
	if err != nil {
		return nil, err
	}
	most, err := limit(c, 1000, 10000)
	if err != nil {
		return nil, err
	}
	dest, err := a.b.Destination(name)
	if err != nil {
		return nil, fail(http.StatusConflict, "the destination could not be opened: "+err.Error(), "mend that; its next run tries again")
	}
	out := NotRDF{Resources: []bridge.Other{}}
	for o, err := range dest.Others(c.Request.Context()) {
		if err != nil {
			return nil, err
		}
		if len(out.Resources) == most {
			out.More = true
			break
		}
		out.Resources = append(out.Resources, o)
	}
	return out, nil
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
		if err := a.b.Pause(name, paused); err != nil {
			return nil, err
		}
		return a.b.DestinationStatus(c.Request.Context(), name)
	}
}
