package settings

import "testing"

func TestNames(t *testing.T) {
	n := Names{"update": "--update", "stores.mirror": "--into", "admin.listen": "--admin", "listen": "--listen", "rsbridge accept mirror": "POST /accept"}
	for key, want := range map[string]string{
		"update":                       "--update",
		"stores.mirror.update":         "--update",
		"stores.mirror.embedded":       "--into",
		"admin.listen":                 "--admin",
		"public.listen":                "--listen",
		"rsbridge accept mirror":       "POST /accept",
		"rsbridge accept other":        "rsbridge accept other (with a configuration file; rsbridge init writes one)",
		"destinations.mirror.max_rows": "destinations.mirror.max_rows of a configuration file (rsbridge init writes one)",
	} {
		if got := n.Of(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
		if got := Names(nil).Of(key); got != key {
			t.Errorf("with a configuration %s is %q", key, got)
		}
	}
}
