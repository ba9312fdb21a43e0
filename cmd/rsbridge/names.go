package main

import (
	"slices"

	"github.com/spf13/cobra"
)

const (
	aSet         = "set"
	aDestination = "destination"
)

// kindFlags are the flags --set and --destination: a set and a destination may share a name.
type kindFlags struct{ set, dest bool }

func (k *kindFlags) flags(c *cobra.Command) {
	c.Flags().BoolVar(&k.set, aSet, false, "the set, where a destination has the name too")
	c.Flags().BoolVar(&k.dest, aDestination, false, "the destination, where a set has the name too")
}

// choose is the kind of a name, by the flags. If both kinds have it, the only fitting one wins;
// a nil fits takes none.
func (k kindFlags) choose(name, where string, sets, dests []string, fits func(kind string) bool) (kind string, err error) {
	var names []string // a name of both is told twice, with the kinds
	for _, s := range sets {
		names = append(names, s+" (set)")
	}
	for _, d := range dests {
		names = append(names, d+" (destination)")
	}
	what := "no set and no destination"
	switch {
	case k.set && k.dest:
		return "", usage("--set and --destination are two kinds: give one of them")
	case k.set:
		names, what, dests = sets, "no set", nil
	case k.dest:
		names, what, sets = dests, "no destination", nil
	}
	set, dest := slices.Contains(sets, name), slices.Contains(dests, name)
	switch {
	case !set && !dest:
		return "", usage("%s is %s of the %s; there are: %s", name, what, where, listed(names))
	case !dest:
		return aSet, nil
	case !set:
		return aDestination, nil
	}
	if fits != nil {
		if set, dest = fits(aSet), fits(aDestination); set != dest {
			return map[bool]string{true: aSet, false: aDestination}[set], nil
		}
	}
	return "", usage("%s is a set and a destination: say --set or --destination", name)
}
