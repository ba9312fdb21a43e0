package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/backup"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// backupReport is `backup --json` and `restore --json`.
type backupReport struct {
	File string `json:"file"`
	backup.Report
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

func backupCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "backup FILE", Short: "Write the whole state into one file, while everything goes on", Args: cobra.ExactArgs(1),
		Long: `Writes a backup of one moment, with the daemon or without it.

In it: the records of the state (logs, representations, versions, mirrors, runs),
published files, keys, and the embedded stores inside of the state folder.

Not in it: the configuration with its secrets, stores outside of the state folder,
and stores on servers. The command names them.

The backup is read again and compared with its checksums before it takes the place
of FILE. After an error or a kill FILE is as it was. Only its owner can read it: it
holds the keys of subscriptions. FILE - is standard output, unchecked. A tar of any
system lists it; SHA256SUMS in it has the checksums of all entries.

--json: {"file","at","program","records","stores":[{"path","records"}],"files","left_out","bytes","seconds"}`,
		Example: "  rsbridge backup /var/backups/rsbridge.tar\n  rsbridge restore /var/backups/rsbridge.tar",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			cfg, err := bridge.Load(a.config)
			if err != nil {
				return err
			}
			name, began := args[0], time.Now()
			write := func(w io.Writer) error { return writeBackup(a, cmd.Context(), cfg, w) }
			if name == "-" {
				if a.json {
					return usage("--json and the backup cannot both go to standard output")
				}
				return write(a.out)
			}
			if rel, err := filepath.Rel(absolute(cfg.Folder()), absolute(name)); err == nil && filepath.IsLocal(rel) {
				return usage("%s is in the state folder %s: write the backup elsewhere", name, cfg.Folder())
			}
			out := backupReport{File: name}
			out.Report, out.Bytes, err = backup.Take(cmd.Context(), name, func(f *os.File) error { return write(f) })
			a.endProgress()
			if err != nil {
				return fmt.Errorf("back up the state in %s: %w", cfg.Folder(), err)
			}
			out.Seconds = time.Since(began).Seconds()
			return tellBackup(a, out, "backed up", "in "+name)
		}}
}

// writeBackup is a backup by the daemon of the state or, without one, by this process.
func writeBackup(a *app, ctx context.Context, cfg *bridge.Config, w io.Writer) error {
	if ctx.Err() != nil { // the state need not be there then
		return context.Cause(ctx)
	}
	w = &written{a: a, w: w}
	err := bridge.BackupClosed(ctx, cfg, bridge.Options{Logger: a.commandLog()}, w)
	var held *bridge.HeldError
	if !errors.As(err, &held) || held.Admin == "" {
		return err
	}
	s, err := remoteSession(ctx, a, cfg, held)
	if err != nil {
		return err
	}
	return s.(remote).Backup(ctx, w)
}

// written tells how many bytes were written.
type written struct {
	a *app
	w io.Writer
	n int64
}

func (w *written) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.n += int64(n)
	w.a.progress(jobs.Run{Job: "backup", Stage: ofBytes, Done: w.n})
	return n, err
}

func restoreCommand(a *app) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{Use: "restore FILE", Short: "Restore a backup into an empty state folder", Args: cobra.ExactArgs(1),
		Long: `Checks the whole backup first. A damaged one, and one of a newer version, is refused
by name, and nothing is written. Then it fills the state folder of the configuration,
which is missing or empty; any other folder is refused.

After a kill the folder is refused by every command until the restore is run again,
or the folder emptied. Mirrors of a restored source, and restored mirrors, compare
their positions, and go on from there. --dry-run only checks.

--json: as of backup`,
		Example: "  rsbridge restore rsbridge.tar --dry-run\n  rsbridge restore rsbridge.tar",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			cfg, err := bridge.Load(a.config)
			if err != nil {
				return err
			}
			if cmd.Context().Err() != nil {
				return context.Cause(cmd.Context())
			}
			out, began := backupReport{File: args[0]}, time.Now()
			err = backup.Read(args[0], func(f *os.File) error {
				info, err := f.Stat()
				if err != nil {
					return err
				}
				out.Bytes = info.Size()
				if dryRun {
					out.Report, err = backup.Check(cmd.Context(), f)
				} else {
					out.Report, err = bridge.Restore(cmd.Context(), cfg, a.commandLog(), f)
				}
				return err
			})
			if err != nil {
				return err
			}
			out.Seconds = time.Since(began).Seconds()
			if dryRun {
				return tellBackup(a, out, "the backup is whole:", "of "+out.At.Format(time.RFC3339))
			}
			acted(a, cfg, action("restore "+args[0], "of "+out.At.Format(time.RFC3339)))
			return tellBackup(a, out, "restored", "of "+out.At.Format(time.RFC3339)+" into "+cfg.Folder())
		}}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "check the backup, and write nothing")
	return c
}

func tellBackup(a *app, r backupReport, what, where string) error {
	if a.json {
		return a.print(r)
	}
	var stored int64
	for _, s := range r.Stores {
		stored += s.Records
	}
	fmt.Fprintf(a.out, "%s %s, %s with %s, %s: %s %s, in %.1f s\n", what, plural(r.Records, "record"),
		plural(int64(len(r.Stores)), "embedded store"), plural(stored, "record"), plural(r.Files, "file"), size(r.Bytes), where, r.Seconds)
	for _, left := range r.LeftOut {
		fmt.Fprintf(a.out, "  not in it: %s\n", left)
	}
	return nil
}
