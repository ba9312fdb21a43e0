package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/resourcesync"
)

func (a *app) diff() *cobra.Command {
	return &cobra.Command{Use: "diff SET ENTITY [FROM [TO]]", Short: "Print the changes in the description of an entity", Args: cobra.RangeArgs(2, 4),
		Long: `Compares the description of an entity at two points of the log: sequences (digits
alone) or times. TO is now by default, FROM the version before. Prints removed triples
with - and added triples with +, in canonical N-Triples.

--json: {"entity","from":{"sequence","time",...},"to":{...},"removed":["..."],"added":["..."]}; from or to is null where the entity was not there`,
		Example: "  rsbridge diff books http://example.org/book/1\n  rsbridge diff books http://example.org/book/1 17 2026-01-31T12:00:00Z",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			points := append(args[2:], "", "")
			for _, p := range args[2:] {
				if err := checkPoint(p); err != nil {
					return err
				}
			}
			s, end, err := a.setSession(cmd.Context(), args[0], a.reading)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, end()) }()
			d, err := s.Diff(cmd.Context(), args[0], args[1], points[0], points[1])
			if err != nil {
				return err
			}
			if a.json {
				return a.print(d)
			}
			return sayDiff(a.out, d)
		}}
}

// checkPoint refuses an invalid point of the log.
func checkPoint(s string) error {
	if _, err := strconv.ParseUint(s, 10, 64); err == nil {
		return nil
	}
	if _, err := resourcesync.ParseTime(s, true); err != nil {
		return usage("%s is neither a sequence nor a time like 2026-01-31T12:00:00Z", s)
	}
	return nil
}

func sayDiff(out io.Writer, d bridge.Diff) error {
	w := &errWriter{w: out}
	for _, v := range []struct {
		sign string
		ver  *bridge.VersionLine
	}{{"---", d.From}, {"+++", d.To}} {
		if v.ver == nil {
			w.line("%s not there", v.sign)
		} else {
			w.line("%s sequence %d, %s, %s", v.sign, v.ver.Sequence, resourcesync.FormatTime(v.ver.Time), plural(int64(v.ver.Triples), "triple"))
		}
	}
	for _, l := range d.Removed {
		w.line("- %s", l)
	}
	for _, l := range d.Added {
		w.line("+ %s", l)
	}
	if w.err != nil {
		return fmt.Errorf("print the difference: %w", w.err)
	}
	return nil
}
