package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// inArchive are the files beside the binary: name in the archive, file in the tree.
func inArchive(system string) [][2]string {
	files := [][2]string{
		{"CHANGELOG.md", "CHANGELOG.md"}, {"LICENSE", "LICENSE"}, {"NOTICE", "NOTICE"}, {"README.md", "README.md"},
	}
	if system == "linux" {
		files = append(files, [][2]string{{"Containerfile", "packaging/Containerfile"}, {"container/rsbridge.yaml", "packaging/container/rsbridge.yaml"}, {"rsbridge.service", "packaging/rsbridge.service"}}...)
	}
	return files
}

// archive packs the binary and its papers: a zip for Windows, else a tar.gz.
func (r *release) archive(base, bin, system string) error {
	ext, newArchive := ".tar.gz", r.tarball
	if system == "windows" {
		ext, newArchive = ".zip", r.zipped
	}
	out, err := os.OpenFile(base+ext, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	add, end := newArchive(out)
	dir := filepath.Base(base)
	err = add(dir+"/"+filepath.Base(bin), bin, 0o755)
	for _, f := range inArchive(system) {
		if err == nil {
			err = add(dir+"/"+f[0], f[1], 0o644)
		}
	}
	return errors.Join(err, end(), out.Close())
}

// adding puts a file into an archive.
type adding func(name, file string, mode fs.FileMode) error

func (r *release) tarball(w io.Writer) (adding, func() error) {
	z, _ := gzip.NewWriterLevel(w, gzip.BestCompression) // a known level
	t := tar.NewWriter(z)
	add := func(name, file string, mode fs.FileMode) error {
		data, err := os.ReadFile(file)
		if err == nil {
			err = t.WriteHeader(&tar.Header{Name: name, Mode: int64(mode), Size: int64(len(data)), ModTime: r.time, Format: tar.FormatPAX})
		}
		if err == nil {
			_, err = t.Write(data)
		}
		return err
	}
	return add, func() error { return errors.Join(t.Close(), z.Close()) }
}

func (r *release) zipped(w io.Writer) (adding, func() error) {
	z := zip.NewWriter(w)
	add := func(name, file string, mode fs.FileMode) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(mode)
		to, err := z.CreateHeader(h)
		if err == nil {
			_, err = to.Write(data)
		}
		return err
	}
	return add, z.Close
}

const sumsFile = "SHA256SUMS"

// sums writes the checksums of all files in a folder, as sha256sum -c reads them.
func sums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range files {
		sum, err := sumOf(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, f.Name())
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(b.String()), 0o644)
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
