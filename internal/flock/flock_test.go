package flock

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLock: of two openings one has the lock, and the other one after it is closed.
func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one, two := open(), open()
	defer two.Close()
	if taken, err := Try(one); !taken || err != nil {
		t.Fatal(taken, err)
	}
	if taken, err := Try(two); taken || err != nil {
		t.Fatal("two have it:", taken, err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Lock(two); err != nil {
		t.Fatal(err)
	}
}
