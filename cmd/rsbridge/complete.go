package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
)

const aStore = "store"

// completed are the kinds of names that arguments are completed with, by command. The arguments of many are all
// of these kinds, those of others only the first one.
var completed = map[string]struct {
	kinds []string
	many  bool
}{
	"scan": {[]string{aSet}, true}, "sync": {[]string{aDestination}, true}, "audit": {[]string{aDestination}, true},
	"changes": {[]string{aSet}, false}, "show": {[]string{aSet, aDestination}, false}, "diff": {[]string{aSet}, false}, "export": {[]string{aSet}, false}, "rebase": {[]string{aSet}, false},
	"accept": {[]string{aSet, aDestination}, false}, "forget": {[]string{aSet, aDestination}, false}, "move": {[]string{aSet, aDestination}, false},
	"doctor": {[]string{aStore}, false},
}

// completeNames lets a shell complete names of the configuration, and words of flags.
func completeNames(a *app, root *cobra.Command) {
	for _, c := range root.Commands() {
		by, ok := completed[c.Name()]
		if !ok {
			continue
		}
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !by.many {
				return nil, cobra.ShellCompDirectiveDefault
			}
			names := slices.DeleteFunc(configuredNames(a, by.kinds), func(name string) bool { return slices.Contains(args, name) })
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		if f := c.Flags().Lookup("to"); f != nil {
			_ = c.RegisterFlagCompletionFunc("to", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return configuredNames(a, []string{aStore}), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	for flag, words := range map[string][]string{"log-format": {"text", "json"}, "log-level": {"debug", "info", "warn", "error"}} {
		_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // it is there
	}
}

// names are those in the configuration, sorted; none of an unreadable one.
func configuredNames(a *app, kinds []string) (names []string) {
	cfg, err := bridge.Load(a.config)
	if err != nil {
		return nil
	}
	for _, kind := range kinds {
		switch kind {
		case aSet:
			names = slices.AppendSeq(names, maps.Keys(cfg.Sets))
		case aDestination:
			names = slices.AppendSeq(names, maps.Keys(cfg.Destinations))
		case aStore:
			names = slices.AppendSeq(names, maps.Keys(cfg.Stores))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
