package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/resourcesync/staticsite"
)

func (a *app) export() *cobra.Command {
	return &cobra.Command{Use: "export SET DIR", Short: "Write a set as a static site, for any file server or object store", Args: cobra.ExactArgs(2),
		Long: `Writes the documents, representations and packages of a set below DIR. Served at
public.base_url the folder is a complete, valid source, with pages for people from
index.html on. A second run writes changed files, the documents last, and removes old
ones. Several sets may share DIR.

The files are those of the last publication: scan before. Old versions, negotiated
formats and other faces of the log (event stream, OAI-PMH, IIIF) need a running
daemon; exported documents do not offer them. The file server should know the media
types of .jsonld, .nt, .ttl and .rdf.

--json: {"set","dir","documents","resources","packages","written","unchanged","removed","bytes","seconds"}`,
		Example: "  rsbridge scan books && rsbridge export books ./site",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, end, err := a.setSession(cmd.Context(), args[0], dry(a))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, end()) }()
			st, err := s.Status(cmd.Context())
			if err != nil {
				return err
			}
			base := ""
			for _, set := range st.Sets {
				if set.Name == args[0] {
					if set.Sequence == 0 && set.LastScan == nil { // an empty set is published too
						return fmt.Errorf("set %s has published nothing yet: rsbridge scan %s first", set.Name, set.Name)
					}
					base = strings.TrimSuffix(set.Address, "/"+set.Name+"/capabilitylist.xml")
				}
			}
			rep, err := staticsite.Write(cmd.Context(), staticsite.Options{
				Set: args[0], BaseURL: base, Transport: s.Public(), Dir: args[1],
				Progress: func(stage string, done, total int64) {
					a.progress(jobs.Run{Job: "export:" + args[0], Stage: stage, Done: done, Total: total})
				},
			})
			a.endProgress()
			if errors.Is(err, staticsite.ErrMoved) {
				return fmt.Errorf("%w; if it does not publish now, a published file is damaged: rsbridge verify makes it again", err)
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.print(rep)
			}
			_, err = fmt.Fprintf(a.out, "%s: %s, %s and %s in %s, to be served at %s/: %d written (%s), %d unchanged, %d removed, in %.1f s\n",
				rep.Set, plural(rep.Documents, "document"), plural(rep.Resources-rep.Packages, "resource"), plural(rep.Packages, "package"), rep.Dir, base,
				rep.Written, size(rep.Bytes), rep.Unchanged, rep.Removed, rep.Seconds)
			return err
		}}
}
