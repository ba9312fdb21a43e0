package resourcesync

import "fmt"

// warnings collects forgiven faults: the first of each kind in full, then a count. So a list of
// millions with one habit gives one line.
type warnings struct {
	list   []string
	counts map[string]*warning
	tell   func(string) // may be nil
}

type warning struct {
	at   int // in list
	more int
	text string
}

const maxWarnings = 100

func (w *warnings) add(kind string, line int, format string, args ...any) {
	if seen := w.counts[kind]; seen != nil {
		seen.more++
		return
	}
	if len(w.list) == maxWarnings {
		return
	}
	text := fmt.Sprintf(format, args...)
	if line > 0 {
		text = fmt.Sprintf("line %d: %s", line, text)
	}
	if w.counts == nil {
		w.counts = map[string]*warning{}
	}
	w.counts[kind] = &warning{at: len(w.list), text: text}
	w.list = append(w.list, text)
	if w.tell != nil {
		w.tell(text)
	}
}

// settle writes the counts into the list.
func (w *warnings) settle() {
	for _, seen := range w.counts {
		if seen.more > 0 {
			w.list[seen.at] = fmt.Sprintf("%s (and %d more of this kind)", seen.text, seen.more)
		}
	}
}
