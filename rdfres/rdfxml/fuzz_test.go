package rdfxml_test

import (
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

func FuzzRDFXML(f *testing.F) {
	for _, c := range rdfxmlGood {
		f.Add([]byte(c.doc))
	}
	f.Add([]byte(inXML(`<?xml version="1.0" encoding="windows-1252"?><!DOCTYPE x PUBLIC "a" 'b' [<!ENTITY % d "<!ENTITY a '[&b;]'>"> %d;<!ENTITY b "<![CDATA[<]]>&#60;c/>"><!ATTLIST e:p e:d (a|b) 'a' e:f NMTOKENS #FIXED ' c  d '><!NOTATION n SYSTEM "n"><?p?><!-- - -->]>`, "&#x41;&a;]]")))
	f.Add([]byte(inUTF16(inXML("", "\U0001D538"), true, true)))
	rdftest.FuzzFormat(f, rdfres.RDFXML)
}
