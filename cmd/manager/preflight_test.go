package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/config/crd"
)

func TestAnAPIServerThatDoesNotAnswerIsAskedAgainForAWhile(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []error // the last one again and again
		asked   int
		want    string
	}{
		"an answer at once":              {[]error{nil}, 1, ""},
		"an answer at the third try":     {[]error{errors.New("refused"), errors.New("refused"), nil}, 3, ""},
		"no answer":                      {[]error{errors.New("refused")}, 15, "gave up after 15s: refused"},
		"CRDs that are too old: final":   {[]error{fmt.Errorf("start: %w", &crd.OutdatedError{})}, 1, "start: "},
		"another install: final as well": {[]error{errors.New("refused"), &overlapError{other: new(installed("other", "*", 1))}}, 2, "another autoscale-operator is installed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				err := patiently(t.Context(), func(context.Context) error {
					asked++
					return tc.answers[min(asked, len(tc.answers))-1]
				})
				assert.InDelta(t, tc.asked, asked, 1)
				if tc.want == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, tc.want)
				}
			})
		})
	}
}

func TestASignalEndsTheWaitForTheAPIServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := patiently(ctx, func(context.Context) error {
		cancel()
		return errors.New("refused")
	})
	assert.EqualError(t, err, "told to end while the API server gave no answer: refused")
}
