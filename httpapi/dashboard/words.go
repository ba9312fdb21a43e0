package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

var functions = template.FuncMap{
	"number": number, "seconds": seconds, "stamp": stamp, "clip": clipped, "local": localName, "sentence": sentence, "moment": moment, "when": when, "sign": sign,
	"list":  func(v ...any) []any { return v },
	"short": func(t time.Time) string { return t.Local().Format("Jan 2 15:04") },
	"clock": func(t time.Time) string { return t.Local().Format("15:04:05") },
}

// sign stands for a tone in a title.
func sign(t tone) string {
	return map[tone]string{toneGood: "✔", toneBusy: "▶", toneWait: "▲", toneBad: "✖", toneIdle: "–"}[t]
}

// moment is a time beside now, with the whole time for programs, and for people who point at it.
func moment(v any, now time.Time) template.HTML {
	t, _ := v.(time.Time)
	if p, ok := v.(*time.Time); ok && p != nil {
		t = *p
	}
	if t.IsZero() {
		return "never"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, stamp(t), when(t), ago(t, now))) //nolint:gosec // digits and our own words
}

// seconds is a span in words: the two largest units at most.
func seconds(s float64) string {
	switch {
	case s < 0:
		return "0 s"
	case s < 0.1:
		return "0.1 s"
	case s < 0.95:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s < 60:
		return strconv.Itoa(int(math.Round(s))) + " s"
	case s < 3600:
		return strconv.Itoa(int(s)/60) + " min"
	case s < 48*3600:
		if m := int(s) % 3600 / 60; m > 0 && s < 10*3600 {
			return fmt.Sprintf("%d h %d min", int(s)/3600, m)
		}
		return strconv.Itoa(int(s)/3600) + " h"
	}
	return strconv.Itoa(int(s)/86400) + " days"
}

// ago is a time beside now, in words.
func ago(t, now time.Time) string {
	switch d := now.Sub(t).Seconds(); {
	case t.IsZero():
		return "never"
	case d < -1:
		return "in " + seconds(-d)
	case d < 2:
		return "now"
	default:
		return seconds(d) + " ago"
	}
}

// when is a time as people of one place say it; browsers show it as theirs by title.
func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// stamp is a time for programs.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// number groups digits by threes with narrow spaces.
func number(v any) string {
	text := fmt.Sprint(v)
	digits := strings.TrimPrefix(text, "-")
	if len(digits) < 5 || strings.ContainsFunc(digits, func(r rune) bool { return !unicode.IsDigit(r) }) {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:len(text)-len(digits)])
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// bytesOf is a size.
func bytesOf(n int64) string {
	v, unit := float64(n), 0
	units := []string{"B", "kB", "MB", "GB", "TB"}
	for v >= 1000 && unit < len(units)-1 {
		v, unit = v/1000, unit+1
	}
	if unit == 0 || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[unit])
	}
	return fmt.Sprintf("%.1f %s", v, units[unit])
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// clipped is the beginning of a text.
func clipped(most int, text string) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:most-1])) + "…"
}

// sentence begins with a capital letter and ends with a stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if strings.ContainsRune(".!?…", rune(text[len(text)-1])) {
		return text
	}
	return text + "."
}

// localName is the readable end of an IRI.
func localName(iri string) string {
	cut := strings.TrimRight(iri, "/#")
	name := cut[strings.LastIndexAny(cut, "/#:")+1:]
	if plain, err := url.PathUnescape(name); err == nil && utf8.ValidString(plain) {
		name = plain
	}
	return cmp.Or(name, iri)
}

// formatTenth is a number with one digit after the point.
func formatTenth(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
