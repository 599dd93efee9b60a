package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// A list is decoded as a whole: one stored object whose spec does not fit its Go
// type would fail every object of the list and blind the operator. So each kind
// decodes its spec by itself and keeps the failure in the object, where
// validation reports it. A status that does not fit is dropped: the operator
// writes it anew.

// UnmarshalJSON decodes an AutoScaler; a spec that does not fit sets DecodeError.
func (a *AutoScaler) UnmarshalJSON(data []byte) error {
	*a = AutoScaler{}
	spec, status, err := decodeObject(data, &a.TypeMeta, &a.ObjectMeta)
	a.Spec, a.DecodeError = decodePart[AutoScalerSpec](spec)
	a.Status, _ = decodePart[AutoScalerStatus](status)
	return err
}

// UnmarshalJSON decodes a MetricProfile; a spec that does not fit sets DecodeError.
func (p *MetricProfile) UnmarshalJSON(data []byte) error {
	*p = MetricProfile{}
	spec, _, err := decodeObject(data, &p.TypeMeta, &p.ObjectMeta)
	p.Spec, p.DecodeError = decodePart[MetricProfileSpec](spec)
	return err
}

// UnmarshalJSON decodes a ScaleBinding; a spec that does not fit sets DecodeError.
func (b *ScaleBinding) UnmarshalJSON(data []byte) error {
	*b = ScaleBinding{}
	spec, status, err := decodeObject(data, &b.TypeMeta, &b.ObjectMeta)
	b.Spec, b.DecodeError = decodePart[ScaleBindingSpec](spec)
	b.Status, _ = decodePart[ScaleBindingStatus](status)
	return err
}

// decodeObject decodes what every object has and returns the rest encoded.
func decodeObject(data []byte, tm *metav1.TypeMeta, om *metav1.ObjectMeta) (spec, status []byte, err error) {
	var parts struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              json.RawMessage `json:"spec"`
		Status            json.RawMessage `json:"status"`
	}
	if err := kjson.Unmarshal(data, &parts); err != nil {
		return nil, nil, err
	}
	*tm, *om = parts.TypeMeta, parts.ObjectMeta
	return parts.Spec, parts.Status, nil
}

func decodePart[T any](raw []byte) (T, string) {
	var part, none T
	if len(raw) == 0 {
		return none, ""
	}
	if err := kjson.Unmarshal(raw, &part); err != nil {
		return none, err.Error()
	}
	return part, ""
}
