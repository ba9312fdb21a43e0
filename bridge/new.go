package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/bridge/storelog"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Reach asks every remote store a cheap question, and follows every source to its mirrored
// set, without opening the state. It tries to make and write local folders, and opens
// embedded stores without a change. It returns the errors by "store NAME", "set NAME" (of
// dumps) and "destination NAME".
func Reach(ctx context.Context, cfg *Config, log *slog.Logger) map[string]error {
	out := map[string]error{}
	for name, s := range cfg.Stores {
		if s.IsLocal() {
			err := s.TryPlace()
			if err == nil && s.Embedded != "" {
				err = tryEmbedded(cfg, s.Embedded)
			}
			if err != nil {
				out["store "+name] = err
			}
			continue
		}
		err := reachStore(ctx, name, s, log)
		if err == nil {
			err = storelog.Try(s.PatchLog)
		}
		if err != nil {
			out["store "+name] = err
		}
	}
	_, faults := Newest(cfg, log)
	for name, err := range faults {
		out["set "+name] = err
	}
	for name := range cfg.Destinations {
		if err := reachSource(ctx, cfg, name, log); err != nil {
			out["destination "+name] = err
		}
	}
	return out
}

// EmptyGraphs are the empty graphs of sets in remote stores, by the set's name: perhaps they
// are mistyped.
func EmptyGraphs(ctx context.Context, cfg *Config, log *slog.Logger) map[string][]string {
	out := map[string][]string{}
	for name, s := range cfg.Sets {
		st, ok := cfg.Stores[s.Store]
		if !ok || st.IsLocal() || len(s.Graphs) == 0 || s.Graphs[0] == "*" {
			continue
		}
		err := askStore(st, s.Store, log, func(c *sparql.Client) (err error) {
			out[name], err = c.EmptyGraphs(ctx, s.Graphs)
			return err
		})
		if err != nil {
			log.Info("it is not known whether each graph of the set holds something", "set", name, "error", err)
		}
		if len(out[name]) == 0 {
			delete(out, name)
		}
	}
	return out
}

// tryEmbedded is the error of opening an embedded store. The holder of the state may hold
// its stores.
func tryEmbedded(cfg *Config, dir string) error {
	err := embedstore.Try(dir)
	var locked *embedstore.LockedError
	if errors.As(err, &locked) && locked.Process() == holder.Read(cfg.Folder()).PID {
		return nil
	}
	return err
}

func reachStore(ctx context.Context, name string, s Store, log *slog.Logger) error {
	return askStore(s, name, log, func(c *sparql.Client) error {
		_, err := c.Ask(ctx, "ASK { <urn:rsbridge:nothing> <urn:rsbridge:nothing> <urn:rsbridge:nothing> }")
		return err
	})
}

// ask gives a client without retries to some questions.
func askStore(s Store, name string, log *slog.Logger, questions func(*sparql.Client) error) error {
	e := s.Endpoint(name, nil, log)
	e.Retries = -1
	c, err := sparql.New(e)
	if err != nil {
		return err
	}
	return errors.Join(questions(c), c.Close())
}

func reachSource(ctx context.Context, c *Config, name string, log *slog.Logger) error {
	d := c.Destinations[name]
	if own := c.Public.BaseURL; own != "" && strings.HasPrefix(d.Source, own) { // this configuration serves it itself
		site := strings.TrimRight(strings.TrimSuffix(d.Source[len(own):], "/.well-known/resourcesync"), "/") == ""
		if _, one := c.Sets[d.Set]; !site || one || d.Set == "" && len(c.Sets) == 1 || strings.Contains(d.Set, "/") {
			return nil
		}
		if d.Set == "" {
			return fmt.Errorf("%s is this configuration itself and has %d sets; choose one with set: %s", webguard.Masked(d.Source), len(c.Sets), config.NamesOf(c.Sets))
		}
		return fmt.Errorf("%s is this configuration itself and has no set %s; it has: %s", webguard.Masked(d.Source), d.Set, config.NamesOf(c.Sets))
	}
	with := func(next http.RoundTripper) (http.RoundTripper, error) { return d.Login.Transport(d.Source, next) }
	if err := webclient.Reach(ctx, d.Source, c.UserAgent, with); err != nil {
		return err
	}
	transport, err := with(plainTransport())
	if err != nil {
		return err
	}
	return destination.Reach(ctx, c.Mirror(name, ""), destination.Options{Transport: transport, Logger: log})
}
