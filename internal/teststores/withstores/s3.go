package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

const versitygw = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// moto starts the S3 server of moto, and makes the bucket of the tests.
func (k *kit) moto(ctx context.Context) {
	port := freePort()
	base := "http://127.0.0.1:" + port
	err := k.start(ctx, "moto", base+"/", nil, k.venv("moto_server"), "-H", "127.0.0.1", "-p", port)
	var req *http.Request
	if err == nil {
		req, err = http.NewRequestWithContext(ctx, http.MethodPut, base+"/"+teststores.S3Bucket, nil)
	}
	if err == nil {
		var res *http.Response
		if res, err = http.DefaultClient.Do(req); err == nil {
			if err = res.Body.Close(); err == nil && res.StatusCode != http.StatusOK {
				err = fmt.Errorf("make a bucket: %s", res.Status)
			}
		}
	}
	if err != nil {
		k.lack("moto", "pip install moto[server]", err)
		return
	}
	k.env = append(k.env, teststores.EnvMoto+"="+base)
}

// versitygw starts the Versity S3 Gateway over a folder, in which a folder is a bucket.
func (k *kit) versitygw(ctx context.Context) {
	const how = "let go install reach its module proxy"
	program := filepath.Join(k.cache, "versitygw-v1.8.0", "versitygw")
	if _, err := os.Stat(program); err != nil {
		fmt.Println("fetching", versitygw)
		install := []string{"GOBIN=" + filepath.Dir(program), "GOFLAGS=", "CGO_ENABLED=0", "go", "install", versitygw}
		if err := do(ctx, "env", install...); err != nil {
			k.lack("versitygw", how, err)
			return
		}
	}
	port, dir := freePort(), filepath.Join(k.work, "versitygw")
	err := os.MkdirAll(filepath.Join(dir, teststores.S3Bucket), 0o755)
	base := "http://127.0.0.1:" + port
	if err == nil {
		err = k.start(ctx, "versitygw", base+"/", nil, program, "--access", teststores.S3Key, "--secret", teststores.S3Key, "--port", "127.0.0.1:"+port, "posix", dir)
	}
	if err != nil {
		k.lack("versitygw", how, err)
		return
	}
	k.env = append(k.env, teststores.EnvVersitygw+"="+base)
}
