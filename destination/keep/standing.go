package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Standing tells the owner of the mirror, and its last write.
type Standing struct {
	*Memory
	Fates   *Fates
	Config  *Config
	Options *Options
	Mirror  *sink.Full
	Files   *Files  // of the mirror or beside it, nil for none
	Beside  *Beside // the folder of resources without RDF, nil for none
	Target  string  // the mirror's address, without an access token
}

// Fates tells the log the fate of each change.
type Fates struct {
	*Memory
	Quiet bool
}

// Beside is the folder of Config.Files, a mirror of its own: with it a checkpoint tells the
// destination.
type Beside struct {
	*sink.Full
	Folder *filesink.Folder
}

// ErrMirror marks failures of the mirror.
var ErrMirror = errors.New("mirror")

// MirrorError is the error of a file of the mirror.
func MirrorError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMirror, err)
}

// RecordedStatements are those of the kept representation, taken unchecked.
func (stand *Standing) RecordedStatements(ctx context.Context, loc ledger.Hash, rec *ledger.Record) ([]sink.Statement, error) {
	ts, err := stand.Ledger.Triples(ctx, loc, rec)
	if err != nil {
		return nil, err
	}
	return stand.Mirror.Layout.Statements(rec.Entity, ts)
}

// StatementCount is how many triples a resource has in the mirror's normal form.
func (stand *Standing) StatementCount(ctx context.Context, loc ledger.Hash) (int, error) {
	sts, _, err := stand.StatementsOf(ctx, loc)
	return len(sts), err
}

// StatementsOf computes the statements of a recorded resource in the mirror, from its kept representation,
// proven by its digest.
func (stand *Standing) StatementsOf(ctx context.Context, loc ledger.Hash) ([]sink.Statement, *ledger.Record, error) {
	rec, err := stand.Ledger.Record(ctx, loc)
	if err != nil {
		return nil, nil, err
	}
	if rec == nil {
		return nil, nil, kv.ErrNotFound
	}
	ts, err := stand.Ledger.Proven(ctx, loc, rec)
	if err != nil {
		return nil, rec, err
	}
	sts, err := stand.Mirror.Layout.Statements(rec.Entity, ts)
	return sts, rec, err
}

// Theirs is a triple owned by another destination in the same graph, an empty one if its kept
// representation is damaged.
func (stand *Standing) Theirs(ctx context.Context, o ledger.Owner, hash ledger.Hash) (*sink.Statement, error) {
	m, err := ledger.MetaOf(ctx, stand.Store, o.Dest)
	if err != nil {
		return nil, fmt.Errorf("another destination of this graph: %w", err)
	}
	lay := stand.Mirror.Layout
	lay.Authority = m.Authority
	other := &Standing{Memory: &Memory{Store: stand.Store, Ledger: stand.Ledger.Of(o.Dest), Dest: o.Dest}, Mirror: &sink.Full{Place: &sink.Place{Layout: lay}}}
	sts, _, err := other.StatementsOf(ctx, o.Loc)
	if err != nil && !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	if i := slices.IndexFunc(sts, func(st sink.Statement) bool { return st.Hash == hash }); i >= 0 {
		return &sts[i], nil
	}
	return &sink.Statement{}, nil
}

func (stand *Standing) MarkMirrors(mark string) {
	stand.Mirror.Mark = mark
	if stand.Beside != nil {
		stand.Beside.Mark = mark
	}
}

// At is the address of the mirror as it may be printed.
func (stand *Standing) At() string {
	return sink.Shown(stand.Target)
}

// SetAuthority fixes the authority of skolem IRIs for ever at the first sync.
func (stand *Standing) SetAuthority(ctx context.Context, a string) error {
	if stand.Meta.Authority != "" {
		if a != stand.Meta.Authority {
			stand.Log.Warn("the source has moved; skolem IRIs keep the authority they were made with", "authority", stand.Meta.Authority, "now", a)
		}
		return nil
	}
	if a == "" {
		return errors.New("the source has no scheme and host to make skolem IRIs with")
	}
	if err := sink.CheckIRI("<" + a + "/>"); err != nil {
		return err
	}
	if err := stand.SaveMeta(ctx, func(m *Meta) { m.Authority = a }); err != nil {
		return err
	}
	stand.Mirror.Layout.Authority = a
	return nil
}

