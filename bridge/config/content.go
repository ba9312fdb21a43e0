package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/content"
)

// Content selects the files of a set and the way of following them. The configuration may
// have a list of properties instead.
type Content struct {
	Properties  []string `yaml:"properties" short:"true" doc:"IRIs of the properties whose values are addresses of files"`
	Allow       []string `yaml:"allow" doc:"hosts (host, host:port) or addresses below which files may be asked for; files elsewhere are linked and never asked for. Default: the host of prefix, where that is a name"`
	Private     bool     `yaml:"private" doc:"names in allow may lead into private networks (an address that is written out always may)"`
	Hash        bool     `yaml:"hash" doc:"read each file that is new or has changed, and list its sha-256"`
	Every       Duration `yaml:"every" doc:"a file is looked at again after this time, when the set is scanned" default:"24h"`
	PerRun      int      `yaml:"per_run" doc:"files looked at with one scan, those that wait longest first" default:"1000"`
	Rate        float64  `yaml:"rate" doc:"requests a second" default:"10"`
	Concurrency int      `yaml:"concurrency" doc:"requests at once" default:"4"`
	MaxBytes    int64    `yaml:"max_bytes" doc:"a longer file is listed without a hash" default:"268435456"`
	DumpBytes   int64    `yaml:"dump_bytes" doc:"bytes of files that a Resource Dump holds beside the descriptions, fetched when it is made; it tells how many files it leaves out. 0: all are left to the Resource List" default:"0"`
	Timeout     Duration `yaml:"timeout" doc:"of one request without progress" default:"30s"`
}

// FollowerConfig is the configuration of the follower.
func (c *Set) FollowerConfig() content.Config {
	x := c.Content
	allow := x.Allow
	if len(allow) == 0 {
		if host := namedHost(c.Prefix); host != "" {
			allow = []string{host}
		}
	}
	return content.Config{
		Properties: x.Properties, Hash: x.Hash, Allow: allow, Private: x.Private, Every: time.Duration(x.Every), PerRun: x.PerRun,
		Rate: x.Rate, Concurrency: x.Concurrency, MaxBytes: x.MaxBytes, Timeout: time.Duration(x.Timeout), MaxDeleteRatio: c.MaxDeleteRatio,
	}
}

// namedHost is the host of an address if its name means the same to everybody: no IP
// address, and not this machine.
func namedHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.EqualFold(u.Hostname(), "localhost") {
		return ""
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return ""
	}
	return u.Host
}

// ContentTag names the settings for files of the set, for the documents.
func (c *Set) ContentTag() string {
	ps := slices.Clone(c.Content.Properties)
	slices.Sort(ps)
	return strings.Join(slices.Compact(ps), " ")
}
