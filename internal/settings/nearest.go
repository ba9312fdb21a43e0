package settings

import "strings"

// Meant suggests the nearest word of a list, in a clause for an error; "" for none near.
func Meant(word string, list []string) string {
	best, least := "", 3
	for _, w := range list {
		if n := edits(strings.ToLower(word), strings.ToLower(w)); n < least && n <= len(w)/3 {
			best, least = w, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits are the letters to insert, delete, replace or exchange with their neighbour
// between two words.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
