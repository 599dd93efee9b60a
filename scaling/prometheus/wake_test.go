package prometheus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhoIsWokenIsToldWhetherThereIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.main.delays["hangs"] = time.Hour
		r.Subscribe("answered", interval, load("quick"))
		r.Subscribe("left alone", interval, load("hangs"))
		r.start(t)
		pass(interval - time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		assert.Equal(t, map[Subscriber]int{"answered": 1, "left alone": 1}, r.woken)
		assert.Equal(t, map[Subscriber]int{"left alone": 1}, r.failed)
	})
}
