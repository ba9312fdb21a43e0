// Package settings names the settings of a hint as its reader sets them: by the key of a
// configuration, or by the flag of a command that has none.
package settings

import "strings"

// Names are flags by the keys that they set, or by the ends of those keys. With nil there is
// a configuration, and a key is its own name. A command line that a hint tells is a key too.
type Names map[string]string

// Of is the name of a setting. A setting without a flag needs a configuration file.
func (n Names) Of(key string) string {
	if n == nil {
		return key
	}
	if flag := n.flag(key); flag != "" {
		return flag
	}
	if strings.HasPrefix(key, "rsbridge ") {
		return key + " (with a configuration file; rsbridge init writes one)"
	}
	return key + " of a configuration file (rsbridge init writes one)"
}

// flag is the flag of a key or, without one, of the nearest key around it.
func (n Names) flag(key string) string {
	for ; key != ""; key = key[:max(strings.LastIndexByte(key, '.'), 0)] {
		for end := key; ; {
			if flag := n[end]; flag != "" {
				return flag
			}
			_, rest, more := strings.Cut(end, ".")
			if !more {
				break
			}
			end = rest
		}
	}
	return ""
}
