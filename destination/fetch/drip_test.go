package fetch

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestDrippingBody: an answer that drips is given up, and its close waits for no rest.
func TestDrippingBody(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte("<")); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond) // the drip: often enough never to be idle, 40 s for what a close reads at most
			}
		}))
		lim := DefaultLimits()
		lim.SlowAfter, lim.SlowRate = 50*time.Millisecond, 1<<20
		f, err := NewClient(s.URL, Options{Limits: &lim})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := f.Get(t.Context(), Request{URL: s.URL, MaxBytes: 1 << 20, Attempts: 1})
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("status %d: a dripping body was read whole", status)
			}
		case <-time.After(20 * time.Second): // 4096 bytes take 40 s
			t.Errorf("status %d: a dripping body holds the reader", status)
		}
		s.Close()
	}
}
