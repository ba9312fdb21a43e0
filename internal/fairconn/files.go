package fairconn

// Files is a part of the files that the process may have open. The others are for the
// state: a file it cannot open for writing ends all writing, and a client that only opens connections
// could bring that about.
func Files(part uint64) int {
	limit, err := openFiles()
	if err != nil {
		return 1 << 10
	}
	return int(min(max(limit/part, 4), 1<<20))
}
