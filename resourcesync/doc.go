// Package resourcesync reads, writes and checks the documents of the
// ResourceSync Framework.
package resourcesync
