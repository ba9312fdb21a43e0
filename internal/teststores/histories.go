package teststores

import (
	"os"
	"strconv"
	"testing"
)

// Histories is how many random ones a test plays, with -short and without, each drawn
// from its number. RSBRIDGE_HISTORIES sets it, for campaigns.
func Histories(short, full int) int {
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_HISTORIES")); err == nil {
		return n
	}
	if testing.Short() {
		return short
	}
	return full
}
