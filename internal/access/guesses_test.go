package access

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGuesses: guesses take their time however many connections make them, other clients
// do not wait for them, and the log tells the first and then the number of each minute.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := NewGuesses("wrong tokens", slog.New(slog.NewTextHandler(&log, nil)))
		logged := func() string { // a timer logs too, and holds the lock
			l.mu.Lock()
			defer l.mu.Unlock()
			return log.String()
		}
		began := time.Now()
		for i := range 4 {
			if !l.Failed(t.Context(), "192.0.2.1:1") {
				t.Errorf("guess %d is refused", i)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("four guesses took %v", took)
		}
		var answered, refused atomic.Int64
		var all sync.WaitGroup
		until := time.Now().Add(60 * time.Second)
		for range 100 { // connections
			all.Go(func() {
				for time.Now().Before(until) {
					if l.Failed(t.Context(), "192.0.2.1:2") {
						answered.Add(1)
					} else {
						refused.Add(1)
						time.Sleep(10 * time.Second) // in virtual time: as long as the answer tells it to wait
					}
				}
			})
		}
		synctest.Wait()
		if at := time.Now(); !l.Failed(t.Context(), "[2001:db8::1]:1") || time.Since(at) != 0 {
			t.Error("another client waited")
		}
		all.Wait()
		if n := answered.Load(); n == 0 || n > 32*8 {
			t.Errorf("%d guesses of 100 connections were answered in a minute", n)
		}
		if refused.Load() == 0 || l.clients[clientOf("192.0.2.1:9")].waiting != 0 {
			t.Error("nothing was refused, or something still waits")
		}
		gone, stop := context.WithCancel(t.Context())
		stop()
		if at := time.Now(); !l.Failed(gone, "192.0.2.1:3") || time.Since(at) != 0 {
			t.Error("it waits for a client that has gone")
		}
		if n := strings.Count(logged(), "wrong tokens"); n < 2 || n > 4 {
			t.Errorf("the log has %d lines:\n%s", n, logged())
		}
		time.Sleep(forgetAfter)
		told := int64(0) // at the end of a minute all are, without another guess
		for _, m := range regexp.MustCompile(`client=192\.0\.2\.1 count=(\d+)`).FindAllStringSubmatch(logged(), -1) {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			told += n
		}
		if all := 4 + answered.Load() + refused.Load() + 1; told != all {
			t.Errorf("%d of %d guesses are in the log:\n%s", told, all, logged())
		}
		for i := range 3 * mostClients {
			l.Failed(gone, fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		}
		if n := len(l.clients); n > mostClients+1 {
			t.Errorf("%d clients are remembered", n)
		}
		if c := clientOf("[2001:db8::1]:1"); c != clientOf("[2001:db8::2]:7") || c == clientOf("[2001:db8:0:1::1]:1") {
			t.Error("a client of IPv6 is not its network")
		}
	})
}
