package sparqlsrc

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// TestDumpProof cuts a dump where nothing in it shows that: what tells that it is whole
// notices it, and where nothing tells, the first scan says so.
func TestDumpProof(t *testing.T) {
	const lines = "<http://e/1> <http://e/p> \"1\" .\n<http://e/2> <http://e/p> \"2\" .\n"
	const more = "<http://e/3> <http://e/p> \"3\" .\n"
	gz := append(pack(t, "gzip", []byte(lines)), pack(t, "gzip", []byte(more))...)
	first := len(pack(t, "gzip", []byte(lines)))
	sum := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	whole := []byte(lines + more)
	for _, c := range []struct {
		name  string
		file  string
		whole []byte
		cut   int
		proof string
		files map[string]string
		says  string // of the cut one; "": only a warning
	}{
		{name: "nothing", file: "a.nt", whole: whole, cut: len(lines)},
		{name: "nothing, gzip", file: "a.nt.gz", whole: gz, cut: first},
		{name: "sha256sum", file: "a.nt", whole: whole, cut: len(lines), files: map[string]string{"a.nt.sha256": sum(whole) + "  a.nt\n"}, says: "a.nt.sha256"},
		{name: "gzip", file: "a.nt.gz", whole: gz, cut: first, files: map[string]string{"a.nt.gz.sha256": sum(gz)}, says: "a.nt.gz.sha256"},
		{name: "binary, in a folder", file: "a.nt", whole: whole, cut: len(lines), files: map[string]string{"a.nt.sha256sum": strings.ToUpper(sum(whole)) + " *out/a.nt\r\n"}, says: "a.nt.sha256sum"},
		{name: "tag", file: "a.nt", whole: whole, cut: len(lines), files: map[string]string{"SHA512SUMS": fmt.Sprintf("SHA512 (b.nt) = %0128x\nSHA512 (a.nt) = %x\n", 0, sha512.Sum512(whole))}, says: "SHA512SUMS"},
		{name: "md5", file: "a.nt", whole: whole, cut: len(lines), files: map[string]string{"md5sums.txt": fmt.Sprintf("%x  a.nt\n", md5.Sum(whole))}, says: "md5sums.txt"},
		{name: "a list of others", file: "a.nt", whole: whole, cut: len(lines), files: map[string]string{"SHA256SUMS": sum(whole) + "  b.nt\n"}},
		{name: "must be", file: "a.nt", whole: whole, cut: len(lines), proof: dumpfile.ProofChecksum, files: map[string]string{"SHA256SUMS": sum(whole) + "  a.nt\n"}, says: "SHA256SUMS"},
		{name: "count", file: "a.nt", whole: whole, cut: len(lines), proof: dumpfile.ProofCount, files: map[string]string{"a.nt.count": "3\n"}, says: "2 statements"},
		{name: "a count of no name", file: "a.nt", whole: whole, cut: len(lines), files: map[string]string{"a.nt.count": "3\n"}, says: "the count in a.nt.count is 3"},
		{name: "a count and a last line", file: "a.nt.gz", whole: append(bytes.Clone(gz), pack(t, "gzip", []byte("# end"))...), cut: len(gz), proof: "# end", files: map[string]string{"a.nt.gz.count": "3"}, says: "last line"},
		{name: "last line", file: "a.nt", whole: []byte(lines + more + "# end\n\n"), cut: len(lines), proof: "# end", says: "last line"},
		{name: "last line of gzip", file: "a.nt.gz", whole: append(bytes.Clone(gz), pack(t, "gzip", []byte("# end"))...), cut: len(gz), proof: "# end", says: "last line"},
		{name: "last line of Turtle", file: "a.ttl", whole: []byte(lines + more + "# end\n"), cut: len(lines), proof: "# end", says: "last line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range c.files {
				put(t, filepath.Join(dir, name), []byte(data), 5)
			}
			var log bytes.Buffer
			scan := func(data []byte) (DumpScan, error) {
				put(t, filepath.Join(dir, c.file), data, 5)
				d := dumps(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*"}}, Proof: c.proof, Settle: 1})
				out, err := d.Scan(t.Context(), dumpfile.File{}, false)
				if err == nil {
					out.Scan.Close()
				}
				return out, err
			}
			out, err := scan(c.whole)
			if err != nil || out.Stats().Triples != 3 || (out.Proof == "") != (c.says == "") {
				t.Fatalf("whole: %v, %q, %v", out.Scan, out.Proof, err)
			}
			if warned := strings.Contains(log.String(), "nothing tells whether"); warned != (c.says == "") {
				t.Errorf("whole: the log says %s", &log)
			}
			out, err = scan(c.whole[:c.cut])
			switch {
			case c.says == "" && (err != nil || out.Stats().Triples != 2):
				t.Errorf("cut, without a proof: %v", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("cut: %v does not say %s", err, c.says)
			}
		})
	}
	for _, proof := range []string{dumpfile.ProofChecksum, dumpfile.ProofCount} {
		dir := t.TempDir()
		put(t, dir+"/a.nt", whole, 5)
		d := dumps(t, Config{}, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*"}}, Proof: proof, Settle: 1})
		if _, err := d.Scan(t.Context(), dumpfile.File{}, false); err == nil {
			t.Errorf("%s is not there, and the dump is taken", proof)
		}
	}
}
