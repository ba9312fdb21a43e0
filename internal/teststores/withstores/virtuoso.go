package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// virtuosoPackages are unpacked into the cache, not installed: that needs no rights.
var virtuosoPackages = []string{"virtuoso-opensource-7-bin", "libwbxml2-1", "libltdl7", "libminizip1", "libpcre3"}

// virtuosoINI is the stock configuration with folders and ports of its own.
// ResultSetMaxRows is 10,000 as there: the tests meet this silent limit.
// RSBRIDGE_VIRTUOSO_ROWS raises it, as an operator would for the benchmarks.
const virtuosoINI = `[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso-errors.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
FileExtend = 200
MaxCheckpointRemap = 2000
TempStorage = TempDatabase
[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx
MaxCheckpointRemap = 2000
[Parameters]
ServerPort = 127.0.0.1:%s
DisableUnixSocket = 1
MaxClientConnections = 20
CheckpointInterval = 60
CaseMode = 2
DirsAllowed = .
NumberOfBuffers = 40000
MaxDirtyBuffers = 30000
MaxMemPoolSize = 200000000
MaxQueryMem = 2G
VectorSize = 1000
MaxVectorSize = 1000000
AdjustVectorSize = 0
ThreadsPerQuery = 4
AsyncQueueMaxThreads = 10
[HTTPServer]
ServerPort = 127.0.0.1:%s
ServerRoot = .
MaxClientConnections = 20
ServerThreads = 20
EnabledGzipContent = 1
[SPARQL]
ResultSetMaxRows = %s
MaxQueryCostEstimationTime = 0
MaxQueryExecutionTime = 120
[Client]
SQL_QUERY_TIMEOUT = 0
`

// virtuoso starts a Virtuoso whose user dba (password dba) may write through the
// addresses with Digest authentication, as after its installation; the tests
// themselves write through those without.
func (k *kit) virtuoso(ctx context.Context) {
	const how = "on Debian or Ubuntu: apt-get update, so that apt-get download can reach virtuoso-opensource-7-bin"
	root, err := k.debian(ctx, "virtuoso", virtuosoPackages)
	if err != nil {
		k.lack("Virtuoso", how, err)
		return
	}
	dir, sql, port := filepath.Join(k.work, "virtuoso"), freePort(), freePort()
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "virtuoso.ini"), fmt.Appendf(nil, virtuosoINI, sql, port, cmp.Or(os.Getenv("RSBRIDGE_VIRTUOSO_ROWS"), "10000")), 0o600)
	}
	libraries := "LD_LIBRARY_PATH=" + strings.Join(folders(root, "*.so.*"), ":")
	base := "http://127.0.0.1:" + port
	if err == nil {
		err = k.startIn(ctx, dir, "virtuoso", answers(base+"/sparql"), []string{libraries}, filepath.Join(root, "usr", "bin", "virtuoso-t"), "-f", "-c", "virtuoso.ini")
	}
	if err == nil {
		err = do(ctx, "env", libraries, filepath.Join(root, "usr", "bin", "isql-vt"), "127.0.0.1:"+sql, "dba", "dba", `EXEC=GRANT SPARQL_UPDATE TO "SPARQL";`)
	}
	if err != nil {
		k.lack("Virtuoso", how, err)
		return
	}
	k.env = append(k.env, teststores.EnvVirtuoso+"="+base)
}

// debian has packages of this machine's distribution unpacked in a folder of the
// cache.
func (k *kit) debian(ctx context.Context, name string, packages []string) (root string, err error) {
	root = filepath.Join(k.cache, name)
	mark, want := filepath.Join(root, "has"), strings.Join(packages, " ")
	if has, err := os.ReadFile(mark); err == nil && string(has) == want {
		return root, nil
	}
	fmt.Println("fetching Debian packages:", want)
	if err := errors.Join(os.RemoveAll(root), os.MkdirAll(root, 0o755)); err != nil {
		return "", err
	}
	download := func() error {
		ctx, cancel := context.WithTimeout(ctx, fetching)
		defer cancel()
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "download"}, packages...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get download: %w: %s", err, out)
		}
		return nil
	}
	if err = download(); err != nil { // the lists may be missing; only root can have them
		if updated := do(ctx, "apt-get", "-q", "update"); updated != nil {
			return "", err
		}
		if err = download(); err != nil {
			return "", err
		}
	}
	archives, err := filepath.Glob(filepath.Join(root, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, a := range archives {
		if err := errors.Join(do(ctx, "dpkg-deb", "-x", a, root), os.Remove(a)); err != nil {
			return "", err
		}
	}
	return root, os.WriteFile(mark, []byte(want), 0o644)
}

// folders are those below root with a file of this form.
func folders(root, form string) (out []string) {
	seen := map[string]bool{}
	_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error { // an unreadable one holds nothing for us
		if ok, _ := filepath.Match(form, filepath.Base(path)); ok && err == nil && !seen[filepath.Dir(path)] {
			seen[filepath.Dir(path)] = true
			out = append(out, filepath.Dir(path))
		}
		return nil
	})
	return out
}
