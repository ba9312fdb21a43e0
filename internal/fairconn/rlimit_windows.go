package fairconn

// openFiles is a number far below the handles of a process.
func openFiles() (uint64, error) { return 1 << 16, nil }
