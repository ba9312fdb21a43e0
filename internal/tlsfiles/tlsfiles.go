// Package tlsfiles serves TLS by a certificate and a key in files. Changed files are read again at
// the next connection, so a renewed certificate needs no restart.
package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
)

// Config are the files of a listener. The zero value is a listener without TLS.
type Config struct {
	CertFile string `yaml:"cert_file" doc:"PEM file with the certificate, then those above it; read again when it changes"`
	KeyFile  string `yaml:"key_file" doc:"PEM file with the private key"`
}

// On tells whether there is TLS.
func (c Config) On() bool { return c.CertFile != "" || c.KeyFile != "" }

// Scheme is http or https.
func (c Config) Scheme() string {
	if c.On() {
		return "https"
	}
	return "http"
}

// Resolve changes the paths.
func (c *Config) Resolve(path func(string) string) {
	c.CertFile, c.KeyFile = path(c.CertFile), path(c.KeyFile)
}

// Check tells why the files cannot be used, nil if they can.
func (c Config) Check() error {
	if !c.On() {
		return nil
	}
	_, err := c.Load()
	return err
}

// Load reads the files.
func (c Config) Load() (*tls.Certificate, error) {
	switch {
	case c.CertFile == "":
		return nil, errors.New("cert_file is missing beside key_file")
	case c.KeyFile == "":
		return nil, errors.New("key_file is missing beside cert_file")
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot be used: %w", err)
	}
	return &pair, nil
}

// files are the files of one listener, as they were read last.
type files struct {
	c   Config
	log *slog.Logger

	mu   sync.Mutex // guards the fields below
	pair *tls.Certificate
	seen [2]os.FileInfo
}

// Server is the TLS of a listener, nil without TLS. It speaks HTTP/1.1: limits of connections are
// limits of requests then, and notifications take whole connections.
func (c Config) Server(log *slog.Logger) (*tls.Config, error) {
	if !c.On() {
		return nil, nil
	}
	f := &files{c: c, log: log}
	f.seen = f.look()
	var err error
	if f.pair, err = c.Load(); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current(), nil }}, nil
}

func (f *files) look() (now [2]os.FileInfo) {
	for i, name := range []string{f.c.CertFile, f.c.KeyFile} {
		now[i], _ = os.Stat(name) // nil: it is being replaced
	}
	return now
}

// current is the certificate of the files. Files that do not belong together change nothing: the
// second one is still to come.
func (f *files) current() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.look()
	if same(now[0], f.seen[0]) && same(now[1], f.seen[1]) {
		return f.pair
	}
	f.seen = now
	pair, err := f.c.Load()
	if err != nil {
		f.log.Error("the changed certificate cannot be used; the old one stays", "file", f.c.CertFile, "error", err)
		return f.pair
	}
	f.pair = pair
	f.log.Info("the certificate was read again", "file", f.c.CertFile)
	return f.pair
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Listener serves TLS on a listener whenever current gives one.
func Listener(l net.Listener, current func() *tls.Config) net.Listener { return listener{l, current} }

type listener struct {
	net.Listener
	current func() *tls.Config
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if t := l.current(); t != nil {
		return tls.Server(c, t), nil
	}
	return c, nil
}

// Own is the TLS of a client of one's own listener, nil without TLS: it trusts the certificate of
// the file and no other, whatever its names.
func (c Config) Own() *tls.Config {
	if !c.On() {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, // VerifyConnection does more
		VerifyConnection: func(state tls.ConnectionState) error {
			raw, err := os.ReadFile(c.CertFile)
			if err != nil {
				return err
			}
			block, _ := pem.Decode(raw)
			if block == nil || len(state.PeerCertificates) == 0 || !bytes.Equal(block.Bytes, state.PeerCertificates[0].Raw) {
				return errNotOwn
			}
			return nil
		}}
}

var errNotOwn = errors.New("the daemon's certificate is not the configured one")

// Roots are the certificates of authorities in a file.
func Roots(file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s has no PEM certificate", file)
	}
	return pool, nil
}
