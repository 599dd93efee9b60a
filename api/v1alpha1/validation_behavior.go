package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateBehavior(path *field.Path, b *Behavior) field.ErrorList {
	if b == nil {
		return nil
	}
	errs := inRangeIfGiven(path.Child("scaleUpMaxStep"), b.ScaleUpMaxStep, 1, MaxReplicasCeiling)
	if r := b.ScaleUpRate; r != nil {
		at := path.Child("scaleUpRate")
		errs = append(errs, inRange(at.Child("maxReplicas"), r.MaxReplicas, 1, MaxReplicasCeiling)...)
		errs = append(errs, inRange(at.Child("periodSeconds"), r.PeriodSeconds, 1, 3600)...)
	}
	errs = append(errs, inRangeIfGiven(path.Child("scaleUpStabilizationSeconds"), b.ScaleUpStabilizationSeconds, 0, 3600)...)
	errs = append(errs, inRangeIfGiven(path.Child("scaleDownMaxStep"), b.ScaleDownMaxStep, 1, MaxReplicasCeiling)...)
	errs = append(errs, inRangeIfGiven(path.Child("scaleDownStabilizationSeconds"), b.ScaleDownStabilizationSeconds, 0, 86400)...)
	errs = append(errs, inRangeIfGiven(path.Child("scaleDownMinIntervalSeconds"), b.ScaleDownMinIntervalSeconds, 0, 86400)...)
	errs = append(errs, validateShare(path.Child("toleranceUp"), b.ToleranceUp)...)
	return append(errs, validateShare(path.Child("toleranceDown"), b.ToleranceDown)...)
}

func validateFallback(path *field.Path, s *AutoScalerSpec) field.ErrorList {
	f := s.Fallback
	if f == nil {
		return nil
	}
	at := path.Child("floorReplicas")
	errs := inRange(at, f.FloorReplicas, 1, MaxReplicasCeiling)
	if len(errs) == 0 && f.FloorReplicas > s.MaxReplicas {
		errs = append(errs, field.Invalid(at, f.FloorReplicas, fmt.Sprintf("must be at most maxReplicas (%d)", s.MaxReplicas)))
	}
	return append(errs, inRange(path.Child("afterSeconds"), f.AfterSeconds, 15, 86400)...)
}
