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
	proc := filepath.Join("/proc", strconv.Itoa(s.pid))
	// proc(5): 5 makes the memory of now the most that there was.
	if err := os.WriteFile(filepath.Join(proc, "clear_refs"), []byte("5"), 0); err != nil {
		return 0, err
	}
	if err := work(s); err != nil {
		return 0, err
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kb int64
	if _, err := fmt.Fscan(bytes.NewReader(rest), &kb); err != nil {
		return 0, fmt.Errorf("%s/status has no VmHWM: %w", proc, err)
	}
	return kb >> 10, nil
}
