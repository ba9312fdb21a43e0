// Package bridge assembles sources, trackers, publishers and destinations from
// one Config, and owns their jobs and their lifetime.
//
// It is, with its package config, the only room that sees both wings of the house: sparqlsrc and publish
// on the source's side, destination on the other. Nothing else may import both.
//
// Read in this order: [Config] and [Load] are the configuration, [Open] assembles the
// bridge, [Bridge.Start] begins the schedules, [Bridge.Close] stops them. In between,
// [Bridge.Begin] queues a run, [Bridge.Do] also waits for its end, and [Bridge.Status]
// tells the state of everything.
//
// Two channels ask for another bridge. [Bridge.Reopen] closes after a set was forgotten
// or renamed: call [Bridge.Reload] with [Bridge.Config]. Until then the old
// addresses stay as they were. [Bridge.Again] closes when a full disk has room
// again: call [Bridge.Close], then [Open]. Close and Open do for both.
//
// One process holds one state folder. Jobs on one set, and jobs on one destination, never
// overlap. A destination of this bridge's own base URL fetches through the bridge's
// handler, without a socket: a configuration with its own mirror works with and without a
// daemon.
package bridge
