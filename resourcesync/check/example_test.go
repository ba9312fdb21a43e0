package check_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/rsbridge/rsbridge/resourcesync/check"
)

const list = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
  <rs:ln rel="resourcesync" href="capabilitylist.xml"/>
  <rs:md capability="resourcelist" from="2013-06-01T09:00:00Z"/>
  <url><loc>r/ada.nt</loc><lastmod>2013-05-31 20:00:00</lastmod></url>
</urlset>`

func ExampleValidate() {
	_, findings, err := check.Validate(strings.NewReader(list), check.ValidateOptions{Location: "http://src.example/people/resourcelist.xml"})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		if f.Severity == check.SeverityError {
			fmt.Println(f)
		}
	}
	// Output:
	// E19 line 3: a resourcelist has no at on its root
	// E21 line 3: a resourcelist has from="2013-06-01T09:00:00Z" on its root, where it is not used
	// E40 line 4: loc "r/ada.nt" is relative, want an absolute URI; destinations may read it as "http://src.example/people/r/ada.nt"
	// E42 line 4: lastmod "2013-05-31 20:00:00" is no W3C Datetime: a time needs a zone (Z, +hh:mm or -hh:mm); want 2013-05-31T20:00:00Z
	// E30 line 3: the root of a resourcelist has no rs:ln rel="up" to its capabilitylist
}
