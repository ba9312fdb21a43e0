//go:build !linux

package filesink

import "os"

const flushesAll = false

func flushAll(*os.Root) error { return nil }
