package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/content"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish"
)

// FilesReport tells the state of the files behind the descriptions of a set.
type FilesReport = content.Report

// openFiles makes the follower of a set, and links logged files without a link. Without
// files in the configuration it takes the former ones out.
func (s *set) openFiles(ctx context.Context) error {
	if len(s.cfg.Content.Properties) == 0 {
		if err := s.log.LinkFiles(ctx, changetrack.LinkOptions{}); err != nil {
			return err
		}
		_, err := s.log.DropFiles(ctx)
		return err
	}
	b := s.bridge
	var err error
	s.follower, err = content.New(kv.Prefix(b.records, contentPrefix(s.name)), s.log, s.cfg.FollowerConfig(), content.Options{
		Now: b.now, Logger: b.log.With("component", "content", "set", s.name),
		Progress:  func(done, total int64) { s.progress("files", done, total) },
		UserAgent: b.cfg.UserAgent,
	})
	if err != nil {
		return err
	}
	_, err = s.follower.Link(ctx)
	return err
}

// publishAlternates publishes the sets with this one among their alternates, after a change.
func (s *set) publishAlternates(ctx context.Context) error {
	for name, other := range s.bridge.sets {
		if !slices.Contains(other.cfg.Alternates, s.name) {
			continue
		}
		if other.follower != nil {
			if _, err := other.follower.Link(ctx); err != nil {
				return err
			}
		}
		if _, err := s.bridge.pub.Publish(ctx, name); err != nil {
			return fmt.Errorf("publish %s, an alternate of %s: %w", name, s.name, err)
		}
	}
	return nil
}

// listedFiles answers about the files of a set; its state may be open for reading only.
type listedFiles struct {
	set      string
	cfg      *Set
	log      *changetrack.Log
	follower *content.Follower // nil: it is not followed here
	kv       kv.Store
}

func (s *set) listed() *listedFiles {
	return &listedFiles{s.name, &s.cfg, s.log, s.follower, s.bridge.records}
}

// fetch begins to fetch files for a Resource Dump.
func (f *listedFiles) fetch() publish.FetchFile {
	if f.follower == nil {
		return nil
	}
	return f.follower.Fetcher().Fetch
}

func contentPrefix(set string) []byte { return []byte("content/" + set + "\x00") }

// followFiles looks at the due files, and publishes their changes.
func (s *set) followFiles(ctx context.Context, run *jobs.Run, accept string) (*FilesReport, error) {
	if s.follower == nil {
		return nil, nil
	}
	if _, _, ok := s.baseline(ctx); !ok {
		return nil, nil
	}
	run.Progress("files", 0, 0)
	rep, err := s.follower.Run(ctx, accept)
	if rep.Created+rep.Updated+rep.Deleted > 0 { // also after an error
		err = errors.Join(err, s.publish(ctx, run))
	}
	if err != nil {
		return &rep, err
	}
	s.bridge.log.Info("looked at files", "set", s.name, "files", rep.Led, "looked", rep.Looked, "created", rep.Created, "updated", rep.Updated,
		"deleted", rep.Deleted, "failing", rep.Failing, "missing", rep.Missing, "elsewhere", rep.Elsewhere, "waiting", rep.Waiting)
	return &rep, nil
}

func (s *set) baseline(ctx context.Context) (uint64, time.Time, bool) {
	v := s.log.View(ctx)
	defer v.Close()
	return v.BaselineEnd()
}

// status is how the files stand, nil when the set has none.
func (f *listedFiles) status(ctx context.Context) (*FilesReport, error) {
	if len(f.cfg.Content.Properties) == 0 {
		return nil, nil
	}
	records, err := f.records()
	if err != nil {
		return nil, err
	}
	rep, err := records.Status(ctx)
	if rep == nil && err == nil {
		rep = &FilesReport{}
	}
	return rep, err
}

// records reads the records of the files; the state may be open for reading only.
func (f *listedFiles) records() (*content.Follower, error) {
	if f.follower != nil {
		return f.follower, nil
	}
	return content.New(kv.Prefix(f.kv, contentPrefix(f.set)), f.log, f.cfg.FollowerConfig(), content.Options{})
}

// held is the held deletion of too many files at once.
func (f *listedFiles) held(ctx context.Context) *changetrack.Held {
	rep, err := f.status(ctx)
	if err != nil || rep == nil || rep.Held == nil {
		return nil
	}
	return &changetrack.Held{ID: rep.Held.ID, Files: true, Reason: rep.Held.Reason, Deletions: rep.Held.Deletions, Of: rep.Held.Of, Time: rep.Held.Time}
}

// FileLine is a file behind descriptions.
type FileLine struct {
	File        string     `json:"file"`
	Listed      bool       `json:"listed"` // it is a resource of the set: it was there when it was looked at
	Type        string     `json:"type,omitempty"`
	Encoding    string     `json:"encoding,omitempty"`
	Length      *int64     `json:"length,omitempty"`
	Modified    *time.Time `json:"modified,omitempty"`
	SHA256      string     `json:"sha256,omitempty"`
	Sequence    uint64     `json:"sequence,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	Gone        *time.Time `json:"gone,omitempty"`
	Changes     int        `json:"changes"`
	Looked      *time.Time `json:"looked,omitempty"`
	Trouble     string     `json:"trouble,omitempty"`
	DescribedBy []string   `json:"described_by"` // entities, at most 100
}

// line tells of a file; ErrUnknown when no description leads to it.
func (f *listedFiles) line(ctx context.Context, address string) (*FileLine, error) {
	v := f.log.View(ctx)
	defer v.Close()
	st, err := v.File(ctx, address)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%s in set %s: %w", address, f.set, ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	l := &FileLine{File: st.URL, Changes: st.Changes, Gone: moment(st.Gone), DescribedBy: []string{}}
	if c := st.Current; c != nil {
		l.Listed, l.Type, l.Encoding, l.Modified, l.Sequence, l.Time = true, c.Type, c.Encoding, moment(c.Modified), c.Sequence, moment(c.Time)
		if c.Length >= 0 {
			l.Length = &c.Length
		}
		if !c.SHA256.IsZero() {
			l.SHA256 = c.SHA256.String()
		}
	}
	for entity, err := range v.LeadingTo(ctx, address) {
		if err != nil {
			return nil, err
		}
		if l.DescribedBy = append(l.DescribedBy, entity); len(l.DescribedBy) >= 100 {
			break
		}
	}
	if f.follower != nil {
		at, trouble, err := f.follower.Look(ctx, address)
		if err != nil {
			return nil, err
		}
		l.Looked, l.Trouble = moment(at), trouble
	}
	return l, nil
}

// describe is the JSON of a file.
func (f *listedFiles) describe(ctx context.Context, address string) ([]byte, error) {
	l, err := f.line(ctx, address)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(l, "", "  ")
	return append(data, '\n'), err
}

// fileVersionLine gives a version of a file in the form of one of a description.
func fileVersionLine(v *changetrack.FileVersion) *VersionLine {
	if v == nil {
		return nil
	}
	l := &VersionLine{Sequence: v.Sequence, Time: v.Time.UTC(), Length: v.Length, Type: v.Type}
	if !v.SHA256.IsZero() {
		l.SHA256 = v.SHA256.String()
	}
	return l
}
