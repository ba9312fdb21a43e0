// Package records opens the records of a state: in its folder, or in a PostgreSQL database. Move takes them from
// one to the other.
//
// Records below the prefix state/ are marks of moves. Only this package reads them, and a move does not copy them.
//
// A database may go back: a failover to a copy that lags, or an old backup, lacks commits that were confirmed. So
// each process notes in its state folder the newest durable commit that it knows: the leader each one before Commit
// returns, a standby the one of each state before it serves it. Nothing leaves a process that rests on a later one.
//
// A commit is noted by its lead, a name of its own, and its number. The database knows all leads of its past, and
// the last commit of each. If it does not know the noted lead, or that lead ended earlier, commits are lost. Then
// Open gives a *LostError, and nothing is written. A database that went on with other commits is found out too: its
// later leads are not the noted one. Commits without sync are not noted, so a crash of the database loses none.
//
// Either the database is brought back, or AcceptLoss makes its older state the one to go on with. It writes that into
// the database, so other folders with notes of the lost lead accept it too. A bucket with published files has the
// note of the newest publication, for machines that have no note.
package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/kv/pgkv"
)

// engines are the ways to keep records.
var engines = kv.Engines{"pebble": pebblekv.Engine, "postgres": pgkv.Engine, "postgresql": pgkv.Engine}

// IsDatabase tells whether the address of a state names a database; any other is a folder.
func IsDatabase(state string) bool {
	scheme, _, found := strings.Cut(state, "://")
	return found && (strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql"))
}

// FolderOf is the folder of a state in a database, beside its configuration file.
func FolderOf(file string) string {
	name := filepath.Base(cmp.Or(file, "rsbridge.yaml"))
	return strings.TrimSuffix(name, filepath.Ext(name)) + ".state"
}

// At is the place of a state by its address, and by the folder beside a database.
func At(state, folder string) Place {
	if IsDatabase(state) {
		return Place{Folder: folder, Database: state}
	}
	return Place{Folder: state}
}

// Fault tells which setting of a state is wrong, and why. It names no value: a password may be in it.
func Fault(state, folder string) (key, why string) {
	switch {
	case state == "":
		return "state", "is needed: a folder, or the address of a PostgreSQL database"
	case IsDatabase(state) && folder == "":
		return "state_folder", "is needed beside a state in a database"
	case IsDatabase(state):
		return "", ""
	case strings.Contains(state, "://"):
		return "state", "is neither a folder nor the address of a PostgreSQL database: write postgres://USER@HOST/DATABASE"
	case folder != "":
		return "state_folder", "is for a state in a database: this one is a folder already"
	}
	return "", ""
}

// Place is where the records of a state are.
type Place struct {
	Folder   string // of the state
	Database string // URL; "": the records are in Folder
}

// String names a place for people, without a password.
func (p Place) String() string {
	if p.Database == "" {
		return p.Folder
	}
	u, err := url.Parse(p.Database)
	if err != nil {
		return "the PostgreSQL database"
	}
	name := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if user := u.User.Username(); user != "" {
		name.User = url.User(user)
	}
	return name.String()
}

// OpenNew is Open of a place without records: others give ErrNotEmpty.
func (p Place) OpenNew(ctx context.Context, o kv.OpenOptions) (kv.Store, error) {
	s, err := p.open(ctx, o)
	if err != nil {
		return nil, err
	}
	m, err := readMarks(ctx, s)
	if err == nil && (m.holding || len(m.by) > 0) {
		err = &MarkError{Place: p.String(), Other: "only an empty place is filled", Err: ErrNotEmpty}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Dir has the records in a folder.
func (p Place) Dir() string { return filepath.Join(p.Folder, "kv") }

// Missing is an fs.ErrNotExist for a folder without records. It asks no database: only Open does.
func (p Place) Missing() error {
	if p.Database != "" {
		return nil
	}
	_, err := os.Stat(p.Dir())
	return err
}

// Open opens the records, and makes missing ones. With ReadOnly missing ones give fs.ErrNotExist, and those of a
// database are read as of one moment. Records of an unfinished move, and moved ones, are refused; for writing also a
// database that has lost commits (*LostError).
func (p Place) Open(ctx context.Context, o kv.OpenOptions) (kv.Store, error) {
	o.Noted = p.note
	s, err := p.open(ctx, o)
	if err != nil {
		return nil, err
	}
	m, err := readMarks(ctx, s)
	if err == nil {
		err = m.usable(p)
	}
	if led, ok := s.(kv.Led); ok && err == nil && !o.ReadOnly {
		_, _, err = p.compare(ctx, led)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if o.ReadOnly && p.Database != "" {
		now := s.Snapshot(ctx)
		return &fixed{kv.Asker{Reader: now}, now, s}, nil
	}
	return s, nil
}

func (p Place) open(ctx context.Context, o kv.OpenOptions) (kv.Store, error) {
	address := p.Database
	if address == "" {
		address = "pebble:" + p.Dir()
	}
	s, err := engines.Open(ctx, address, o)
	if err != nil {
		return nil, fmt.Errorf("open the state in %s: %w", p, err)
	}
	return s, nil
}

// fixed reads a store of one moment while others write it.
type fixed struct {
	kv.Asker
	now   kv.Snapshot
	store kv.Store
}

func (f *fixed) Snapshot(context.Context) kv.Snapshot { return stays{f.Asker} }
func (f *fixed) Batch() kv.Batch                      { return f.store.Batch() }

func (f *fixed) Close() error {
	return errors.Join(f.now.Close(), f.store.Close())
}

// stays is the snapshot of fixed: its users do not close it.
type stays struct{ kv.Asker }

func (stays) Close() error { return nil }
