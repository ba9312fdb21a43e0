package tlsfiles_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/tlsfiles"
)

// write makes a certificate of localhost with a serial number.
func write(t *testing.T, c tlsfiles.Config, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})
	put(t, c.CertFile, cert)
	put(t, c.KeyFile, key)
	return cert, key
}

func put(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// TestRenewed: a renewed certificate is served at the next connection; between certificate and key,
// and with a damaged file, the old one stays. A client of one's own takes the certificate of the file
// alone.
func TestRenewed(t *testing.T) {
	dir := t.TempDir()
	c := tlsfiles.Config{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	write(t, c, 1)
	server, err := c.Server(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go srv.Serve(tlsfiles.Listener(l, func() *tls.Config { return server })) // ends with Close
	defer srv.Close()
	served := func(want int64) {
		t.Helper()
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != want {
			t.Errorf("certificate %d is served, want %d", got, want)
		}
	}
	served(1)
	other := tlsfiles.Config{CertFile: filepath.Join(dir, "cert2.pem"), KeyFile: filepath.Join(dir, "key2.pem")}
	cert, key := write(t, other, 2)
	put(t, c.CertFile, cert)
	served(1)
	own := func(c tlsfiles.Config) error {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: c.Own()}}
		res, err := client.Get("https://" + l.Addr().String())
		if err == nil {
			res.Body.Close()
		}
		return err
	}
	if err := own(c); err == nil {
		t.Error("a client takes another certificate than that of its file")
	}
	put(t, c.KeyFile, key)
	served(2)
	if err := own(c); err != nil {
		t.Error(err)
	}
	put(t, c.KeyFile, []byte("no key"))
	served(2)
	if err := c.Check(); err == nil {
		t.Error("a damaged key has no fault")
	}
	for _, half := range []tlsfiles.Config{{CertFile: c.CertFile}, {KeyFile: c.KeyFile}} {
		if _, err := half.Server(nil); err == nil || half.Check() == nil {
			t.Errorf("%+v is taken", half)
		}
	}
}
