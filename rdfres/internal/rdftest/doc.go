// Package rdftest has graphs and checks for the tests of the formats.
package rdftest
