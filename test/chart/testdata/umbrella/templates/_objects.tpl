{{- define "platform.profile" -}}
spec:
  endpoint: main
  query: load{namespace=$namespace, deployment=$target}
  semantics: Total
  allowedNamespaces: ["*"]
{{- end -}}

{{- define "platform.autoscaler" -}}
spec:
  targetRef:
    name: web
  minReplicas: 2
  maxReplicas: {{ .Values.maxReplicas }}
  metrics:
    - name: load
      type: Prometheus
      metricProfileRef: platform
      targetPerReplica: "100"
{{- end -}}
