package main

import (
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
)

// TestPlaceTexts: reports name the folder, dump or store of a mirror.
func TestPlaceTexts(t *testing.T) {
	sync := func(r destination.SyncReport) string {
		var out strings.Builder
		r.InSync, r.Name = true, "copy"
		saySync(&out, r)
		return out.String()
	}
	forgotten := func(r destination.ForgetReport) string {
		var out strings.Builder
		r.Name, r.Records, r.Resources = "copy", 3, 2
		sayForgotten(&out, r)
		return out.String()
	}
	for got, want := range map[string]string{
		sync(destination.SyncReport{NotRDF: 2, Store: "dump:/d.nt"}):                          "2 resources are no RDF: dump:/d.nt has nothing of them (GET",
		sync(destination.SyncReport{NotRDF: 1, Store: "embedded:m"}):                          "1 resource is no RDF: embedded:m has nothing of it (GET",
		sync(destination.SyncReport{NotRDF: 2, Store: "embedded:m", Files: "/f"}):             "2 resources are no RDF: their files are in /f (GET",
		forgotten(destination.ForgetReport{Store: "files:/f", Graph: "default"}):              "copy: removed 3 records of 2 resources, 0 files in files:/f\n",
		forgotten(destination.ForgetReport{Store: "files:/f", Gone: "files:/f"}):              "\n  files:/f is empty or gone: nothing was there to remove\n",
		forgotten(destination.ForgetReport{Store: "dump:/d.nt", Triples: 4}):                  "copy: removed 3 records of 2 resources, 4 triples in dump:/d.nt\n",
		forgotten(destination.ForgetReport{Store: "embedded:m", Graph: "http://g", Lines: 1}): "0 triples in graph http://g of embedded:m, 1 line in urn:rsbridge:state\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	status := func(state bridge.State) string {
		var out strings.Builder
		err := sayStatus(&out, bridge.Status{Destinations: []bridge.DestinationStatus{{Name: "copy", State: state, Status: destination.Status{Held: "why"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := status(bridge.StateHeld); !strings.Contains(got, "\n  held: why\n") {
		t.Error(got)
	}
	if got := status(bridge.StateFailing); !strings.Contains(got, "\n  why\n") {
		t.Error(got)
	}
}

// TestWarningsOnce: one command writes one warning once, however often it opens the state.
func TestWarningsOnce(t *testing.T) {
	var err strings.Builder
	a := &app{err: &err, logFormat: "text"}
	if err := a.begin(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "a"} {
		a.log.With("component", "x").Warn("removed", "name", name)
	}
	a.log.Warn("removed", "name", "a")
	a.logLevel = "warn"
	if n := strings.Count(err.String(), "removed"); n != 3 {
		t.Error(err.String())
	}
	a.daemonLog()
	a.log.Warn("removed", "name", "a")
	if n := strings.Count(err.String(), "removed"); n != 4 {
		t.Errorf("a daemon: %s", err.String())
	}
}
