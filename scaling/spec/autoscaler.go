package spec

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// ValidateAutoScaler checks everything that one AutoScaler says by itself, the times
// of its schedules included. Admission, reconciler and command line call it. Errors
// come in the order of the fields, and those times last.
func ValidateAutoScaler(a *v1alpha1.AutoScaler, limits v1alpha1.Limits) field.ErrorList {
	errs := v1alpha1.ValidateAutoScaler(a, limits)
	if a.DecodeError != "" || len(a.Spec.Schedules) > v1alpha1.MaxSchedules {
		return errs
	}
	path := field.NewPath("spec", "schedules")
	for i := range a.Spec.Schedules {
		for _, err := range scheduleTimes(path.Index(i), &a.Spec.Schedules[i]) {
			// What is wrong with the text by itself has been said.
			if !slices.ContainsFunc(errs, func(said *field.Error) bool { return said.Field == err.Field }) {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

func scheduleTimes(path *field.Path, s *v1alpha1.Schedule) field.ErrorList {
	var errs field.ErrorList
	if len(s.Start) > v1alpha1.MaxScheduleStartLength {
		errs = append(errs, field.TooLong(path.Child("start"), "", v1alpha1.MaxScheduleStartLength))
	} else if _, err := parseStarts(s.Start, nil); err != nil {
		errs = append(errs, field.Invalid(path.Child("start"), s.Start, err.Error()))
	}
	if len(s.TimeZone) > v1alpha1.MaxTimeZoneLength {
		errs = append(errs, field.TooLong(path.Child("timeZone"), "", v1alpha1.MaxTimeZoneLength))
	} else if _, err := loadZone(s.TimeZone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), s.TimeZone, err.Error()))
	}
	return errs
}
