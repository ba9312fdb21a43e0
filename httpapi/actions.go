package httpapi

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/internal/access"
)

const actionsPath = "/api/v1/actions"

// Actions is a page of the log of actions. Next is the value of before for the next page, 0 at the
// end.
type Actions struct {
	Actions []access.Action `json:"actions"`
	Next    uint64          `json:"next"`
}

func (a *api) listActions(c *gin.Context) (any, error) {
	before, most, err := page(c)
	if err != nil {
		return nil, err
	}
	list, next, err := a.actions.Read(before, most)
	return Actions{list, next}, err
}

// page reads which part of a list with its newest first is asked for: before is 0 for the newest.
func page(c *gin.Context) (before uint64, most int, err error) {
	if most, err = limit(c, 100, 1000); err == nil {
		before, err = number(c, "before")
	}
	return before, most, err
}

// mostNumber is the largest whole number that every reader of JSON takes.
const mostNumber = 1 << 53

// number reads a whole number, 0 if it is not given.
func number(c *gin.Context, name string) (uint64, error) {
	s, given := c.GetQuery(name)
	if !given {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > mostNumber {
		return 0, fail(http.StatusBadRequest, name+"="+s+" is no whole number from 0 to 2^53", "")
	}
	return n, nil
}
