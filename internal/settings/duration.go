package settings

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"time"
)

const day = 24 * time.Hour

// longUnit matches a number of weeks or days.
var longUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([wd])`)

// ParseDuration is time.ParseDuration, with w for weeks and d for days of 24 hours, before the shorter units: 30d,
// 1w2d12h.
func ParseDuration(text string) (time.Duration, error) {
	var long float64
	rest := text
	for _, unit := range []string{"w", "d"} {
		if m := longUnit.FindStringSubmatch(rest); m != nil && m[2] == unit {
			n, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return 0, err
			}
			long += n * float64(map[string]time.Duration{"w": 7 * day, "d": day}[unit])
			rest = rest[len(m[0]):]
		}
	}
	if rest == text {
		return time.ParseDuration(text)
	}
	var short time.Duration
	if rest != "" {
		var err error
		if short, err = time.ParseDuration(rest); err != nil || rest[0] == '-' || rest[0] == '+' {
			return 0, errors.New("is no duration: " + strconv.Quote(text))
		}
	}
	if long += float64(short); long >= math.MaxInt64 {
		return 0, errors.New("is too long a duration: " + strconv.Quote(text))
	}
	return time.Duration(math.Round(long)), nil
}

// FormatDuration writes whole days as such, for ParseDuration.
func FormatDuration(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}
