package teststores

import (
	"crypto/rand"
	"strings"
	"testing"
)

// S3 servers by others.
const (
	EnvMoto      = "RSBRIDGE_TEST_MOTO"      // base address
	EnvVersitygw = "RSBRIDGE_TEST_VERSITYGW" // base address
)

// What the S3 servers know.
const (
	S3Bucket = "rsbridge"
	S3Key    = "rsbridge-test" // the id and the secret
)

// Moto is the running S3 server of moto: the environment has its address and the credentials, until
// the test ends. It gives the address of an empty place there, s3://bucket/prefix.
func Moto(t testing.TB) string {
	return s3(t, need(t, EnvMoto, "the S3 server of moto"))
}

// Versitygw is the same with the running Versity S3 Gateway.
func Versitygw(t testing.TB) string {
	return s3(t, need(t, EnvVersitygw, "the S3 server versitygw"))
}

func s3(t testing.TB, base string) string {
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": base, "AWS_ACCESS_KEY_ID": S3Key, "AWS_SECRET_ACCESS_KEY": S3Key, "AWS_REGION": "us-east-1",
		"AWS_ENDPOINT_URL_S3": "", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	return "s3://" + S3Bucket + "/" + strings.ToLower(rand.Text())
}
