// Package spaces has the table of the records in a state: their owners' prefixes, and the steps that bring records of
// an earlier version forward.
package spaces

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/forward"
)

// Prefixes of the keys of each owner.
var (
	Track       = []byte("track/")
	Publish     = []byte("publish/")
	Destination = []byte("destination/")
	Jobs        = []byte("jobs/")
	Push        = []byte("push/")
	Bridge      = []byte("bridge/")
	Samples     = []byte("samples/")
)

// table has the steps since the first release. backup.Form grows with each of them.
var table = []forward.Space{
	{Name: "track", Prefix: string(Track)},
	{Name: "publish", Prefix: string(Publish)},
	{Name: "destination", Prefix: string(Destination)},
	{Name: "jobs", Prefix: string(Jobs)},
	{Name: "push", Prefix: string(Push)},
	{Name: "bridge", Prefix: string(Bridge)},
	{Name: "samples", Prefix: string(Samples)},
}

// Forward brings the records of an earlier version forward, and logs that; dir is the folder of the state. Records
// of a later version give a kv.ErrNewer, and nothing is changed.
func Forward(ctx context.Context, store kv.Store, dir string, log *slog.Logger) error {
	due, err := forward.Check(ctx, store, table)
	if len(due) > 0 {
		log.Warn("the state is brought forward: an earlier rsbridge refuses it from now on, and only a backup leads back", "due", strings.Join(due, ", "))
	}
	if err == nil {
		err = forward.Run(ctx, store, table, log)
	}
	if err != nil {
		return fmt.Errorf("bring the state in %s forward: %w", dir, err)
	}
	return nil
}

// Readable refuses to read records of another version; with earlier, those of an earlier one may be read.
func Readable(ctx context.Context, store kv.Store, dir string, earlier bool) error {
	due, err := forward.Check(ctx, store, table)
	if err == nil && len(due) > 0 && !earlier {
		err = fmt.Errorf("it is of an earlier version (%s): take a backup, then let rsbridge run bring it forward", strings.Join(due, ", "))
	}
	if err != nil {
		return fmt.Errorf("read the state in %s: %w", dir, err)
	}
	return nil
}