func (stand *Standing) CheckpointOf(m *Meta) *sink.Checkpoint {
	cp := &sink.Checkpoint{
		Generation: fmt.Sprint(m.Generation), Writer: m.Writer, Phase: m.phase(), Name: stand.Config.Name, Source: stand.Config.Source, Graph: stand.GraphName(),
		Time: stand.Options.Now().UTC().Format(time.RFC3339Nano),
	}
	if n := m.At.Cursor().Sequence(); n != nil {
		cp.Sequence = fmt.Sprint(*n)
	}
	return cp
}

// GraphName names the graph in the checkpoint.
func (stand *Standing) GraphName() string {
	switch {
	case stand.Mirror.Layout.PerEntity:
		return stand.Mirror.Layout.Template
	case stand.Mirror.Layout.Graph == "":
		return "default"
	}
	return stand.Mirror.Layout.Graph
}

// Files are those of the destination: its mirror, or beside it.
type Files struct {
	sink.Files
	Memory *Memory
	State  func(*ledger.Record) rdfres.Digest
	Key    func(name ledger.Hash) []byte // of the record of a path
}

// Differs compares the file of a resource with its record, perhaps there is none; why is "" for no difference.
func (f *Files) Differs(ctx context.Context, rec *ledger.Record) (none bool, why string, err error) {
	name, err := f.Find(ctx, f.Names(nil), rec.Loc)
	if err != nil {
		return false, "", err
	}
	if name == "" {
		return true, "it has no file", nil
	}
	sum, err := f.Digest(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, "its file " + name + " is gone", nil
	case err != nil:
		return true, "its file cannot be read: " + err.Error(), nil
	case sum != f.State(rec):
		return false, "its file " + name + " has other bytes than were verified", nil
	}
	return false, "", nil
}

func (f *Files) shows(ctx context.Context, rec *ledger.Record) (could, there bool, err error) {
	_, why, err := f.Differs(ctx, rec)
	return true, why == "", err
}

// Lost tells of a resource to be fetched again: its file or its kept representation is not as recorded.
func (stand *Standing) Lost(ctx context.Context, loc ledger.Hash, rec *ledger.Record) bool {
	if stand.Files != nil && (stand.Beside == nil || rec.Has(ledger.FlagNotRDF)) {
		_, why, _ := stand.Files.Differs(ctx, rec)
		return why != ""
	}
	_, err := stand.Ledger.Proven(ctx, loc, rec)
	return err != nil
}

func (f *Files) Names(b kv.Batch) *ledger.Paths { return f.Memory.Ledger.Paths(f.Key, b) }

// Spares refuses to write a file over one that this destination did not write. Of an adopted folder
// all are ours that are there before the first run has ended.
func (stand *Standing) Spares(ctx context.Context, loc string, body []byte) error {
	if stand.Files == nil || stand.Config.Adopt && stand.Memory.SnapshotMeta().LastSync.IsZero() {
		return nil
	}
	return stand.Files.InTheWay(ctx, stand.Files.Names(nil), loc, body)
}

// Pauses tells of a fault that waits for its next try. The file in its way may have gone.
func (stand *Standing) Pauses(ctx context.Context, f *ledger.Fault, longest time.Duration) bool {
	return f.Waits(stand.Options.Now(), longest) && !(f.Blocked && stand.Spares(ctx, f.Loc, nil) == nil)
}

// Undo removes what an interrupted batch may have left of a resource. Of a recorded one only a file
// without a record of its path goes: it would be taken for somebody else's.
func (f *Files) Undo(ctx context.Context, b kv.Batch, loc string, recorded bool) error {
	if recorded {
		if name, err := f.Find(ctx, f.Names(nil), loc); err != nil || name != "" {
			return err
		}
	}
	files := f.Begin(f.Names(b), 1)
	defer files.Close()
	return files.Clear(ctx, loc)
}

