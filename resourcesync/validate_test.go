package resourcesync

import (
	"os"
	"path/filepath"
	"testing"
)

func TestValidateCalibration(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedDir(t, "fixtures", "spec-1.1"), "*.xml"))
	for _, f := range files {
		file, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		h, findings, err := Validate(file, ValidateOptions{})
		file.Close()
		t.Log(filepath.Base(f), h.Meta.Capability, err)
		for _, f := range findings {
			t.Log("    ", f)
		}
	}
}
