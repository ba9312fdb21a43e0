// Package bridge assembles sources, trackers, publishers and destinations from
// one Config, and owns their jobs and their lifetime.
//
// It is the only room that sees both wings of the house: sparqlsrc and publish
// on the source's side, destination on the other. Nothing else may import both.
//
// Read in this order: [Config] and [Load] say what a bridge is told;
// [Open] assembles it, [Bridge.Run] serves and schedules until its context ends,
// [Bridge.Close] stops it. In between, [Bridge.Scan], [Bridge.Sync],
// [Bridge.Audit], [Bridge.Accept] queue a run and wait for it, and
// [Bridge.Status] tells how things stand.
//
// Two channels ask for another bridge. [Bridge.Reopen] closes after a set was forgotten
// or renamed: call [Bridge.Reload] with [Bridge.Config]. Until then the old
// addresses stay as they were. [Bridge.Again] closes when a full disk has room
// again: call [Bridge.Close], then [Open]. Close and Open do for both.
//
// One process holds one state folder. Jobs on one set, and jobs on one
// destination, never overlap. A destination whose source is
// this bridge's own base URL fetches through the bridge's handler, without a
// socket, so that a configuration that mirrors itself works whether a daemon
// runs or not.
package bridge
