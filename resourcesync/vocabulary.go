package resourcesync

import "strings"

// Capability is the value of rs:md/@capability: the kind of a document.
type Capability string

// The capabilities of the core (1.1), of the archives (0.9.1) and of the
// notifications (1.0.1).
const (
	Description           Capability = "description"
	CapabilityList        Capability = "capabilitylist"
	ResourceList          Capability = "resourcelist"
	ResourceDump          Capability = "resourcedump"
	ResourceDumpManifest  Capability = "resourcedump-manifest"
	ChangeList            Capability = "changelist"
	ChangeDump            Capability = "changedump"
	ChangeDumpManifest    Capability = "changedump-manifest"
	ResourceListArchive   Capability = "resourcelist-archive"
	ResourceDumpArchive   Capability = "resourcedump-archive"
	ChangeListArchive     Capability = "changelist-archive"
	ChangeDumpArchive     Capability = "changedump-archive"
	ChangeNotification    Capability = "change-notification"
	FrameworkNotification Capability = "framework-notification"
)

// Known says whether the capability is one of the constants above. Others are
// extensions, or typing errors.
func (c Capability) Known() bool {
	switch c {
	case Description, CapabilityList, ResourceList, ResourceDump, ResourceDumpManifest,
		ChangeList, ChangeDump, ChangeDumpManifest,
		ResourceListArchive, ResourceDumpArchive, ChangeListArchive, ChangeDumpArchive,
		ChangeNotification, FrameworkNotification:
		return true
	}
	return false
}

// Snapshot says whether documents of this capability describe a state at one
// time (they have at and completed): Resource List, Resource Dump and its
// manifest.
func (c Capability) Snapshot() bool {
	return c == ResourceList || c == ResourceDump || c == ResourceDumpManifest
}

// Changes says whether documents of this capability describe an interval (they
// have from and until): Change List, Change Dump and its manifest.
func (c Capability) Changes() bool {
	return c == ChangeList || c == ChangeDump || c == ChangeDumpManifest
}

// Manifest says whether the document stands inside a package.
func (c Capability) Manifest() bool { return c == ResourceDumpManifest || c == ChangeDumpManifest }

// Notification says whether the document is sent, not fetched.
func (c Capability) Notification() bool {
	return c == ChangeNotification || c == FrameworkNotification
}

// Archive says whether the document is one of the four archives.
func (c Capability) Archive() bool {
	return c == ResourceListArchive || c == ResourceDumpArchive || c == ChangeListArchive || c == ChangeDumpArchive
}

// Archived is the capability of the documents in an archive (changelist for changelist-archive), or
// "" if c is no archive.
func (c Capability) Archived() Capability {
	if !c.Archive() {
		return ""
	}
	return Capability(strings.TrimSuffix(string(c), "-archive"))
}

// Values of rs:md/@change.
const (
	Created = "created"
	Updated = "updated"
	Deleted = "deleted"
)

// Link relations.
const (
	RelUp           = "up"
	RelIndex        = "index"
	RelDescribedBy  = "describedby"
	RelDescribes    = "describes"
	RelContents     = "contents"
	RelDuplicate    = "duplicate"
	RelAlternate    = "alternate"
	RelCanonical    = "canonical"
	RelPatch        = "http://www.openarchives.org/rs/terms/patch"
	RelMemento      = "memento"
	RelTimeGate     = "timegate"
	RelTimeMap      = "timemap"
	RelCollection   = "collection"
	RelVia          = "via"
	RelProfile      = "profile"
	RelArchives     = "archives"
	RelHub          = "hub"
	RelSelf         = "self"
	RelResourceSync = "resourcesync"                    // HTTP and HTML links to a Capability List; before 0.9.1 also the parent of a document
	RelChangesFrom  = NamespaceBridge + "#changes-from" // ours: the open Change List from a change on, whose number and .xml follow the address
	RelPosition     = NamespaceBridge + "#position"     // ours: a mirror may report its position there
	RelTop          = "top"                             // D-Lib form: the parent of a document
)

// Namespaces. Extension attributes of ours are in NamespaceBridge (prefix rsb).
const (
	NamespaceSitemap = "http://www.sitemaps.org/schemas/sitemap/0.9"
	NamespaceRS      = "http://www.openarchives.org/rs/terms/"
	NamespaceBridge  = "urn:rsbridge:terms"

	namespaceDLib     = "http://www.openarchives.org/rs/" // D-Lib form; also 0.2 and the Atom form
	namespacePreAlpha = "http://resourcesync.org/ns/"
	namespaceAtom     = "http://www.w3.org/2005/Atom"
	namespaceXHTML    = "http://www.w3.org/1999/xhtml"
)

// Names of our extension attributes (namespace NamespaceBridge).
const (
	ExtSequence   = "sequence"   // root rs:md: last position of the document in the log; entry rs:md: sequence of the change
	ExtGraph      = "graph"      // entry rs:md: "sha-256:HEX", graph digest of the wire form; if present, blank-node labels are wire names
	ExtGeneration = "generation" // root rs:md: number of the publication
	ExtBase       = "base"       // rs:ln patch: "sha-256:HEX" of the representation (JSON Patch) or graph (RDF Patch) it applies to
	ExtResult     = "result"     // rs:ln patch: the result of applying it
	ExtEntity     = "entity"     // entry rs:md: the entity, exactly, if no describes link can name it, or several might
	ExtKind       = "kind"       // entry rs:md: KindFile for a linked file
	ExtType       = "type"       // entry rs:md of a file: a media type unknown to the XML Schema
	ExtFiles      = "files"      // root rs:md of a Resource Dump: number of files of the set left out of the dump
)

// KindFile is the value of ExtKind for a file linked from descriptions. It is not one of the
// descriptions, whatever its media type.
const KindFile = "file"

// NormalizeType gives a media type for comparisons: without parameters, in lower case, with JSON
// Patch under its name of RFC 6902 ("application/json-patch" of the specifications is
// application/json-patch+json).
func NormalizeType(s string) string {
	if i := strings.IndexByte(s, ';'); i >= 0 {
		s = s[:i]
	}
	s = strings.ToLower(strings.TrimSpace(s))
	if s == "application/json-patch" {
		return "application/json-patch+json"
	}
	return s
}
