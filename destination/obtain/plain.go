package obtain

import (
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// maxLayers bounds the packings around each other.
const maxLayers = 4

// unpack gives a body without its packings; the files of a ZIP follow each other. After an error it
// gives the part before it.
func unpack(body []byte, limit int64, layers int) ([]byte, error) {
	var in io.Reader
	var err error
	switch {
	case layers == 0:
		return body, nil
	case fetch.IsGzip(body):
		in, err = gzip.NewReader(bytes.NewReader(body))
	case bytes.HasPrefix(body, []byte("BZh")):
		in = bzip2.NewReader(bytes.NewReader(body))
	case bytes.HasPrefix(body, []byte("\x28\xb5\x2f\xfd")):
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit))); err == nil {
			defer z.Close()
			in = z
		}
	case bytes.HasPrefix(body, []byte("PK\x03\x04")):
		return unpackFiles(body, limit, layers)
	default:
		return body, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := readUpTo(in, limit)
	if err != nil {
		return plain, err
	}
	return unpack(plain, limit, layers-1)
}

func unpackFiles(body []byte, limit int64, layers int) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			return out, err
		}
		plain, err := readUpTo(in, limit-int64(len(out)))
		if err == nil {
			plain, err = unpack(plain, limit-int64(len(out)), layers-1)
		}
		in.Close()
		if out = append(append(out, plain...), '\n'); err != nil {
			return out, err
		}
	}
	return out, nil
}

func readUpTo(in io.Reader, limit int64) ([]byte, error) {
	plain, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(plain)) > limit {
		err = fmt.Errorf("%w: it unpacks to more than %d bytes", fetch.ErrTooLarge, limit)
	}
	return plain, err
}

// narrow gives UTF-16 as UTF-8, told by its mark or by its zeros. Other zeros are left out: then the
// addresses in UTF-32 or in an archive are as in any text.
func narrow(text []byte) []byte {
	var zeros [2]int // at even and odd places
	head := text[:min(len(text), 4096)]
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
	}
	order := unicode.LittleEndian
	switch marked := bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}); {
	case bytes.IndexByte(text, 0) < 0 && !marked:
		return text
	case marked && (zeros[0] == 0 || zeros[1] == 0):
	case zeros[0] == 0 && zeros[1] > len(head)/4:
	case zeros[1] == 0 && zeros[0] > len(head)/4:
		order = unicode.BigEndian
	default:
		return bytes.ReplaceAll(text, []byte{0}, nil)
	}
	if plain, err := unicode.UTF16(order, unicode.UseBOM).NewDecoder().Bytes(text); err == nil {
		return plain
	}
	return bytes.ReplaceAll(text, []byte{0}, nil)
}

// isText tells text, in any encoding, by having no control characters but those of text.
func isText(text []byte) bool {
	return bytes.IndexFunc(text, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1a\x1b", r) }) < 0
}

// unclear are types of packed bytes, or of any.
var unclear = regexp.MustCompile(`octet|binary|download|zip|tar|compress|7z|rar|xz|lz|zst|xml|json`)

// isMedium tells pictures, sounds and the like by their bytes or their promised type: they hold no list.
func isMedium(body []byte, promised string) bool {
	for _, t := range []string{http.DetectContentType(body), resourcesync.NormalizeType(promised)} {
		switch major, sub, _ := strings.Cut(t, "/"); major {
		case "image", "audio", "video", "font", "model":
			return true
		case "application":
			if !unclear.MatchString(sub) {
				return true
			}
		}
	}
	return false
}
