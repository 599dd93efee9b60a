package v1alpha1

// Bounds of schedules. The CRD schema states the same numbers; a test compares them.
const (
	// MaxSchedules is the largest number of schedules of one AutoScaler.
	MaxSchedules = 20
	// MaxScheduleStartLength bounds a schedule's start, in characters.
	MaxScheduleStartLength = 100
	// MaxTimeZoneLength bounds a schedule's timeZone, in characters.
	MaxTimeZoneLength = 64
)

// Behavior limits how fast the replica count moves.
type Behavior struct {
	// scaleUpMaxStep is the most replicas added per poll interval. Not set: no
	// limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ScaleUpMaxStep *int32 `json:"scaleUpMaxStep,omitempty"`

	// scaleUpRate bounds what is added in any period of a given length, over all
	// steps. Not set: no limit.
	// +optional
	ScaleUpRate *ScaleRate `json:"scaleUpRate,omitempty"`

	// scaleUpStabilizationSeconds is the length of the window whose lowest
	// recommendation counts when scaling up, 0 (none) to 3600: a peak shorter than
	// that adds nothing. Not set: the platform's default, else 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	ScaleUpStabilizationSeconds *int32 `json:"scaleUpStabilizationSeconds,omitempty"`

	// scaleDownMaxStep is the most replicas removed per poll interval. Not set:
	// no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ScaleDownMaxStep *int32 `json:"scaleDownMaxStep,omitempty"`

	// scaleDownStabilizationSeconds is the length of the window whose highest
	// recommendation counts when scaling down, 0 (none) to 86400. Not set: the
	// platform's default, else 300.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ScaleDownStabilizationSeconds *int32 `json:"scaleDownStabilizationSeconds,omitempty"`

	// scaleDownMinIntervalSeconds is the least time between two successful
	// scale-downs, 0 (none) to 86400.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ScaleDownMinIntervalSeconds *int32 `json:"scaleDownMinIntervalSeconds,omitempty"`

	// toleranceUp is how far the load may exceed what the current count carries
	// before the count moves, as a share of it, 0 (none) to 1: with "0.1", 10 replicas
	// carry the load of 11. A decimal string, as "0.1"; a trailing m divides by 1000
	// ("100m" is 0.1). Not set: the platform's default, else 0. A count outside the
	// bounds is not held by it.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]{1,6})?|1(\.0{1,6})?|(0|[1-9][0-9]{0,2}|1000)m)$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0([.][0-9]{1,6})?|1([.]0{1,6})?|(0|[1-9][0-9]{0,2}|1000)m)$')",message="must be a share from 0 to 1 with at most 6 digits after the point, as \"0.1\"; a trailing m divides by 1000, so \"100m\" is 0.1"
	// +optional
	ToleranceUp string `json:"toleranceUp,omitempty"`

	// toleranceDown is how far the load may fall short of what the current count
	// carries before the count moves; else as toleranceUp.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]{1,6})?|1(\.0{1,6})?|(0|[1-9][0-9]{0,2}|1000)m)$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0([.][0-9]{1,6})?|1([.]0{1,6})?|(0|[1-9][0-9]{0,2}|1000)m)$')",message="must be a share from 0 to 1 with at most 6 digits after the point, as \"0.1\"; a trailing m divides by 1000, so \"100m\" is 0.1"
	// +optional
	ToleranceDown string `json:"toleranceDown,omitempty"`
}

// ScaleRate bounds a sum of changes over time.
type ScaleRate struct {
	// maxReplicas is the most replicas added in any period, by what was written.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +required
	MaxReplicas int32 `json:"maxReplicas"`

	// periodSeconds is the length of the period, 1 to 3600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +required
	PeriodSeconds int32 `json:"periodSeconds"`
}

// Fallback is what happens when no metric is usable for long.
type Fallback struct {
	// floorReplicas is the count that is raised to, at once; a higher count stays as
	// it is. At most maxReplicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +required
	FloorReplicas int32 `json:"floorReplicas"`

	// afterSeconds is for how long every metric must have been invalid without a
	// pause, 15 to 86400.
	// +kubebuilder:validation:Minimum=15
	// +kubebuilder:validation:Maximum=86400
	// +required
	AfterSeconds int32 `json:"afterSeconds"`
}

// ScheduleFreeze says which moves a schedule forbids.
//
// +kubebuilder:validation:Enum=ScaleDown;All
type ScheduleFreeze string

// Freezes of a schedule.
const (
	// FreezeScaleDown forbids every scale-down, also one back into the bounds.
	FreezeScaleDown ScheduleFreeze = "ScaleDown"
	// FreezeAll forbids every move.
	FreezeAll ScheduleFreeze = "All"
)

// Schedule moves the bounds, or freezes the count, from each start for a duration.
// While several are in force, the highest minReplicas, the lowest maxReplicas and the
// strongest freeze count, and a floor above a cap lifts the cap.
//
// +kubebuilder:validation:XValidation:rule="has(self.minReplicas) || has(self.maxReplicas) || has(self.freeze)",message="set minReplicas, maxReplicas or freeze; without one of them the schedule changes nothing"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.maxReplicas >= self.minReplicas",message="the schedule's maxReplicas must be at least its minReplicas",fieldPath=".maxReplicas"
type Schedule struct {
	// name of the schedule, unique in this AutoScaler.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// start is when it comes into force: five cron fields, minute, hour, day of the
	// month, month and day of the week, as "30 7 * * 1-5"; at most 100 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +required
	Start string `json:"start"`

	// durationSeconds is how long it stays in force, 60 to 604800 (7 days).
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	// +required
	DurationSeconds int32 `json:"durationSeconds"`

	// timeZone is the IANA name of the zone that start is meant in, as
	// "Europe/Berlin"; at most 64 characters. Not set: UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// minReplicas is the lowest count while in force, where it is above that of the
	// spec. Above the spec's maxReplicas it lifts that too.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the highest count while in force, in place of that of the spec;
	// it may be higher than that, within the platform's bound.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// freeze forbids moves while in force. ScaleDown: the count never falls. All: it
	// stays as it is.
	// +optional
	Freeze ScheduleFreeze `json:"freeze,omitempty"`
}
