// Package v1alpha1 holds the API of autoscale.example.com/v1alpha1: AutoScaler,
// MetricProfile, ScaleBinding and ScaleGuard, their validation and their condition types.
// It imports apimachinery only, so that a client can use it without the operator.
//
// +kubebuilder:object:generate=true
// +groupName=autoscale.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "autoscale.example.com", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
var AddToScheme = (&schemeBuilder).AddToScheme

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&AutoScaler{}, &AutoScalerList{},
		&MetricProfile{}, &MetricProfileList{},
		&ScaleBinding{}, &ScaleBindingList{},
		&ScaleGuard{}, &ScaleGuardList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})
