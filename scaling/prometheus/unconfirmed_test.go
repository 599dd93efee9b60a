package prometheus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

// fallingLoad has a load of 7, and a freshness that is answered a second later
// than the load, in each interval.
func fallingLoad(t *testing.T) (*rig, func(value, age string)) {
	t.Helper()
	r := newRig(t)
	m := load("load")
	m[0].Freshness = Freshness{Question: load("age")[0].Load, MaxAge: time.Minute}
	value, age := "7", "1"
	answer := func(of *string) func() string {
		return func() string { return fmt.Sprintf(`[{"metric":{},"value":[%d,%q]}]`, time.Now().Unix(), *of) }
	}
	r.main.vectors["load"], r.main.vectors["age"] = answer(&value), answer(&age)
	r.main.delays["age"] = time.Second
	r.Subscribe("a", interval, m)
	r.start(t)
	return r, func(v, a string) {
		r.main.set(func(*fakeAPI) { value, age = v, a })
	}
}

func (r *rig) sample(t *testing.T) scaling.Sample {
	t.Helper()
	samples, _, ready := r.Samples("a", time.Now())
	require.True(t, ready)
	return samples[0]
}

func TestFC9_ALowerLoadIsNotBelievedBeforeItsSourceIsKnownToBeFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, set := fallingLoad(t)
		pass(2 * time.Second)
		assert.Equal(t, scaling.Sample{Value: 7, Validity: scaling.Valid}, r.sample(t))

		set("0", "300") // the source is lost
		pass(interval - 1500*time.Millisecond)
		assert.Equal(t, scaling.Sample{Value: 7, Validity: scaling.Valid}, r.sample(t), "the load's answer is there, its freshness is not")
		_, at, _ := r.Samples("a", time.Now())
		assert.Equal(t, interval, at[0].Newest.Sub(at[0].Used), "and the value is of the answer before")
		pass(time.Second)
		assert.Equal(t, ReasonStaleSource, r.sample(t).Reason)
		_, at, _ = r.Samples("a", time.Now())
		assert.Equal(t, at[0].Newest, at[0].Used)

		set("3", "1")
		pass(interval)
		assert.Equal(t, scaling.Sample{Value: 3, Validity: scaling.Valid}, r.sample(t), "believed with its own freshness")
		set("9", "1")
		pass(interval - time.Second)
		assert.Equal(t, scaling.Sample{Value: 9, Validity: scaling.Valid}, r.sample(t), "a higher load is believed at once")
	})
}

func TestAFirstLoadThatIsNewerThanItsFreshnessScalesNothingDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := load("load")
		m[0].Freshness = Freshness{Question: load("age")[0].Load, MaxAge: time.Minute}
		r.Subscribe("b", interval, []Measure{{Load: m[0].Freshness.Question, MaxAge: time.Minute}})
		r.start(t)
		pass(5 * time.Second)
		r.Subscribe("a", interval, m)
		pass(time.Second)
		s := r.sample(t)
		assert.Equal(t, scaling.ScaleUpOnly, s.Validity, "what is known of the source is 5 s older")
		assert.Equal(t, ReasonFreshnessUnknown, s.Reason)
		pass(interval)
		assert.Equal(t, scaling.Valid, r.sample(t).Validity)
	})
}

func TestFC9_ALoadThatNoFreshnessWasKnownForVouchesForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := load("load")
		m[0].Freshness = Freshness{Question: load("age", func(q *Question) {
			q.Profile, q.BudgetPerMinute = "slow", 1
		})[0].Load, MaxAge: time.Minute}
		value := "7"
		r.main.vectors["load"] = func() string {
			return fmt.Sprintf(`[{"metric":{},"value":[%d,%q]}]`, time.Now().Unix(), value)
		}
		r.main.vectors["age"] = func() string { return fmt.Sprintf(`[{"metric":{},"value":[%d,"1"]}]`, time.Now().Unix()) }
		r.Subscribe("a", interval, m)
		r.start(t)
		pass(time.Second)
		require.Len(t, r.main.times("age", r.begin), 1)

		r.main.set(func(*fakeAPI) { value = "3" }) // the source is being lost
		pass(interval)
		assert.Equal(t, scaling.Sample{Value: 7, Validity: scaling.Valid}, r.sample(t), "the load before was known to be good")
		r.main.set(func(*fakeAPI) { value = "0" })
		pass(interval)
		s := r.sample(t)
		assert.Equal(t, scaling.ScaleUpOnly, s.Validity, "nobody knows of the load before either: %+v", s)
		assert.Equal(t, ReasonFreshnessUnknown, s.Reason)
		assert.Len(t, r.main.times("age", r.begin), 1)
	})
}

func TestALowerArrivalRateIsNotBelievedBeforeItsSourceIsKnownToBeFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := load("depth")
		m[0].Arrivals = load("arrivals")[0].Load
		m[0].Freshness = Freshness{Question: load("age")[0].Load, MaxAge: time.Minute}
		arrivals, age := "20", "1"
		answer := func(of *string) func() string {
			return func() string { return fmt.Sprintf(`[{"metric":{},"value":[%d,%q]}]`, time.Now().Unix(), *of) }
		}
		r.main.vectors["arrivals"], r.main.vectors["age"] = answer(&arrivals), answer(&age)
		r.main.delays["age"] = time.Second
		r.Subscribe("a", interval, m)
		r.start(t)
		pass(2 * time.Second)
		assert.Equal(t, scaling.Sample{Value: 7, ArrivalRate: 20, Validity: scaling.Valid}, r.sample(t))

		r.main.set(func(*fakeAPI) { arrivals, age = "0", "300" })
		pass(interval - 1500*time.Millisecond)
		assert.Equal(t, scaling.Sample{Value: 7, ArrivalRate: 20, Validity: scaling.Valid}, r.sample(t))
		pass(time.Second)
		assert.Equal(t, ReasonStaleSource, r.sample(t).Reason)
	})
}
