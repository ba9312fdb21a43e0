package resourcesync

import "slices"

// Severities of findings.
const (
	SeverityError   = "E" // a must of the specification is violated
	SeverityWarning = "W" // a should
	SeverityInfo    = "I" // advice
)

// Rule is one of the 124 rules that documents are held against.
type Rule struct {
	Number   int
	Severity string // the highest that a finding of the rule has
	Context  bool   // needs more than one document: Checker, or a live source
	Text     string // what must hold
}

// RuleOf gives a rule by its number.
func RuleOf(number int) (Rule, bool) {
	i, ok := slices.BinarySearchFunc(rules, number, func(r Rule, n int) int { return r.Number - n })
	if !ok {
		return Rule{}, false
	}
	return rules[i], true
}

// Rules gives all rules, by number.
func Rules() []Rule { return slices.Clone(rules) }

var rules = []Rule{
	{1, "E", false, "the document is well-formed XML"},
	{2, "I", false, "it is in UTF-8 and has no DTD"},
	{3, "E", false, "the root is urlset or sitemapindex in the Sitemap namespace"},
	{4, "E", false, "urlset holds only url, sitemapindex only sitemap (besides rs elements)"},
	{5, "E", false, "the root has exactly one rs:md"},
	{6, "E", false, "the root's rs:md has capability"},
	{7, "I", false, "the capability is a known one"},
	{8, "E", false, "the rs namespace is http://www.openarchives.org/rs/terms/, and holds md and ln only"},
	{9, "E", false, "ResourceSync attributes have no prefix"},
	{10, "E", false, "other attributes of rs elements are in a namespace of their own"},
	{11, "I", false, "nothing of an older dialect is used"},
	{12, "W", false, "there are at most 50,000 entries"},
	{13, "W", false, "the document has at most 50 MB"},
	{14, "I", false, "elements stand in the order of the schemas"},
	{15, "I", false, "values are as the XML Schemas want them, where these ask for more than the text"},
	{16, "E", false, "manifests and notifications are urlset"},
	{17, "W", false, "a capabilitylist is no sitemapindex"},
	{18, "E", false, "a description is a sitemapindex only as a group of Source Descriptions"},
	{19, "E", false, "resource documents have at on their root"},
	{20, "E", false, "change documents have from on their root"},
	{21, "E", false, "change documents have no at or completed, resource documents no from or until on their root"},
	{22, "I", false, "description, capabilitylist and archives have no times on their root"},
	{23, "E", false, "the root's times are W3C Datetimes"},
	{24, "W", false, "the root's times are full UTC datetimes ending in Z"},
	{25, "E", false, "at is not after completed"},
	{26, "E", false, "from is not after until"},
	{27, "I", false, "the root's times are not in the future"},
	{28, "E", false, "every rs:ln has rel and href"},
	{29, "E", false, "every href is an absolute URI"},
	{30, "E", false, "the root has an up link (not descriptions and notifications)"},
	{31, "W", false, "the root has at most one up and one index link"},
	{32, "E", true, "a part names its index in an index link (W if absent, E if another)"},
	{33, "W", false, "the roots of description and capabilitylist have a describedby link"},
	{34, "E", false, "a description has no up link"},
	{35, "E", true, "up leads to a capabilitylist (from a capabilitylist to a description)"},
	{36, "W", true, "the target of up lists the document, or its index, with the same capability"},
	{37, "E", true, "index leads to a sitemapindex of the same capability that holds the document"},
	{38, "E", false, "a relation is IANA-registered or an absolute URI, one for each rs:ln"},
	{39, "I", false, "root links have rel and href only"},
	{40, "E", false, "an entry has exactly one loc, which is a URI"},
	{41, "E", false, "an entry has at most one rs:md"},
	{42, "E", false, "an entry has at most one lastmod, a W3C Datetime"},
	{43, "E", false, "changefreq is one of its seven values"},
	{44, "E", false, "url and sitemap have no attributes"},
	{45, "E", false, "change is created, updated or deleted"},
	{46, "E", false, "length is a count of bytes"},
	{47, "E", false, "hash is a list of algorithm:hexdigest, each algorithm once, of the right length"},
	{48, "E", false, "type is a media type"},
	{49, "E", false, "pri is 1 to 999999, on rs:ln only"},
	{50, "E", false, "path stands in manifests only and is a safe path from / on"},
	{51, "E", false, "change and datetime stand in entries of changelist, changedump-manifest and notifications only"},
	{52, "E", false, "at and completed stand in entries of resourcelist index, resourcedump, its index and resource archives only"},
	{53, "E", false, "from and until stand in entries of changelist index, changedump, its index and change archives only"},
	{54, "E", false, "an entry's times are W3C Datetimes, at not after completed, from not after until"},
	{55, "W", false, "an entry's times are within those of the root"},
	{56, "E", false, "modified of rs:ln is a W3C Datetime"},
	{57, "E", false, "an entry of a description has the capability capabilitylist"},
	{58, "W", false, "an entry of a description has a describedby link"},
	{59, "W", false, "entries of description and capabilitylist have no lastmod"},
	{60, "E", false, "an entry of a capabilitylist has a capability"},
	{61, "E", false, "a capabilitylist has each capability once"},
	{62, "E", false, "a capabilitylist does not list capabilitylist, description or manifests"},
	{63, "E", true, "the target of each entry has the announced capability"},
	{64, "E", true, "all capabilities of a set cover the same resources"},
	{65, "E", false, "an entry for a notification channel has a hub link"},
	{66, "W", true, "a Source Description is at /.well-known/resourcesync"},
	{67, "E", true, "a resourcesync link leads to a capabilitylist that covers the resource"},
	{68, "W", false, "a resource stands once in a resourcelist, also across the parts of an index"},
	{69, "W", false, "lastmod is not after the time of the resourcelist"},
	{70, "E", true, "an index holds documents of its own capability, and no index"},
	{71, "W", false, "an entry of a dump has type and length"},
	{72, "W", false, "all packages of a dump are of one type"},
	{73, "E", true, "the manifest behind a contents link equals that in the package"},
	{74, "E", true, "a package is a ZIP file with manifest.xml at its top level"},
	{75, "E", true, "the manifest's capability is that of the dump"},
	{76, "E", false, "an entry of a resourcedump-manifest has a path"},
	{77, "W", false, "an entry of a manifest has a type"},
	{78, "E", true, "each path of a manifest is in the package, with the length and hash it promises"},
	{79, "W", true, "each file of a package is in its manifest"},
	{80, "I", false, "a path is used once"},
	{81, "W", true, "length and hash of a package are as promised"},
	{82, "E", false, "an entry of a changelist or changedump-manifest has a change"},
	{83, "E", false, "datetime is within from and until"},
	{84, "E", false, "changes are in the order of their times"},
	{85, "W", false, "packages of a changedump are in the order of time"},
	{86, "E", false, "parts in an index of change documents are in the order of time"},
	{87, "W", false, "an entry in an index of change documents has from"},
	{88, "E", true, "an entry in an index of change documents has until when the part is closed, and its values"},
	{89, "I", false, "only the last part in an index is open"},
	{90, "W", false, "the intervals of consecutive parts adjoin"},
	{91, "E", false, "every change has a datetime (before 1.1 a lastmod)"},
	{92, "E", false, "an entry of a changedump-manifest has a path unless it is a deletion"},
	{93, "W", false, "a deletion has no path, length or hash"},
	{94, "I", false, "the changes of a resource make sense one after the other"},
	{95, "E", true, "a closed document does not change"},
	{96, "E", true, "an open document keeps its entries"},
	{97, "W", true, "several documents of one capability are grouped by an index, which the capabilitylist names"},
	{98, "E", false, "patch links stand in entries of changelist, changedump-manifest and notifications only"},
	{99, "E", false, "a patch link has type, in a manifest also path"},
	{100, "W", false, "a timegate link has rel and href only"},
	{101, "W", false, "a duplicate link does not repeat or contradict hash, length and type"},
	{102, "W", false, "an alternate link has a type"},
	{103, "I", false, "there is one via link at most"},
	{104, "I", false, "describedby and describes lead both ways"},
	{105, "E", false, "contents links stand in entries of dumps only"},
	{106, "W", true, "hash, length and type of a link are those of its target"},
	{107, "W", true, "length is the Content-Length"},
	{108, "W", true, "encoding is the Content-Encoding"},
	{109, "W", true, "type is the Content-Type"},
	{110, "W", true, "hash is that of the body"},
	{111, "W", true, "lastmod is Last-Modified"},
	{112, "I", true, "a deleted resource is not there"},
	{113, "E", false, "change archives are in the order of time"},
	{114, "W", true, "a part of an archive names its index"},
	{115, "W", false, "archived intervals have no gaps"},
	{116, "W", false, "entries of an archive's index have no lastmod"},
	{117, "E", true, "an archive leads to documents of the plain capability; change documents among them are closed"},
	{118, "E", false, "a change notification has from and until"},
	{119, "E", true, "the intervals of consecutive notifications adjoin"},
	{120, "E", false, "an entry of a framework notification has change and capability, and the pair is allowed"},
	{121, "E", true, "an entry of a framework notification names the index of its document, and is no index"},
	{122, "E", true, "a notification is sent as application/xml with self and hub links"},
	{123, "E", true, "a topic answers 200 with application/xml and self and hub links"},
	{124, "W", true, "a lease is granted for 300 to 2678400 seconds"},
}
