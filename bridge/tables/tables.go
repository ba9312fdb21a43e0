// Package tables has the smaller tables of the configuration: those of a set and of a destination.
package tables

import "github.com/rsbridge/rsbridge/internal/configfile"

// Duration is a time.Duration as it is written in the file.
type Duration = configfile.Duration

// Select is the selection of a set's entities.
type Select struct {
	Classes  []string `yaml:"classes" doc:"entities with one of these rdf:type"`
	Prefixes []string `yaml:"prefixes" doc:"entities with one of these prefixes"`
	Query    string   `yaml:"query" doc:"a SELECT of ?entity, over the graphs of the set, or over graphs of its own (GRAPH, FROM)"`
}

// Part is the selection of a mirror's entities.
type Part struct {
	Classes  []string `yaml:"classes" doc:"entities with one of these rdf:type"`
	Prefixes []string `yaml:"prefixes" doc:"entities with one of these prefixes; without classes, and with a source that names entities, others are not fetched"`
}

// ResourceList settings.
type ResourceList struct {
	Schedule    string `yaml:"schedule" doc:"when the list is made again, after the first complete scan; empty: current after every scan"`
	PartEntries int    `yaml:"part_entries" doc:"entries of one part; more become an index" default:"10000"`
}

// ChangeList settings.
type ChangeList struct {
	Rotate  Duration `yaml:"rotate" doc:"a list is closed at this age of its first change; empty: 24h with a Change Dump, made of closed lists, else retention.changes"`
	Entries int      `yaml:"entries" doc:"entries at which a list is closed, at most 50000" default:"50000"`
}

// ResourceDump settings.
type ResourceDump struct {
	Schedule string `yaml:"schedule" doc:"when a dump is made again; the first one follows the first complete scan" default:"@daily"`
}

// ChangeDump settings.
type ChangeDump struct {
	Schedule string `yaml:"schedule" doc:"when newly closed Change Lists are packaged; empty: with the Resource Dump"`
	Patches  bool   `yaml:"patches" doc:"also hold the patches (JSON Patch, RDF Patch) of updates"`
}

// Archives settings.
type Archives struct {
	Schedule string `yaml:"schedule" doc:"when the Resource List and the Resource Dump are archived; Change Lists and Change Dumps are archived by retention; empty: no archives"`
}

// Retention of a set.
type Retention struct {
	Changes  Duration `yaml:"changes" doc:"of the log" default:"30d"`
	Versions Duration `yaml:"versions" doc:"of superseded representations" default:"30d"`
	Archives Duration `yaml:"archives" doc:"of archives" default:"365d"`
}

// Audit says when a mirror is audited. In the file a schedule may stand for it.
type Audit struct {
	Schedule string `yaml:"schedule" short:"true" doc:"when to audit" default:"@daily"`
	Repair   bool   `yaml:"repair" doc:"repair differences, within max_delete_ratio"`
}

// Hints name possibly changed entities. Only these are described again; the full scan finds
// the missed ones.
type Hints struct {
	Modified []string `yaml:"modified" doc:"properties with the time of modification, such as http://purl.org/dc/terms/modified"`
	Every    Duration `yaml:"every" doc:"beside schedule, ask for new times of modified as often as this, 1s or longer, and describe their entities at once; empty: by schedule alone"`
	Query    string   `yaml:"query" doc:"a SELECT of changed ?entity; ?since is the time of the last look, less overlap; over the graphs of the set, or over graphs of its own"`
	Counts   []string `yaml:"counts" doc:"counted partitions; after a change of counts the partition's entities are described again" allowed:"class|graph"`
	Overlap  Duration `yaml:"overlap" doc:"repeated time before the last look, since clocks differ and changes may arrive late" default:"2m"`
	Full     string   `yaml:"full" doc:"schedule of full scans, for changes without hints" default:"@daily"`
}

// Set tells whether a set has hints.
func (h Hints) Set() bool { return len(h.Modified) > 0 || h.Query != "" || len(h.Counts) > 0 }
