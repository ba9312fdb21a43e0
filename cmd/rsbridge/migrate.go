package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
)

func migrateCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "migrate TO", Short: "Move the state into a PostgreSQL database, or back into its folder, and prove it", Args: cobra.ExactArgs(1),
		Long: `Moves the records of the configured state: from its folder into a database,
postgres://USER@HOST/DATABASE, or from the database into the state folder. Stop the
daemon first.

The records are read again at the new place, and their digest is compared with the old
one. Then the old place is marked as moved, and refused by every command. A new place
that holds records is refused. After a kill run the command again.

Files of the state folder stay where they are. The command prints the settings of the
configuration for the new place. Give the password by PGPASSWORD or a password file.

--json: {"from","to","records","bytes","sha256","seconds"}`,
		Example: "  rsbridge migrate postgres://rsbridge@db.example/rsbridge\n  rsbridge migrate ./state",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := bridge.Load(a.config)
			if err != nil {
				return err
			}
			to := args[0]
			switch isDatabase := records.IsDatabase(cfg.State); {
			case isDatabase == records.IsDatabase(to):
				return usage("the state is kept in %s: move it %s", yes(isDatabase, "a database", "a folder"), yes(isDatabase, "into its folder "+cfg.Folder(), "into a database, postgres://USER@HOST/DATABASE"))
			case isDatabase && absolute(to) != absolute(cfg.Folder()):
				return usage("the files of the state are in %s: move the records there", cfg.Folder())
			}
			shared, err := bridge.Shared(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			began := time.Now()
			rep, err := records.Move(cmd.Context(), records.At(cfg.State, cfg.Folder()), records.At(to, cfg.Folder()), kv.OpenOptions{Logger: a.commandLog()}, shared, func(n int64) { a.progress(jobs.Run{Job: "migrate", Stage: "records", Done: n}) })
			a.endProgress()
			if err != nil {
				return err
			}
			acted(a, cfg, action("migrate "+rep.To, "from "+rep.From))
			seconds := time.Since(began).Seconds()
			if a.json {
				return a.print(migrateReport{rep, seconds})
			}
			folder := absolute(cfg.Folder())
			fmt.Fprintf(a.out, "moved %s, %s, to %s in %.1f s: both ends have the SHA-256 %s\nSet in %s:\n", plural(rep.Records, "record"), size(rep.Bytes), rep.To, seconds, rep.SHA256, a.config)
			if records.IsDatabase(to) {
				fmt.Fprintf(a.out, "  state: %s\n  state_folder: %s\n", rep.To, folder)
			} else {
				fmt.Fprintf(a.out, "  state: %s, and no state_folder\n", folder)
			}
			return nil
		}}
}

// migrateReport is `migrate --json`.
type migrateReport struct {
	records.Report
	Seconds float64 `json:"seconds"`
}
