package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// peak gives the most resident memory, in megabytes, that the embedded store has
// while work goes on, with the data in it or empty. Only Linux tells it.
func peak(ctx context.Context, e *env, loaded bool, work func(store) error) (int64, error) {
	if runtime.GOOS != "linux" {
		return 0, fmt.Errorf("%s does not tell the most memory that a process had", runtime.GOOS)
	}
	s, err := embedded(ctx, e)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	if loaded {
		if _, err := s.load(ctx, e, benchGraph); err != nil {
			return 0, err
		}
	}
	if err := forgetPeak(s.pid); err != nil {
		return 0, err
	}
	if err := work(s); err != nil {
		return 0, err
	}
	mb, err := residentPeak(s.pid)
	return int64(mb), err
}

// forgetPeak makes the memory of now the most that a process had.
func forgetPeak(pid int) error {
	// proc(5): 5 does that.
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte("5"), 0)
}

// residentPeak is the most resident memory that a process had, in megabytes.
func residentPeak(pid int) (float64, error) {
	file := filepath.Join("/proc", strconv.Itoa(pid), "status")
	status, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kb int64
	if _, err := fmt.Fscan(bytes.NewReader(rest), &kb); err != nil {
		return 0, fmt.Errorf("%s has no VmHWM: %w", file, err)
	}
	return float64(kb) / 1024, nil
}
