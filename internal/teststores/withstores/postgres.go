package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// postgres starts a PostgreSQL: the one installed here, or Debian's package unpacked. Nothing it writes is
// flushed, since its folder ends with the run; RSBRIDGE_POSTGRES_FLUSH=1 flushes, for the benchmarks.
func (k *kit) postgres(ctx context.Context) {
	const how = "on Debian or Ubuntu: apt-get install postgresql"
	bin, err := k.postgresBin(ctx)
	if err != nil {
		k.lack("PostgreSQL", how, err)
		return
	}
	dir, port := filepath.Join(k.work, "postgres"), freePort()
	as := func(program string, args ...string) []string {
		return append([]string{filepath.Join(bin, program)}, args...)
	}
	err = os.MkdirAll(dir, 0o700)
	if err == nil && os.Getuid() == 0 { // PostgreSQL refuses to run as root
		user := as
		as = func(program string, args ...string) []string {
			return append([]string{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"}, user(program, args...)...)
		}
		err = errors.Join(os.Chmod(k.work, 0o711), do(ctx, "chown", "nobody:nogroup", dir))
	}
	if err == nil {
		init := as("initdb", "-D", dir, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
		err = do(ctx, init[0], init[1:]...)
	}
	if err == nil {
		args := []string{"-D", dir, "-h", "127.0.0.1", "-p", port, "-k", "", "-c", "max_connections=300"}
		if os.Getenv("RSBRIDGE_POSTGRES_FLUSH") == "" {
			args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
		}
		run := as("postgres", args...)
		ready := func() bool {
			return do(ctx, filepath.Join(bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port) == nil
		}
		err = k.startIn(ctx, dir, "postgres", ready, nil, run[0], run[1:]...)
	}
	if err != nil {
		k.lack("PostgreSQL", how, err)
		return
	}
	k.env = append(k.env, fmt.Sprintf("%s=postgres://postgres@127.0.0.1:%s/postgres", teststores.EnvPostgres, port), teststores.EnvPostgresBin+"="+bin)
}

// postgresBin is the folder of the server's programs.
func (k *kit) postgresBin(ctx context.Context) (string, error) {
	const form = "usr/lib/postgresql/*/bin"
	if found, _ := filepath.Glob("/" + form); len(found) > 0 {
		return found[len(found)-1], nil
	}
	var last error
	for _, version := range []string{"17", "15"} {
		root, err := k.debian(ctx, "postgres", []string{"postgresql-" + version, "postgresql-client-" + version, "libpq5"})
		if err != nil {
			last = err
			continue
		}
		if found, _ := filepath.Glob(filepath.Join(root, form)); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.Join(errors.New("no PostgreSQL in Debian's packages"), last)
}
