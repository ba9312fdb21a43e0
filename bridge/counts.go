package bridge

import (
	"context"
	"encoding/json"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish"
)

const countsInRecord = "counts/"

func (m setMemory) saveCounts(b kv.Batch, v publish.Vocabulary) error {
	raw, err := json.Marshal(v)
	if err == nil {
		b.Set([]byte(countsInRecord+m.set), raw)
	}
	return err
}

// counts are those of the last complete scan, zero when there are none.
func (m setMemory) counts(ctx context.Context) (v publish.Vocabulary) {
	raw, err := m.records.Get(ctx, []byte(countsInRecord+m.set))
	if err != nil || json.Unmarshal(raw, &v) != nil {
		return publish.Vocabulary{}
	}
	return v
}
