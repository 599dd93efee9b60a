{{- /* The operator's arguments. Each is said, whether it is the default or not, so that
a look at the Deployment tells. */ -}}
{{- define "autoscale-operator.args" -}}
{{- $name := include "autoscale-operator.fullname" . -}}
{{- $selfManaged := eq .Values.certificates.mode "self-managed" -}}
- --config=/etc/autoscale-operator/config.yaml
- --namespace={{ .Release.Namespace }}
{{- with .Values.watchNamespaces }}
- --watch-namespaces={{ join "," (sortAlpha .) }}
{{- end }}
- --leader-elect=true
- --shutdown-delay={{ .Values.shutdownDelaySeconds }}s
{{- /* What is left of the pod's time, with a margin before it is killed. */}}
- --graceful-shutdown-timeout={{ sub (sub .Values.terminationGracePeriodSeconds .Values.shutdownDelaySeconds) 5 }}s
- --max-concurrent-reconciles={{ .Values.maxConcurrentReconciles }}
- --health-probe-bind-address=:{{ .Values.healthPort }}
- --metrics-bind-address={{ if .Values.metrics.enabled }}:{{ .Values.metrics.port }}{{ else }}0{{ end }}
{{- if .Values.metrics.enabled }}
- --metrics-secure={{ .Values.metrics.secure }}
{{- end }}
- --webhook-port={{ .Values.webhook.port }}
{{- if not $selfManaged }}
- --webhook-cert-dir=/var/run/autoscale-operator/certs
{{- end }}
- --certificates={{ ternary "self-managed" "provided" $selfManaged }}
- --cert-secret={{ include "autoscale-operator.certSecret" . }}
- --webhook-service={{ $name }}-webhook
- --webhook-configurations={{ $name }}
- --zap-log-level={{ .Values.logLevel }}
- --zap-encoder={{ .Values.logFormat }}
{{- end -}}
