package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish"
)

// RebaseReport is one set of `rebase --json`.
type RebaseReport struct {
	Name      string            `json:"name"`
	Rebased   bool              `json:"rebased"` // false: it was at these addresses already
	From      publish.Addresses `json:"from"`
	To        publish.Addresses `json:"to"`
	Sequence  uint64            `json:"sequence"` // of the change in the log; the new lists begin there
	Time      *time.Time        `json:"time"`
	Resources int64             `json:"resources"`
	Address   string            `json:"address"` // of the Capability List
	Seconds   float64           `json:"seconds"`

	Held *changetrack.Held `json:"held"` // not accepted by rebase: a scan, or other settings than the addresses
}

// rebase publishes the set at the configured addresses: it notes this in the log, durably,
// then closes the old lists and begins new ones. After a crash the next start finishes it.
func (s *set) rebase(ctx context.Context, run *jobs.Run) (any, error) {
	rep := &RebaseReport{Name: s.name}
	began := s.bridge.now()
	pub := s.bridge.pub
	from, to, err := pub.Addresses(s.name)
	if err != nil {
		return nil, fmt.Errorf("rebase %s: %w", s.name, err)
	}
	rep.From, rep.To, rep.Rebased = from, to, from != to
	if rep.Rebased {
		c, err := s.log.Rebase(ctx, publish.Move{From: from, To: to}.Note())
		if err != nil {
			return nil, err
		}
		rep.Sequence, rep.Time = c.Sequence, moment(c.Time)
	}
	if err := s.publish(ctx, run); err != nil {
		return nil, err
	}
	v := s.log.View(ctx)
	defer v.Close()
	rep.Resources, rep.Address = v.Resources(), to.Base+"/"+s.name+"/capabilitylist.xml"
	if rep.Held = s.named(ctx, v.Held(ctx)); rep.Held == nil {
		if what := s.changedSettings(ctx); what != "" {
			rep.Held = &changetrack.Held{Configuration: true, Time: s.bridge.now().UTC(), Reason: "the configuration of the set has changed: " + what}
		}
	}
	rep.Seconds = s.bridge.now().Sub(began).Seconds()
	if rep.Rebased {
		s.bridge.log.Info("rebased", "set", s.name, "from", from.Base, "to", to.Base, "from_prefix", from.Prefix, "to_prefix", to.Prefix, "sequence", rep.Sequence)
	}
	return rep, nil
}

// pending is the held change to the configured addresses, nil if they are in force.
func (s *set) pending(ctx context.Context) *changetrack.Held {
	if s.removed {
		return nil // it stays as it is
	}
	from, to := s.addresses(ctx)
	if from == to {
		return nil
	}
	id := sha256.Sum256([]byte(publish.Move{From: from, To: to}.Note()))
	return &changetrack.Held{ID: hex.EncodeToString(id[:6]), Configuration: true, Addresses: true, Time: s.bridge.now().UTC(),
		Reason: "the configuration of the set has changed: " + s.moving(ctx) +
			"; it is published at the old addresses until they are accepted: rsbridge rebase " + s.name}
}

// moving names the configured addresses not in force.
func (s *set) moving(ctx context.Context) string {
	from, to := s.addresses(ctx)
	var what []string
	if from.Base != to.Base {
		what = append(what, fmt.Sprintf("base_url from %s to %s", from.Base, to.Base))
	}
	if from.Prefix != to.Prefix {
		what = append(what, fmt.Sprintf("prefix from %q to %q", from.Prefix, to.Prefix))
	}
	return strings.Join(what, " and ")
}

