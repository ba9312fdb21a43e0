package obtain

import (
	"bytes"
	"slices"
	"strings"
)

// officeTypes begin the types of office documents, books and measurements.
var officeTypes = []string{"vnd.openxmlformats-officedocument.", "vnd.oasis.opendocument.", "vnd.ms-word", "vnd.ms-powerpoint", "vnd.ms-excel.", "msword", "epub+zip", "x-netcdf", "netcdf", "x-hdf"}

// isOfficeType tells of a subtype of application whose bodies are for people, and no lists of addresses.
func isOfficeType(subtype string) bool {
	return slices.ContainsFunc(officeTypes, func(t string) bool { return strings.HasPrefix(subtype, t) })
}

// documentMarks begin the bytes of such bodies, and of pictures that browsers do not know.
var documentMarks = []string{
	"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",                               // Word, Excel and PowerPoint of before 2007
	"II*\x00", "MM\x00*", "\x00\x00\x00\x0cjP  ", "\xff\x4f\xff\x51", // TIFF, JPEG 2000
	"CDF\x01", "CDF\x02", "CDF\x05", "\x89HDF\r\n\x1a\n", // netCDF, HDF5
}

// isDocument tells them by their bytes. A ZIP is one if its type or its first members say so.
func isDocument(body []byte, mediaType string) bool {
	if slices.ContainsFunc(documentMarks, func(mark string) bool { return bytes.HasPrefix(body, []byte(mark)) }) {
		return true
	}
	if !bytes.HasPrefix(body, []byte("PK\x03\x04")) {
		return false
	}
	major, sub, _ := strings.Cut(mediaType, "/")
	head := body[:min(len(body), 4<<10)]
	return major == "application" && isOfficeType(sub) || bytes.Contains(head, []byte("[Content_Types].xml")) || len(head) > 38 && string(head[30:38]) == "mimetype"
}
