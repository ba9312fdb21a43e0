package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// report is docs/benchmarks/bench.json.
type report struct {
	Machine string   `json:"machine"`
	Rows    []result `json:"rows"`
}

// readReport reads a report; a missing file is empty.
func readReport(file string) (r weekReport, err error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		err = fmt.Errorf("read the results in %s: %w", file, err)
	}
	return r, err
}

// keep writes a result in the place of an older one of the same row.
func keep(file, machine string, res result) error {
	r, err := readReport(file)
	if err != nil {
		return err
	}
	r.Machine = machine
	r.put(res)
	return writeJSON(file, r)
}

// put takes results, each in the place of an older one of the same row.
func (r *report) put(results ...result) {
	for _, res := range results {
		at := slices.IndexFunc(r.Rows, func(old result) bool { return old.ID == res.ID })
		if at < 0 {
			r.Rows = append(r.Rows, res)
		} else {
			r.Rows[at] = res
		}
	}
}

func writeJSON(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

func (r result) limit() string {
	if r.Least {
		return fmt.Sprintf("≥ %g", r.Limit)
	}
	return fmt.Sprintf("≤ %g", r.Limit)
}

// writePage writes the results in a folder as a page with a plot beside it.
func writePage(page, results string) error {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nMade by `make bench` and `make bench-large`. Each row is a ratio against a baseline of the same run: " +
		"the median of interleaved runs, with its spread.\n\nRows keep the day of their measurement. A row over its limit is shown as it is.\n\n![Every ratio beside its limit](benchmarks.svg)\n")
	var all []result
	for _, part := range []struct{ file, title string }{
		{"bench.json", "Beside the stores and tools themselves"},
		{"bench-two.json", "Two sources, changed for minutes"},
		{"bench-large.json", "At ten times the size"},
		{"bench-weeks.json", "A simulated week of each of the first sources"},
	} {
		r, err := readReport(filepath.Join(results, part.file))
		if err != nil {
			return err
		}
		if len(r.Rows) == 0 {
			continue
		}
		all = append(all, r.Rows...)
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| row | what | measured | baseline | ratio | spread | runs | day | limit | holds |\n|---|---|---|---|---|---|---|---|---|---|\n", part.title, r.Machine)
		for _, r := range r.Rows {
			holds := "yes"
			if !r.Holds {
				holds = "**no**"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %.4g %s | %s: %.4g | %.2f | %.2f-%.2f | %d | %s | %s | %s |\n", r.ID, r.What, r.Value, r.Unit, r.Baseline, r.Base, r.Ratio, r.Spread[0], r.Spread[1], r.Runs, strings.TrimSpace(r.Day+" "+r.Note), r.limit(), holds)
		}
		b.WriteString(outOfReach(r.Rows))
		for _, r := range r.Rows {
			if r.Shape != nil {
				fmt.Fprintf(&b, "\nThe distribution of `%s`, in one run:\n\n![Part of the changes by lag](benchmarks/%[1]s.svg)\n", r.ID)
				if err := os.WriteFile(filepath.Join(results, r.ID+".svg"), []byte(plotShape(r)), 0o644); err != nil {
					return err
				}
			}
		}
		for _, w := range r.Weeks {
			fmt.Fprintf(&b, "\n%s.\n\n", w.head())
			for i, line := range w.cells() {
				fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
				if i == 0 {
					b.WriteString(strings.Repeat("|---", len(line)) + "|\n")
				}
			}
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("there are no results in %s: make bench measures them", results)
	}
	return errors.Join(os.WriteFile(page, []byte(b.String()), 0o644), os.WriteFile(strings.TrimSuffix(page, ".md")+".svg", []byte(plot(all)), 0o644))
}

// outOfReach names the stores whose plain download alone is too slow. No scan there can be so many
// times as fast as describing one by one, except by a way faster than the plain ones.
func outOfReach(rows []result) string {
	var b strings.Builder
	for _, d := range rows {
		store, ok := strings.CutPrefix(d.ID, "describe-")
		i := slices.IndexFunc(rows, func(r result) bool { return r.ID == "scan-"+store })
		if !ok || d.Holds || i < 0 || rows[i].Base <= 0 || rows[i].Ratio < 1 {
			continue
		}
		if most := d.Base / rows[i].Base; most < d.Limit {
			fmt.Fprintf(&b, "\n`%s` cannot hold here: one by one takes %.1f times as long as the fastest plain download. A scan without other costs would have %.1f.\n", d.ID, most, most)
		}
	}
	return b.String()
}

// plot shows how many times better than its limit each row is, on a logarithmic scale; rows left of
// the line do not hold.
func plot(rows []result) string {
	const (
		line, left, width = 18, 190, 430
		most              = 64.0
	)
	better := func(r result, ratio float64) float64 {
		x := r.Limit / ratio
		if r.Least {
			x = ratio / r.Limit
		}
		return min(max(x, 1/most), most)
	}
	at := func(x float64) float64 { return left + width/2 + math.Log2(x)/math.Log2(most)*width/2 }
	height := line*(len(rows)+2) + 10
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", left+width+90, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="%g" y="14" text-anchor="middle">how many times better than the limit</text>`+"\n", at(1))
	for x := 1 / most; x <= most; x *= 4 {
		fmt.Fprintf(&b, `<line x1="%[1]g" x2="%[1]g" y1="20" y2="%[2]d" stroke="%[3]s"/><text x="%[1]g" y="%[4]d" text-anchor="middle" fill="#666">%[5]g</text>`+"\n",
			at(x), height-line, map[bool]string{true: "#333", false: "#ddd"}[x == 1], height-4, x)
	}
	for i, r := range rows {
		y := 24 + line*i
		x, colour := at(better(r, r.Ratio)), "#2b7a4b"
		if !r.Holds {
			colour = "#b3362b"
		}
		a, z := at(better(r, r.Spread[0])), at(better(r, r.Spread[1]))
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%.1f" y="%d" width="%.1f" height="11" fill="%s"/>`, left-6, y+10, html.EscapeString(r.ID), min(x, at(1)), y, math.Abs(x-at(1)), colour)
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%[3]d" y2="%[3]d" stroke="#111"/><text x="%d" y="%d">%s, %s</text>`+"\n", min(a, z), max(a, z), y+6, left+width+4, y+10, fmt.Sprintf("%.2f", r.Ratio), html.EscapeString(r.limit()))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