// SameMirror refuses a store with other things than this mirror, as a new one at the same
// address. A mirror without a checkpoint may be almost forgotten.
func (stand *Standing) SameMirror(ctx context.Context, m *Meta) error {
	cp, err := stand.Mirror.Checkpoint(ctx)
	if err != nil || cp != nil || m.CompareMirror == BeingForgotten {
		return err
	}
	return stand.IsTheMirror(ctx)
}

// ForeignPlaceError refuses the place of a mirror: it holds data of somebody else.
type ForeignPlaceError struct {
	What string // is in which place
	Todo string
}

func (e *ForeignPlaceError) Error() string {
	return e.What + "; nothing was changed: " + e.Todo
}

// Damage is what status tells of damage found by an audit. why is the error of repairing it, if there is
// one.
func Damage(why error) string {
	var foreign *ForeignPlaceError
	var other *sink.NotFileError
	switch {
	case errors.As(why, &foreign):
		return foreign.Error()
	case errors.As(why, &other):
		return other.Error()
	}
	return "an audit found the mirror changed or incomplete; audit --repair restores it"
}

// FirstFiles tells of files that no run has kept in their folder yet.
func (stand *Standing) FirstFiles() bool {
	m := stand.SnapshotMeta()
	return m.Stage == ledger.None || stand.Beside != nil && m.Files != stand.Config.Files
}

// ClaimBeside makes the folder ours, and tells whether it is new: its files are to be fetched. A dry
// call writes nothing there.
func (stand *Standing) ClaimBeside(ctx context.Context, dry bool) (fresh bool, err error) {
	m := stand.Beside
	if cp, err := m.Checkpoint(ctx); err != nil || cp != nil {
		return false, err
	}
	there, err := stand.IsBeside(ctx)
	if err != nil {
		return false, err
	}
	others, err := m.Others(ctx, "")
	if err != nil {
		return false, err
	}
	for mark, of := range others { // adopted
		if dry {
			break
		}
		before, err := m.Folder.Open(&sink.Place{Mark: mark})
		if err == nil {
			err = before.(sink.Marked).Forget(ctx, false)
		}
		if err != nil {
			return false, fmt.Errorf("files: take over from %s: %w", of.Name, err)
		}
	}
	if !there {
		return true, nil
	}
	if err := stand.NoteCompare(ctx, LostCheckpoint); err != nil || dry {
		return false, err
	}
	return false, m.Apply(ctx, &sink.Batch{}, stand.CheckpointOf(&stand.Meta))
}

// IsBeside refuses a folder that holds something else, and tells whether ours is there: without a
// checkpoint some of our files are.
func (stand *Standing) IsBeside(ctx context.Context) (there bool, err error) {
	m := stand.Beside
	if m == nil {
		return false, nil
	}
	if cp, err := m.Checkpoint(ctx); err != nil || cp != nil {
		return cp != nil, err
	}
	others, err := m.Others(ctx, "")
	if err != nil {
		return false, err
	}
	adopt := stand.Config.Settings.Of("adopt: true")
	for _, of := range others {
		if !stand.Config.Adopt {
			return false, &ForeignPlaceError{fmt.Sprintf("folder %s is kept by the destination %q of another state", stand.Config.Files, of.Name), "choose another folder, or give " + adopt + " to take it over"}
		}
	}
	if stand.SnapshotMeta().Files == stand.Config.Files {
		there, _, err := stand.Ledger.ShowsSome(ctx, func(_ ledger.Hash, rec *ledger.Record) (could, there bool, err error) {
			if !rec.Has(ledger.FlagNotRDF) {
				return false, false, nil
			}
			return stand.Files.shows(ctx, rec)
		})
		if err != nil || there {
			return there, err
		}
	}
	empty, err := m.IsEmpty(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("files: %w", err)
	}
	if !empty && !stand.Config.Adopt {
		return false, &ForeignPlaceError{fmt.Sprintf("folder %s has no %s, and already holds something that rsbridge did not write", stand.Config.Files, filesink.StateFile), "choose another one, empty it, or give " + adopt + ", after which an audit finds what is not of the source"}
	}
	return false, nil
}

