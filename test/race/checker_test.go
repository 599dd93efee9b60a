package race

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
)

// at places an operation in time.
func at(call, ret int64, o op) porcupine.Operation {
	return porcupine.Operation{Input: o, Call: call, Return: ret}
}

func of(v verb, name string, epoch int64) op {
	o := op{verb: v, name: name, epoch: epoch}
	if name != "" {
		o.owner = name + "-uid"
	}
	return o
}

func waiting(name string) op {
	o := of(stored, name, 0)
	o.waits = true
	return o
}

func named(v verb, name string) op { return op{verb: v, name: name} }

// aHolds is a history in which "a" was stored and holds the Deployment in epoch 1.
func aHolds(more ...porcupine.Operation) []porcupine.Operation {
	return append([]porcupine.Operation{
		at(1, 4, of(stored, "a", 0)), at(2, 3, of(bind, "a", 1)),
	}, more...)
}

func TestTheModelAcceptsWhatTheProtocolAllows(t *testing.T) {
	for name, history := range map[string][]porcupine.Operation{
		"one claims and writes": aHolds(at(5, 6, of(write, "a", 1)), at(7, 8, of(read, "a", 1))),
		"the loser of two creations at once is told of the winner": aHolds(at(1, 5, named(refused, "a"))),
		"a claim whose object was never stored is taken over": {
			at(1, 2, of(bind, "a", 1)), at(3, 6, of(stored, "b", 0)), at(4, 5, of(bind, "b", 2)),
		},
		"a waiter takes over when the holder is gone": aHolds(
			at(5, 6, waiting("b")), at(7, 8, of(gone, "a", 0)), at(9, 10, of(bind, "b", 2)), at(11, 12, of(write, "b", 2)),
		),
		"a release comes between": aHolds(
			at(5, 6, of(gone, "a", 0)), at(7, 8, of(bind, "", 2)), at(9, 10, of(read, "", 2)),
			at(11, 14, of(stored, "b", 0)), at(12, 13, of(bind, "b", 3)),
		),
		"a confirmation changes neither owner nor epoch":             aHolds(at(5, 6, of(bind, "a", 1))),
		"the owner claims anew":                                      aHolds(at(5, 6, of(bind, "a", 2)), at(7, 8, of(write, "a", 2))),
		"a write under way while its AutoScaler is replaced":         aHolds(at(5, 12, of(write, "a", 1)), at(6, 7, of(gone, "a", 0)), at(8, 9, of(bind, "b", 2))),
		"a first write under way while an HPA is created":            aHolds(at(5, 8, of(unrivaled, "a", 1)), at(6, 7, named(hpaStored, ""))),
		"the first write after the HPA is deleted":                   aHolds(at(1, 2, named(hpaStored, "")), at(5, 6, named(hpaGone, "")), at(7, 8, of(unrivaled, "a", 1))),
		"a refusal names the AutoScaler that is next in line":        {at(1, 2, waiting("a")), at(3, 4, named(refusedInLine, "a"))},
		"a refusal names an HPA":                                     {at(1, 2, named(hpaStored, "")), at(3, 4, named(refusedByHPA, ""))},
		"a refusal for a claim on its way into storage":              {at(1, 2, of(bind, "a", 1)), at(3, 4, named(refusedPending, "a")), at(1, 6, of(stored, "a", 0))},
		"a refusal for a claim whose owner was deleted at once":      aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, named(refusedPending, "a"))),
		"two readings beside a take-over that is under way disagree": aHolds(at(5, 6, of(gone, "a", 0)), at(7, 12, of(bind, "b", 2)), at(8, 9, of(read, "a", 1)), at(10, 11, of(read, "b", 2))),
	} {
		t.Run(name, func(t *testing.T) {
			result, _, _ := linearizable(history)
			assert.Equal(t, porcupine.Ok, result)
		})
	}
}

func TestTheModelRefusesWhatMustNeverHappen(t *testing.T) {
	for name, history := range map[string][]porcupine.Operation{
		"two owners of one epoch":                           aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, of(bind, "b", 1))),
		"a take-over from an owner that is alive":           aHolds(at(5, 6, of(bind, "b", 2))),
		"a release of an owner that is alive":               aHolds(at(5, 6, of(bind, "", 2))),
		"an epoch that is skipped":                          aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, of(bind, "b", 3))),
		"an epoch that falls":                               aHolds(at(5, 6, of(bind, "a", 2)), at(7, 8, of(bind, "a", 1))),
		"two admitted for one Deployment":                   aHolds(at(5, 6, of(stored, "b", 0))),
		"one admitted that lost its claim on the way":       {at(1, 2, of(bind, "a", 1)), at(3, 4, of(bind, "b", 2)), at(1, 6, of(stored, "a", 0))},
		"a claim for an AutoScaler that is gone":            aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, of(bind, "", 2)), at(9, 10, of(bind, "a", 3))),
		"a write by somebody who never held":                aHolds(at(5, 6, of(write, "b", 1))),
		"a write after the take-over":                       aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, of(bind, "b", 2)), at(9, 10, of(write, "a", 1))),
		"a write in an epoch that has not begun":            aHolds(at(5, 6, of(write, "a", 2))),
		"a write under an epoch that has ended":             aHolds(at(5, 6, of(bind, "a", 2)), at(7, 8, of(write, "a", 1))),
		"a first write although there was an HPA all along": aHolds(at(1, 2, named(hpaStored, "")), at(5, 6, of(unrivaled, "a", 1))),
		"a refusal that names somebody who holds nothing":   aHolds(at(5, 6, named(refused, "b"))),
		"a refusal that names a holder that is gone":        aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, named(refused, "a"))),
		"a refusal though the Deployment is free":           {at(1, 2, named(refused, "a"))},
		"a refusal for a claim that was released":           aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, of(bind, "", 2)), at(9, 10, named(refusedPending, "a"))),
		"a refusal for a line that is empty":                {at(1, 2, named(refusedInLine, "a"))},
		"a refusal for an HPA that is not there":            {at(1, 2, named(refusedByHPA, ""))},
		"a reading that goes back in time":                  aHolds(at(5, 6, of(gone, "a", 0)), at(7, 8, of(bind, "b", 2)), at(9, 10, of(read, "a", 1))),
		"two readings in the wrong order":                   aHolds(at(5, 6, of(gone, "a", 0)), at(7, 12, of(bind, "b", 2)), at(8, 9, of(read, "b", 2)), at(10, 11, of(read, "a", 1))),
	} {
		t.Run(name, func(t *testing.T) {
			result, _, _ := linearizable(history)
			assert.Equal(t, porcupine.Illegal, result)
		})
	}
}
