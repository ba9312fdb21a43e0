// Package changetrack compares successive scans of a source and keeps the
// ordered, durable log of what was created, updated and deleted.
package changetrack