// Gone tells of a place without anything: nothing of the mirror can be removed.
func (stand *Standing) Gone(ctx context.Context, m *sink.Full) (bool, error) {
	if !m.Remarks {
		return false, nil
	}
	if cp, err := m.Checkpoint(ctx); err != nil || cp != nil {
		return false, err
	}
	singles, err := stand.singles(ctx)
	if err != nil {
		return false, err
	}
	return m.IsEmpty(ctx, maps.Keys(singles))
}

// singles are the graphs of this store that other destinations of this state have filled
// with all of their resources, and the names of those. A per-entity graph may not be one.
func (stand *Standing) singles(ctx context.Context) (map[string]string, error) {
	metas, err := stand.Metas(ctx)
	graphs := map[string]string{}
	for _, m := range metas {
		g, single := strings.CutPrefix(m.Graph, ledger.SingleSpace)
		if !single || g == "" || m.Stage == ledger.None {
			continue
		}
		if space, err := ledger.SpaceID(ctx, stand.Store, ledger.Space{Target: stand.Target, Name: m.Graph}); err == nil && space == m.Space {
			graphs[g] = m.Name
		}
	}
	return graphs, err
}

// SingleOf is the destination that has all of its resources in a graph, "" if none has.
func (stand *Standing) SingleOf(ctx context.Context, graph string) (string, error) {
	if space, err := ledger.SpaceID(ctx, stand.Store, ledger.Space{Target: stand.Target, Name: ledger.SingleSpace + graph}); err != nil || space == 0 {
		return "", err
	}
	graphs, err := stand.singles(ctx)
	return graphs[graph], err
}

// WritePlan writes what is no batch of resources, with the next checkpoint. The
// caller holds the space.
func (stand *Standing) WritePlan(ctx context.Context, p *sink.Batch) error {
	m := stand.SnapshotMeta()
	stand.Wrote(&m)
	if err := stand.Mirror.Apply(ctx, p, stand.CheckpointOf(&m)); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	if err := stand.CrashAt("written"); err != nil {
		return err
	}
	return stand.SaveMeta(context.WithoutCancel(ctx), stand.Wrote) // the mirror has it
}

// TakeOver makes the mark of an earlier state of this destination ours, and with
// it the graphs that it owns.
func (stand *Standing) TakeOver(ctx context.Context, mark string) error {
	if err := stand.SaveMeta(ctx, func(m *Meta) { m.Mark = mark }); err != nil {
		return err
	}
	stand.MarkMirrors(mark)
	return nil
}

// BeforeRedo notes whether the mirror is where the
// records are: redoing it sets the checkpoint, after which nobody could tell.
func (stand *Standing) BeforeRedo(ctx context.Context) error {
	if !stand.Mirror.Remarks {
		return nil
	}
	cp, err := stand.Mirror.Checkpoint(ctx)
	if err != nil {
		return err
	}
	m := stand.SnapshotMeta()
	switch {
	case m.Stage == ledger.None:
	case cp == nil:
		return stand.NoteCompare(ctx, "the mirror has lost its checkpoint")
	case !cp.IsOf(m.Generation, m.Writer) && cp.Generation != fmt.Sprint(m.Generation+1):
		return stand.NoteCompare(ctx, fmt.Sprintf("the mirror stands at write %s, our records at %d: one of them was restored from a backup", cp.Generation, m.Generation))
	}
	return nil
}

// HoldsCheckpoint refuses a store not at the last write of the records.
func (stand *Standing) HoldsCheckpoint(ctx context.Context) error {
	cp, err := stand.Mirror.Checkpoint(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("nothing was changed: %w", err)
	case cp == nil:
		return fmt.Errorf("%s has no checkpoint of this mirror in %s; nothing was changed: copy the store with all its graphs, or give the new mirror a new name", stand.At(), sink.StateGraph)
	case cp.IsOf(stand.Meta.Generation, stand.Meta.Writer) && cp.Phase == stand.Meta.phase():
		return nil
	}
	for slot := range byte(2) { // of an interrupted batch: it may stand there
		if _, err := stand.Ledger.Intent(ctx, slot); err == nil && cp.Generation == fmt.Sprint(stand.Meta.Generation+1) {
			return nil
		}
	}
	return fmt.Errorf("%s stands at write %s, the records at %d; nothing was changed: copy the store again while the mirror is paused", stand.At(), cp.Generation, stand.Meta.Generation)
}

