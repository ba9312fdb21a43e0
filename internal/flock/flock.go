// Package flock locks an open file against other processes. The system releases the lock at any end
// of the process, and when the file is closed.
package flock
