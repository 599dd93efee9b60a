package v1alpha1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPauseEndsAtItsTime(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	for name, tc := range map[string]struct {
		paused bool
		until  *metav1.Time
		want   bool
	}{
		"without an end":           {true, nil, true},
		"before its end":           {true, at(time.Nanosecond), true},
		"at its end":               {true, at(0), false},
		"after its end":            {true, at(-time.Hour), false},
		"an end is no pause":       {false, at(time.Hour), false},
		"nothing is set":           {false, nil, false},
		"an end in another zone":   {true, &metav1.Time{Time: now.Add(time.Second).In(time.FixedZone("east", 3600))}, true},
		"an end that is long over": {true, &metav1.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &AutoScaler{Spec: AutoScalerSpec{Paused: tc.paused, PausedUntil: tc.until}}
			assert.Equal(t, tc.want, a.PausedAt(now))
		})
	}
}