// RefuseForeign refuses a place with data.
func (stand *Standing) RefuseForeign(ctx context.Context) error {
	singles, err := stand.singles(ctx)
	if err != nil {
		return err
	}
	empty, err := stand.Mirror.IsEmpty(ctx, maps.Keys(singles))
	if err != nil {
		return fmt.Errorf("ask whether the mirror is empty: %w", err)
	}
	if !empty && !stand.Config.Adopt {
		what, other := "graph "+stand.GraphName()+" of "+stand.At(), stand.Config.Settings.Of("graph_iri")
		switch {
		case stand.Mirror.Learner == nil: // a folder, a dump
			what, other = stand.At(), "one"
		case stand.Mirror.Layout.PerEntity:
			what = "the store of " + stand.At()
		}
		return &ForeignPlaceError{what + " already holds something that rsbridge did not write", fmt.Sprintf("choose another %s, empty it, or give %s to make it this mirror", other, stand.Config.Settings.Of("adopt: true"))}
	}
	return nil
}

// IsTheMirror refuses a place with data, but without a checkpoint and without our last writes:
// it is another one at the same address.
func (stand *Standing) IsTheMirror(ctx context.Context) error {
	if !stand.Mirror.Asks() && stand.Mirror.Files == nil {
		return nil
	}
	some := false
	there, asked, err := stand.Ledger.ShowsSome(ctx, func(loc ledger.Hash, rec *ledger.Record) (could, there bool, err error) {
		some = some || rec.Triples > 0
		if stand.Mirror.Files != nil {
			return stand.Files.shows(ctx, rec)
		}
		st := stand.plainTriple(ctx, loc, rec)
		if st == nil {
			return false, false, nil
		}
		there, err = stand.Mirror.Has(ctx, st)
		return true, there, err
	})
	if err != nil || there || asked == 0 && some { // of none of them it can be told
		return err
	}
	if asked == 0 { // what is there may be of another destination
		if other, err := stand.Neighbour(ctx); err != nil || other != "" {
			return err
		}
	}
	if err := stand.RefuseForeign(ctx); err != nil {
		return fmt.Errorf("the mirror has lost its checkpoint and its data: %w", err)
	}
	return nil
}

// RefuseReplaced refuses a dump that somebody has changed or replaced since it was written.
func (stand *Standing) RefuseReplaced() error {
	if stand.Config.Adopt {
		return nil
	}
	over := "audit --repair writes over it"
	if stand.SnapshotMeta().Stage == ledger.None { // nothing is known yet to write over it
		over = "give " + stand.Config.Settings.Of("adopt: true") + " to write over it"
	}
	return stand.Replaced("move it away, and it is written anew; or " + over)
}

// Replaced is the error of a dump that somebody has changed or replaced, nil for none.
func (stand *Standing) Replaced(todo string) error {
	if !stand.PutsWhole() {
		return nil
	}
	foreign, err := stand.Mirror.Whole.Foreign()
	if err == nil && foreign {
		err = &ForeignPlaceError{stand.At() + " is not as rsbridge wrote it: somebody has changed or replaced it", todo}
	}
	return err
}

// MissingWhole tells of a dump that was removed since it was written, "" for none.
func (stand *Standing) MissingWhole() string {
	if !stand.PutsWhole() || stand.SnapshotMeta().Ahead || !stand.Mirror.Whole.Absent() {
		return ""
	}
	return "the file of the mirror is gone"
}

// plainTriple is a triple of a resource unchanged in every store, nil for none.
func (stand *Standing) plainTriple(ctx context.Context, loc ledger.Hash, rec *ledger.Record) *sink.Statement {
	if rec.Triples == 0 {
		return nil
	}
	sts, err := stand.RecordedStatements(ctx, loc, rec)
	if err != nil {
		return nil // told when it is compared
	}
	i := slices.IndexFunc(sts, func(st sink.Statement) bool {
		return !st.Rewritten && (st.Triple.O.Kind() == rdfres.KindIRI || strings.HasSuffix(string(st.Triple.O), `"`))
	})
	if i < 0 {
		return nil
	}
	return &sts[i]
}

