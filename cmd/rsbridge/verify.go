package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
)

func (a *app) verify() *cobra.Command {
	var args bridge.VerifyArgs
	c := &cobra.Command{Use: "verify", Short: "Compare state, published files and stores with their checksums", Args: cobra.NoArgs,
		Long: `Compares the records of the state and the published files (packages of dumps,
archives) with their checksums. A damaged file is withdrawn and made again, and so is
a dump, list or archive that failed before.
--read-data also reads the representations and inventories of the sets, and the embedded
stores. A damaged inventory is made again. It works with the running daemon, or alone. A damaged log of the state or of a store
is refused when it is opened. Nothing is written unless something has to be made again.
Exit code 1: something was damaged.

--json: {"records","files","representations","triples","read_data","faults":[{"what","file","error","made_again"}],"seconds"}`,
		Example: "  rsbridge verify\n  rsbridge verify --read-data --json",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			rep, err := verified(cmd.Context(), a, dry(a), args)
			if err == nil && rep.Due {
				found := rep.Faults
				rep, err = verified(cmd.Context(), a, a.session, args)
				rep.Faults = withMended(rep.Faults, found)
			}
			if err != nil {
				return err
			}
			return a.tellVerified(rep)
		}}
	c.Flags().BoolVar(&args.ReadData, "read-data", false, "read the representations of the sets and the embedded stores too")
	return c
}

// verified is one verification, in a session made by open.
func verified(ctx context.Context, a *app, open opening, args bridge.VerifyArgs) (rep bridge.VerifyReport, err error) {
	s, _, end, err := open(ctx)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, end()) }()
	run, err := s.Do(ctx, "verify", "", args, a.progress)
	a.endProgress()
	if err != nil {
		return rep, err
	}
	o, err := outcomeOf[bridge.VerifyReport]("", run)
	return o.report, errors.Join(err, o.err)
}

// withMended adds the faults of a dry verification that the next opening of the state has mended: it drops files
// that are missing or cut. An archived one cannot be made again.
func withMended(faults, found []bridge.VerifyFault) []bridge.VerifyFault {
	for _, f := range found {
		same := func(other bridge.VerifyFault) bool { return other.What == f.What && other.File == f.File }
		if f.File != "" && !slices.ContainsFunc(faults, same) {
			f.Again = !strings.HasPrefix(f.File, "archives/")
			faults = append(faults, f)
		}
	}
	return faults
}

// tellVerified prints a report; faults are the error of the command.
func (a *app) tellVerified(r bridge.VerifyReport) error {
	if a.json {
		if err := a.print(r); err != nil {
			return err
		}
	} else {
		for _, f := range r.Faults {
			what := f.What
			if f.File != "" {
				what += ", file " + f.File
			}
			again := ""
			if f.Again {
				again = "; it was made again"
			}
			fmt.Fprintf(a.out, "%s: %s%s\n", what, f.Error, again)
		}
		fmt.Fprintf(a.out, "verified %s and %s", plural(r.Records, "record"), plural(int64(r.Files), "file"))
		if r.ReadData {
			fmt.Fprintf(a.out, ", %s, %s of embedded stores", plural(r.Representations, "representation"), plural(r.Triples, "triple"))
		}
		fmt.Fprintf(a.out, ", in %.1f s\n", r.Seconds)
	}
	if len(r.Faults) > 0 {
		return &codeError{exitFailed, nil}
	}
	return nil
}
