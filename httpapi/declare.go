package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/internal/configfile"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// Next makes a configuration from the latest one. save keeps it, undo takes that back when it cannot
// be opened.
type Next func(latest *bridge.Config) (next *bridge.Config, save, undo func() error, err error)

// Definition tells how a set or destination is declared.
type Definition struct {
	Name string `json:"name"`
	// Declared is file, of the configuration file, or api.
	Declared string `json:"declared"`
	// InEffect is false while the change waits for runs under way.
	InEffect bool `json:"in_effect"`
	// WaitsFor are the runs under way that the change waits for.
	WaitsFor []uint64 `json:"waits_for,omitempty"`
	// Definition is what the API was given, without secrets.
	Definition json.RawMessage `json:"definition,omitempty"`

	status int
}

// declare declares a set or destination by PUT, and takes that back by DELETE.
func (a *api) declare(kind string) func(c *gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		name := c.Param("name")
		if a.change == nil {
			return nil, bridge.ErrNoFile
		}
		out := Definition{Name: name, Declared: "api"}
		var definition json.RawMessage
		if c.Request.Method == http.MethodPut { // DELETE takes also a bad name, of a file of declarations made elsewhere
			if err := checkName(name); err != nil {
				return nil, err
			}
			body, err := readBody(c)
			if err != nil {
				return nil, err
			}
			clean, faults, err := declared.Clean(body)
			if err != nil || len(body) == 0 || body[0] != '{' {
				return nil, fail(http.StatusBadRequest, "the body is no JSON object", "GET /openapi.json shows what is")
			}
			if len(faults) > 0 {
				return nil, faulty(faults)
			}
			definition, out.Definition = clean, declared.Shown(clean)
		}
		created := false
		inEffect, err := a.change(c.Request.Context(), func(latest *bridge.Config) (*bridge.Config, func() error, func() error, error) {
			created = latest.Declared(kind, name) == nil
			return latest.Declare(kind, name, definition)
		})
		var wrong *bridge.ConfigError
		switch {
		case errors.As(err, &wrong):
			var faults []declared.Fault
			for _, f := range wrong.Findings {
				detail := f.Message
				if f.Value != "" {
					detail = f.Value + ": " + detail
				}
				faults = append(faults, declared.Fault{Pointer: declared.Pointer(f.Key, kind, name), Detail: detail})
			}
			return nil, faulty(faults)
		case err != nil:
			return nil, err
		}
		out.InEffect = inEffect
		switch {
		case !inEffect:
			out.status = http.StatusAccepted
			for _, run := range a.b.Runner().Active() {
				if run.State == jobs.Running {
					out.WaitsFor = append(out.WaitsFor, run.ID)
				}
			}
		case created && definition != nil:
			out.status = http.StatusCreated
		}
		c.Header("Location", "/api/v1/"+kind+"/"+name)
		return out, nil
	}
}

// checkName refuses what can be the name of no set and no destination.
func checkName(name string) error {
	if err := configfile.CheckName(name); err != nil {
		return fail(http.StatusUnprocessableEntity, strconv.Quote(name)+" "+err.Error(), "")
	}
	return nil
}

func faulty(faults []declared.Fault) *Problem {
	p := fail(http.StatusUnprocessableEntity, "the declaration has faults; nothing was changed", "docs/reference/configuration.md has the keys")
	p.Errors = faults
	return p
}

// definition tells how a set or destination is declared.
func (a *api) definition(kind string) func(c *gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		find := a.destinationName
		if kind == declared.Sets {
			find = a.setName
		}
		name, err := find(c)
		if err != nil {
			return nil, err
		}
		out := Definition{Name: name, Declared: "file", InEffect: true}
		if own := a.b.Config().Declared(kind, name); own != nil {
			out.Declared, out.Definition = "api", declared.Shown(own)
		}
		return out, nil
	}
}
