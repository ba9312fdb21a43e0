package pebblekv

import (
	"fmt"
	"syscall"
	"testing"
)

// BenchmarkCommit is a durable commit of one record, with the processor's time of the process.
func BenchmarkCommit(b *testing.B) {
	s, err := Open(b.Context(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	batch := s.Batch()
	defer batch.Close()
	value := make([]byte, 200)
	var before, after syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	n := 0
	for b.Loop() {
		n++
		batch.Set(fmt.Appendf(nil, "%08d", n), value)
		if err := batch.Commit(b.Context(), true); err != nil {
			b.Fatal(err)
		}
	}
	if err == nil {
		err = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	}
	if err != nil {
		b.Fatal(err)
	}
	spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(spent)/float64(n), "cpu-ns/op")
}
