package resourcesync

import (
	"strings"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// The namespaces of documents by number, as in the names of a Parser. A misspelt one has the number
// of the right one; its spelling is in Name.URI.
const (
	SpaceSitemap = xmlscan.First + iota
	SpaceRS
	SpaceDLib // the rs namespace of the D-Lib form
	SpaceBridge
	SpacePreAlpha
)

func spaceOf(uri string) xmlscan.Space {
	switch uri {
	case NamespaceSitemap:
		return SpaceSitemap
	case NamespaceRS:
		return SpaceRS
	case namespaceDLib:
		return SpaceDLib
	case NamespaceBridge:
		return SpaceBridge
	case namespacePreAlpha:
		return SpacePreAlpha
	}
	return misspeltSpace(uri)
}

// misspeltSpace knows usual misspellings of the namespaces: https, no www, a slash too few or too
// many, the one of before 2006.
func misspeltSpace(uri string) xmlscan.Space {
	s := strings.TrimSuffix(strings.ToLower(uri), "/")
	for _, before := range [...]string{"http://", "https://", "www."} {
		s = strings.TrimPrefix(s, before)
	}
	switch s {
	case "sitemaps.org/schemas/sitemap/0.9", "google.com/schemas/sitemap/0.84", "google.com/schemas/sitemap/0.9", "sitemaps.org/schemas/sitemap":
		return SpaceSitemap
	case "openarchives.org/rs/terms":
		return SpaceRS
	}
	return xmlscan.Other
}
