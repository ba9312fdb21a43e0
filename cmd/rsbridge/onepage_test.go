package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// TestOnePage: a report for people names some of many faults, and counts the others.
func TestOnePage(t *testing.T) {
	const many = 90
	var problems []destination.Problem
	var named []destination.Difference
	tree := &check.Node{Location: "http://source.example/", Kind: "resourcelist", Index: true}
	dir := t.TempDir()
	for i := range many {
		problems = append(problems, destination.Problem{State: "failed", Location: fmt.Sprint(i)})
		named = append(named, destination.Difference{Kind: "missing", Location: fmt.Sprint(i)})
		tree.Children = append(tree.Children, &check.Node{Location: fmt.Sprint(i), Faults: []string{"it is cut"}})
		doc := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/><url><loc>a</loc></url></urlset>`
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.xml", i)), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var sync, audit, explore, validate bytes.Buffer
	saySync(&sync, destination.SyncReport{Name: "copy", Problems: problems, Pending: 400, Failed: 600})
	sayAudit(&audit, destination.AuditReport{Name: "copy", Named: named, Missing: 1000})
	if err := sayTree(&explore, tree); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"validate", dir}, strings.NewReader(""), &validate, &validate); code != exitPart {
		t.Errorf("exit code %d", code)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"sync":     {sync.String(), "and 980 more"},
		"audit":    {audit.String(), "and 980 more"},
		"explore":  {explore.String(), "and 70 more, 70 of them with faults"},
		"validate": {validate.String(), "E40: and 70 more findings of this rule"},
	} {
		if n := strings.Count(tc.text, "\n"); n > 80 || !strings.Contains(tc.text, tc.want) {
			t.Errorf("%s: %d lines, want %q:\n%s", name, n, tc.want, tc.text)
		}
	}
}

// TestValidateCountsAll: the total has each fault, of a few that are named.
func TestValidateCountsAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list.xml")
	doc := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/><rs:ln rel="up" href="http://source.example/cap.xml"/>` +
		strings.Repeat("<url><lastmod>2025-01-01T00:00:00Z</lastmod></url>", 5000)
	for i := range 120 { // the same rule, as warnings
		doc += fmt.Sprintf("<url><loc>urn:r:%d</loc></url>", i)
	}
	doc += `</urlset>`
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := inProcess(t, "validate", file)
	if code != exitPart || !strings.Contains(out, "E40: and 4980 more findings of this rule") || !strings.Contains(out, ", 5000 errors, 120 warnings\n") || strings.Count(out, "\n") > 50 {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	var found struct {
		Documents []struct{ Errors []check.Finding }
	}
	code, out, errs = inProcess(t, "validate", "--json", file)
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != exitPart || len(found.Documents) != 1 {
		t.Fatalf("exit code %d, %v, %s", code, err, errs)
	}
	if named := found.Documents[0].Errors; len(named) != 101 || named[100].More != 4900 {
		t.Errorf("%d findings, the last %+v", len(named), named[len(named)-1])
	}
}
