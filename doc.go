// Package rsbridge is the root of the module and holds the tests of the whole: the command is
// cmd/rsbridge, the library is bridge.
package rsbridge
