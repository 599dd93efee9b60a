{{- /* What the schema cannot say: values that do not go together, and what to do about
them. A value that would do nothing, or with which no pod starts, is refused. */ -}}
{{- define "autoscale-operator.refuseValues" -}}
{{- include "autoscale-operator.refuseOnePortForTwo" . }}
{{- range $key, $value := include "autoscale-operator.selector" . | fromYaml }}
{{- if hasKey ($.Values.podLabels | default dict) $key }}
{{- fail (printf "podLabels has %s, by which the Deployment and the Services select the release's pods. Leave it out, or use a label of your own" $key) }}
{{- end }}
{{- end }}
{{- if hasKey (.Values.podAnnotations | default dict) "checksum/config" }}
{{- fail "podAnnotations has checksum/config, by which a change of the configuration makes new pods. Leave it out" }}
{{- end }}
{{- range $key := list "cert-manager.io/inject-ca-from" "autoscale.example.com/watch-namespaces" }}
{{- if hasKey ($.Values.webhook.annotations | default dict) $key }}
{{- fail (printf "webhook.annotations has %s, which the release sets itself: by certificates.mode, and by watchNamespaces. Leave it out" $key) }}
{{- end }}
{{- end }}
{{- include "autoscale-operator.refuseCertificates" . }}
{{- if and .Values.metrics.readers (not (and .Values.metrics.enabled .Values.metrics.secure)) }}
{{- fail "metrics.readers has accounts, and metrics.enabled or metrics.secure is false: nobody is asked who may read. Set both to true, or leave metrics.readers empty" }}
{{- end }}
{{- range $part := list "serviceMonitor" "prometheusRule" "dashboard" }}
{{- if and (not $.Values.metrics.enabled) (index $.Values.metrics $part | default dict).enabled }}
{{- fail (printf "metrics.%s.enabled is true and metrics.enabled is false: there would be no metrics for it. Set metrics.enabled to true, or metrics.%s.enabled to false" $part $part) }}
{{- end }}
{{- end }}
{{- include "autoscale-operator.refuseEndpoints" . }}
{{- include "autoscale-operator.refuseManagers" . }}
{{- end -}}

{{- /* Each mode has values of its own. */ -}}
{{- define "autoscale-operator.refuseCertificates" -}}
{{- $mode := .Values.certificates.mode }}
{{- if and .Values.certificates.secretName (ne $mode "provided") }}
{{- fail (printf "certificates.secretName is for mode provided, and certificates.mode is %s, which names its Secret itself. Leave it empty, or set certificates.mode to provided" $mode) }}
{{- end }}
{{- if and .Values.certificates.issuerRef (ne $mode "cert-manager") }}
{{- fail (printf "certificates.issuerRef is for mode cert-manager, and certificates.mode is %s. Leave it empty, or set certificates.mode to cert-manager" $mode) }}
{{- end }}
{{- range list (list "renewBefore" "duration") (list "caRenewBefore" "caDuration") }}
{{- $before := index $.Values.certificates (first .) }}
{{- $life := index $.Values.certificates (last .) }}
{{- if and $before $life (ge (include "autoscale-operator.seconds" $before | int) (include "autoscale-operator.seconds" $life | int)) }}
{{- fail (printf "certificates.%s is %s, and certificates.%s %s: it would have to be renewed before it is issued. Make the first one shorter" (first .) $before (last .) $life) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "autoscale-operator.refuseManagers" -}}
{{- $taken := dict }}
{{- range $i, $manager := .Values.config.managers }}
{{- $kind := printf "%s.%s" $manager.resource $manager.group }}
{{- if eq $kind "horizontalpodautoscalers.autoscaling" }}
{{- fail (printf "config.managers[%d]: HorizontalPodAutoscalers are looked at anyway. Leave it out" $i) }}
{{- end }}
{{- if hasKey $taken $kind }}
{{- fail (printf "config.managers[%d] is %s, and so is config.managers[%s]: the operator does not start with one kind twice. Leave one of them; another version goes into its version" $i $kind (get $taken $kind)) }}
{{- end }}
{{- $_ := set $taken $kind (toString $i) }}
{{- end }}
{{- end -}}

{{- define "autoscale-operator.refuseOnePortForTwo" -}}
{{- $ports := list (list "webhook.port" .Values.webhook.port) (list "healthPort" .Values.healthPort) }}
{{- if .Values.metrics.enabled }}{{ $ports = append $ports (list "metrics.port" .Values.metrics.port) }}{{ end }}
{{- $taken := dict }}
{{- range $ports }}
{{- $port := last . | int | toString }}
{{- if hasKey $taken $port }}
{{- fail (printf "%s is %s, and so is %s: no pod can listen on it twice. Choose another port for one of them" (first .) $port (index $taken $port)) }}
{{- end }}
{{- $_ := set $taken $port (first .) }}
{{- end }}
{{- end -}}

{{- /* Of the endpoints: a name twice, a header with credentials, a file that no Secret brings. */ -}}
{{- define "autoscale-operator.refuseEndpoints" -}}
{{- $files := list }}
{{- range $secret := .Values.endpointSecrets }}
{{- range .keys }}{{ $files = append $files (printf "%s/%s" $secret.name .) }}{{ end }}
{{- end }}
{{- $taken := dict }}
{{- range $i, $endpoint := .Values.config.endpoints }}
{{- $path := printf "config.endpoints[%d]" $i }}
{{- if hasKey $taken $endpoint.name }}
{{- fail (printf "%s.name is %q, and so is that of config.endpoints[%s]: the operator does not start with one name twice. Give each its own" $path $endpoint.name (get $taken $endpoint.name)) }}
{{- end }}
{{- $_ := set $taken $endpoint.name (toString $i) }}
{{- range $header, $_ := $endpoint.http_headers }}
{{- if has (lower $header) (list "authorization" "proxy-authorization") }}
{{- fail (printf "%s.http_headers.%s: the operator does not start with this header, and its value would stand in a ConfigMap. Use authorization, basic_auth or oauth2, whose secrets are files" $path $header) }}
{{- end }}
{{- end }}
{{- include "autoscale-operator.refuseMissingFiles" (dict "section" $endpoint "path" $path "files" $files) }}
{{- end }}
{{- end -}}

{{- /* A file's name with a slash in front is one of the image, or of the pod's account. */ -}}
{{- define "autoscale-operator.refuseMissingFiles" -}}
{{- range $key, $value := omit .section "endpoint_params" }}
{{- $path := printf "%s.%s" $.path $key }}
{{- if kindIs "map" $value }}
{{- include "autoscale-operator.refuseMissingFiles" (dict "section" $value "path" $path "files" $.files) }}
{{- else if or (hasSuffix "_file" $key) (eq $key "files") }}
{{- range ternary $value (list $value) (kindIs "slice" $value) }}
{{- if not (or (hasPrefix "/" .) (has (clean .) $.files)) }}
{{- fail (printf "%s: no Secret of endpointSecrets brings the file %q. Add {name: <secret>, keys: [<key>]} to endpointSecrets and write <secret>/<key> here; a file that the pod has anyway is written from its root, with a slash in front" $path .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
