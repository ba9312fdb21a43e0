package fairconn

import "syscall"

// Files is a part of the files that the process may have open. The others are for the
// state: a file it cannot open for writing ends all writing, and a client that only opens connections
// could bring that about.
func Files(part uint64) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 10
	}
	return int(min(max(uint64(limit.Cur)/part, 4), 1<<20))
}