// held is all waiting for a person: a scan, missing files, other addresses.
func (s *set) held(ctx context.Context, scan *changetrack.Held) *changetrack.Held {
	if renamed := s.renamed(); renamed != nil || s.removed {
		return renamed
	}
	held := s.named(ctx, scan)
	if files := s.listed().held(ctx); held == nil {
		held = files
	} else if files != nil {
		both := *held
		both.ID = idOfBoth(held.ID, files.ID)
		both.Reason += "; and " + files.Reason
		both.Deletions += files.Deletions
		both.Of += files.Of
		held = &both
	}
	addresses := s.pending(ctx)
	switch {
	case held == nil:
		return addresses
	case addresses == nil:
		return held
	}
	both := *held
	both.ID = idOfBoth(held.ID, addresses.ID)
	both.Files = false
	both.Reason += "; and other addresses wait too (" + s.moving(ctx) + "): accept takes both, rsbridge rebase " + s.name + " the addresses alone"
	return &both
}

// idOfBoth is the id of two holds.
func idOfBoth(one, other string) string {
	sum := sha256.Sum256([]byte(one + " " + other))
	return hex.EncodeToString(sum[:6])
}

// named is a held scan with the names of changed settings.
func (s *set) named(ctx context.Context, scan *changetrack.Held) *changetrack.Held {
	if scan == nil || !scan.Configuration {
		return scan
	}
	h := *scan
	if what := s.changedSettings(ctx); what != "" {
		h.Reason = strings.Replace(h.Reason, " has changed:", " has changed ("+what+"):", 1)
	}
	return &h
}

// changedSettings names the settings of a set changed since the last scan, "" if unknown.
func (s *set) changedSettings(ctx context.Context) string {
	raw, err := s.bridge.records.Get(ctx, settingsKey(s.name))
	if err != nil {
		return ""
	}
	what, _ := differences(raw, s.settings(ctx))
	return strings.Join(what, ", ")
}

// differences names different settings; ok is false for unreadable ones.
func differences(from, to []byte) (what []string, ok bool) {
	var old, now map[string]any
	if json.Unmarshal(from, &old) != nil || json.Unmarshal(to, &now) != nil {
		return nil, false
	}
	for _, key := range []string{"Graphs", "Select", "Describe", "Format"} {
		if a, b := written(old[key]), written(now[key]); a != b {
			text := fmt.Sprintf("%s from %s to %s", strings.ToLower(key), clip(a), clip(b))
			if key == "Graphs" {
				text = strings.Replace(text, " nothing", " the default graph", 1)
			}
			what = append(what, text)
		}
	}
	return what, true
}

// written is a setting as a person writes it in the configuration, without unset parts.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		if v == "" {
			return "nothing"
		}
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, written(item))
		}
		if items == nil {
			return "nothing"
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text := written(v[key]); text != "nothing" {
				keys = append(keys, strings.ToLower(key)+": "+text)
			}
		}
		if keys == nil {
			return "nothing"
		}
		return "{" + strings.Join(keys, ", ") + "}"
	}
	return fmt.Sprintf("%q", fmt.Sprint(v))
}

func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}

func settingsKey(set string) []byte { return []byte("settings/" + set) }

// addresses are those in force and the configured ones, also from a state opened for reading.
func (s *set) addresses(ctx context.Context) (inForce, configured publish.Addresses) {
	b := s.bridge
	configured = publish.Addresses{Base: b.cfg.Public.BaseURL, Prefix: s.cfg.Prefix}
	if b.pub != nil {
		if in, want, err := b.pub.Addresses(s.name); err == nil {
			return in, want
		}
	} else if b.kv != nil {
		if in, known, err := publish.ReadAddresses(ctx, kv.Prefix(b.kv, spaces.Publish), s.name, s.log); err == nil && known {
			return in, configured
		}
	}
	return configured, configured
}

// capabilityBase is the base URL of the set now.
func (s *set) capabilityBase(ctx context.Context) string {
	in, _ := s.addresses(ctx)
	return in.Base
}

// capabilityList is the present address of the set.
func (s *set) capabilityList(ctx context.Context) string {
	return s.capabilityBase(ctx) + "/" + s.name + "/capabilitylist.xml"
}
