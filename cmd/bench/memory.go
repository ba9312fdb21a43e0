package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// peak gives the peak resident memory of the embedded store during work, in megabytes, with the
// data in it or empty. It needs Linux.
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

// forgetPeak resets the peak memory of a process to its present memory.
func forgetPeak(pid int) error {
	// See proc(5): 5 resets the peak.
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte("5"), 0)
}

// runWatched runs a command, and gives its peak resident memory in megabytes; 0 if the system does
// not tell. It samples while the command runs: the system's value after the end (ru_maxrss)
// includes the parent's memory at the start.
func runWatched(cmd *exec.Cmd) (peak float64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-tick.C:
			if mb, err := residentPeak(cmd.Process.Pid); err == nil { // it may be ending
				peak = max(peak, mb)
			}
		}
	}
}

// residentPeak is the peak resident memory of a process, in megabytes.
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