// SharesWith refuses a graph kept before by a removed destination alone: nobody would remove
// its data.
func (stand *Standing) SharesWith(ctx context.Context) error {
	if len(stand.Config.Names) == 0 {
		return nil
	}
	metas, err := stand.Metas(ctx)
	if err != nil {
		return err
	}
	former := ""
	for name, m := range metas {
		switch {
		case name == stand.Config.Name || m.Stage == ledger.None || m.Space != stand.Space:
		case slices.Contains(stand.Config.Names, name):
			return nil // a catalogue: sources come and go
		default:
			former = name
		}
	}
	if former == "" {
		return nil
	}
	return &ForeignPlaceError{
		fmt.Sprintf("graph %s of %s was kept by the destination %q of this state, which is not configured any more, and what it has there would stay", stand.GraphName(), stand.At(), former),
		fmt.Sprintf("give this one that name (it may have another source), choose another %s, or remove it: %s", stand.Config.Settings.Of("graph_iri"), stand.Config.Settings.Of("rsbridge forget "+former)),
	}
}

// LostCheckpoint is a reason for a comparison.
const LostCheckpoint = "the mirror has lost its checkpoint"

// OurMarks are the marks of all destinations of this state; of a dump, replaced as a whole, the
// ones with records for the same dump.
func (stand *Standing) OurMarks(ctx context.Context) ([]string, error) {
	metas, err := stand.Metas(ctx)
	var marks []string
	for _, m := range metas {
		if !stand.PutsWhole() || m.Space == stand.Space {
			marks = append(marks, m.Mark)
		}
	}
	return marks, err
}

// Checkpoint writes the stage into mirror and records.
func (stand *Standing) Checkpoint(ctx context.Context, stage ledger.Stage, change func(*Meta)) error {
	next := stand.SnapshotMeta()
	next.Stage = stage
	stand.Wrote(&next)
	if change != nil {
		change(&next)
	}
	if err := stand.Mirror.Apply(ctx, &sink.Batch{}, stand.CheckpointOf(&next)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := stand.CrashAt("checkpoint"); err != nil {
		return err
	}
	before := stand.SnapshotMeta().At
	err := stand.SaveMeta(context.WithoutCancel(ctx), func(m *Meta) {
		m.Stage = stage
		stand.Wrote(m)
		if change != nil {
			change(m)
		}
	})
	if err == nil {
		stand.Fates.tellPassed(before.Cursor(), next.At.Cursor())
	}
	return err
}

func (ft *Fates) Telling() bool {
	return !ft.Quiet && ft.Log.Enabled(context.Background(), slog.LevelDebug)
}

// Superseded tells it of a change; by is nil, or of no change, if a list or dump took its
// place.
func (ft *Fates) Superseded(it, by *item.Item) {
	switch {
	case !ft.Telling():
	case by == nil || by.Change == "":
		ft.TellFate("change is superseded", it, "by_list", true)
	default:
		ft.TellFate("change is superseded", it, "by", by.Sequence, "by_time", by.Time)
	}
}

func (ft *Fates) TellFate(fate string, it *item.Item, more ...any) {
	ft.Log.Debug(fate, append([]any{"sequence", it.Sequence, "change", it.Change, "time", it.Time, "loc", it.Loc}, more...)...)
}

// TellThrough tells the position of the applied changes.
func (ft *Fates) TellThrough(c *feed.Cursor) {
	if !ft.Telling() {
		return
	}
	ft.Log.Debug("changes are applied", "through", c.Number(), "until", c.Time())
}

// tellPassed tells of the changes passed over by a comparison.
func (ft *Fates) tellPassed(before, after *feed.Cursor) {
	if !ft.Telling() {
		return
	}
	if after.Number() > before.Number() || after.Sequence() == nil && after.Time().After(before.Time()) {
		ft.Log.Debug("changes are superseded by a list", "after", before.Number(), "through", after.Number(), "from", before.Time(), "until", after.Time())
	}
}

// PutsWhole tells of a mirror replaced as a whole, at the end of a run.
func (stand *Standing) PutsWhole() bool { return stand.Mirror.Whole != nil }
