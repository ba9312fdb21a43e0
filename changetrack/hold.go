package changetrack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/rdfres"
)

// alwaysAllowed is how many deletions are never too many, unless they are all.
const alwaysAllowed = 10

// checkAccept reads the held candidate, and compares the configuration with the one in force.
func (s *scan) checkAccept(ctx context.Context) (err error) {
	if s.held, err = readHeld(ctx, s.view.r); err != nil {
		return err
	}
	if s.o.Accept != "" && (s.held == nil || s.held.ID != s.o.Accept) {
		if s.held == nil {
			return fmt.Errorf("accept %s: %w: nothing is held", s.o.Accept, ErrNoCandidate)
		}
		return fmt.Errorf("accept %s: %w: %s is held", s.o.Accept, ErrNoCandidate, s.held.ID)
	}
	s.dry = s.newConfiguration() && (s.o.Accept == "" || s.held.Fingerprint != s.o.Fingerprint)
	if s.dry && s.o.Partial {
		return ErrFingerprint
	}
	s.dry = s.dry && s.view.head.seq > 0 // else nobody was told of anything
	return nil
}

func (s *scan) newConfiguration() bool {
	in := s.view.head.fingerprint
	return in != "" && s.o.Fingerprint != "" && in != s.o.Fingerprint
}

// loss counts a scan's deletions, and the present resources.
type loss struct {
	entities, ofEntities int64 // deletions under the limit, and the resources they are compared with
	accepted             int64 // accepted deletions, outside the limit
	triples, ofTriples   int64
	resources            int64
	everything           bool
}

// tooMuch says why a loss needs a person, "" if it does not. Both shares have the
// floor of ten entities: for triples, of ten average ones.
func (l loss) tooMuch(ratio float64, names settings.Names) string {
	if ratio < 0 {
		return ""
	}
	already, others := "", ""
	if l.accepted > 0 { // the whole scan waits again
		already, others = fmt.Sprintf(", %d of which were accepted", l.accepted), " others"
	}
	if l.everything && l.entities+l.accepted == 1 {
		return "it would delete everything: the only resource"
	}
	if l.everything {
		return fmt.Sprintf("it would delete everything: all %d resources%s", l.entities+l.accepted, already)
	}
	if limit := max(ratio*float64(l.resources), alwaysAllowed); float64(l.entities) > limit {
		return fmt.Sprintf("it would delete %d of %d resources%s; %d%s are allowed (%s: %g)",
			l.entities+l.accepted, l.resources, already, int64(limit), others, names.Of("max_delete_ratio"), ratio)
	}
	if l.resources == 0 {
		return ""
	}
	floor := alwaysAllowed * float64(l.ofTriples) / float64(l.resources)
	if limit := max(ratio*float64(l.ofTriples), floor); float64(l.triples) > limit {
		return fmt.Sprintf("it would delete %d of %d triples; %d are allowed (%s: %g)",
			l.triples, l.ofTriples, int64(limit), names.Of("max_delete_ratio"), ratio)
	}
	return ""
}

// loss adds up deletions not accepted with a candidate, and the triples lost from remaining
// descriptions. Of orphan components only the fall of their number counts, since an edit of one
// replaces it.
func (s *scan) loss() loss {
	head, sum := s.view.head, s.sum
	entities := s.res.Deleted - sum.componentsGone - sum.allowed - sum.allowedComponents
	lost := sum.lost
	if s.o.Accept != "" {
		lost = max(0, lost-s.held.Lost)
	}
	l := loss{
		entities:  entities,
		triples:   sum.deletedTriples - sum.allowedTriples + lost,
		ofTriples: head.triples,
		resources: head.resources,
		accepted:  sum.allowed,
	}
	l.ofEntities = head.resources - sum.allowed
	if fall := sum.componentsGone - sum.componentsGain; fall > 0 {
		l.entities += fall
		l.triples += max(0, sum.componentLost-sum.componentFound)
	} else {
		l.ofEntities -= head.components
	}
	l.everything = l.entities > 0 && l.entities >= l.ofEntities
	return l
}

func (s *scan) reasonToHold(ctx context.Context) (reason string, configuration bool, err error) {
	if s.o.Accept != "" {
		if err := s.countAllowed(ctx); err != nil {
			return "", false, err
		}
	}
	reason = s.loss().tooMuch(s.o.MaxDeleteRatio, s.l.t.o.Names)
	if !s.dry {
		return reason, false, nil
	}
	if reason == "" {
		reason = fmt.Sprintf("it would create %d, update %d and delete %d resources", s.res.Created, s.res.Updated, s.res.Deleted)
	}
	return "the configuration of the set has changed: " + reason, true, nil
}

// countAllowed finds the deletions named by the accepted candidate.
func (s *scan) countAllowed(ctx context.Context) error {
	for rec, err := range s.changes.all() {
		if err != nil {
			return err
		}
		c, err := readStaged(rec)
		if err != nil {
			return err
		}
		if c.kind != Deleted {
			continue
		}
		ok, err := candidateHas(ctx, s.view.r, s.held.Generation, c.entity)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		old, err := readState(c.old)
		if err != nil {
			return err
		}
		if isComponent(c.entity) {
			// As if it had never been there: neither a loss nor to be made up for.
			s.sum.componentsGone--
			s.sum.componentLost -= int64(old.current.Triples)
			s.sum.allowedComponents++
			continue
		}
		s.sum.allowed++
		s.sum.allowedTriples += int64(old.current.Triples)
	}
	return nil
}

// hold records the scan as the waiting candidate.
func (s *scan) hold(ctx context.Context, reason string, configuration bool) error {
	id, err := s.candidateID(configuration)
	if err != nil {
		return err
	}
	now := s.l.t.o.Now().UTC().Truncate(time.Microsecond)
	held := Held{ID: id, Reason: reason, Deletions: s.res.Deleted, Of: s.view.head.resources, Time: now, Configuration: configuration}
	if s.held != nil && s.held.ID == id {
		held.Time = s.held.Time // since when it waits
	}
	s.res.Held = &held
	s.res.Resources, s.res.Triples = s.view.head.resources, s.view.head.triples
	record, err := json.Marshal(lastScan{recordVersion, now, s.res})
	if err != nil {
		return fmt.Errorf("record the scan: %w", err)
	}
	s.l.t.o.Logger.Warn("scan is held", "set", s.l.name, "id", id, "reason", reason)
	h := heldRecord{Held: held, Fingerprint: s.o.Fingerprint, Lost: s.sum.lost}
	return s.l.hold(ctx, s.changes, h, s.view.head, record)
}

// candidateID is made of the deletions and of the configuration.
func (s *scan) candidateID(configuration bool) (string, error) {
	h := sha256.New()
	if configuration {
		fmt.Fprintf(h, "configuration %q\n", s.o.Fingerprint)
	}
	for rec, err := range s.changes.all() {
		if err != nil {
			return "", err
		}
		c, err := readStaged(rec)
		if err != nil {
			return "", err
		}
		if c.kind == Deleted {
			k := rdfres.EntityKey(c.entity)
			h.Write(k[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}
