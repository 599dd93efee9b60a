package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"
)

func logNarrator(out *bytes.Buffer) *narrator {
	return &narrator{out: out, now: time.Now}
}

func TestALogGetsPlainLinesWithoutTrailingBlanks(t *testing.T) {
	var out bytes.Buffer
	n := logNarrator(&out)

	n.step("Start")
	n.say("It begins.", "")
	n.command("kubectl get deployment")
	n.output("NAME   READY\norder  2/2\n\nlast")
	n.verified("%d replicas", 2)
	n.failed("no\nreason\n")

	assert.Equal(t, `
━━ 1. Start
   It begins.


   $ kubectl get deployment
   NAME   READY
   order  2/2

   last
   ✓ 2 replicas

✗ no
  reason
`, out.String())
}

func TestATerminalGetsColors(t *testing.T) {
	var out bytes.Buffer
	n := &narrator{out: &out, terminal: true, colored: true, now: time.Now}

	n.verified("done")

	assert.Equal(t, "   \x1b[32m✓\x1b[0m done\n", out.String())
}

func TestAWaitOnATerminalIsErasedBeforeTheNextLineAndAtItsEnd(t *testing.T) {
	var out bytes.Buffer
	n := &narrator{out: &out, terminal: true, now: time.Now}

	done := n.wait("a pod")
	assert.Eventually(t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.waiting
	}, 5*time.Second, time.Millisecond)
	n.say("meanwhile")
	done()
	done()

	text := out.String()
	assert.Contains(t, text, "⠋ waiting for a pod, 0 s\r\x1b[K   meanwhile\n")
	assert.False(t, n.waiting)
	afterwards := text[strings.LastIndex(text, "\n")+1:]
	assert.True(t, afterwards == "" || strings.HasSuffix(afterwards, "\r\x1b[K"), "a waiting line is left: %q", afterwards)
}

func TestAShortWaitIsNotWorthALineInALog(t *testing.T) {
	var out bytes.Buffer
	n := logNarrator(&out)

	n.wait("a moment")()

	assert.Empty(t, out.String())
}

func TestTheSummaryListsEachStepUntilTheNextOne(t *testing.T) {
	var out bytes.Buffer
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	n := &narrator{out: &out, now: clock.Now}
	n.step("short")
	clock.SetTime(time.Unix(1002, 500_000_000))
	n.step("→ longer")
	clock.SetTime(time.Unix(1070, 0))
	out.Reset()

	n.summary()

	assert.Equal(t, `
━━ Times
    1. short       2.5 s
    2. → longer   67.5 s
       in all     70.0 s
`, out.String())
}
