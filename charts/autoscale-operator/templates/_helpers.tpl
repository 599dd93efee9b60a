{{- /* What all objects of a release begin with: the release's name, with the chart's
unless it has that already. At most 50 characters, so that the longest suffix still
makes a DNS label: a longer one is cut, and told from others by its hash. Services need
a letter first and take no dots. */ -}}
{{- define "autoscale-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := .Values.fullnameOverride -}}
{{- if not $full -}}
{{- $full = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full = $full | replace "." "-" -}}
{{- if regexMatch "^[0-9]" $full }}{{ $full = printf "r%s" $full }}{{ end -}}
{{- end -}}
{{- if gt (len $full) 50 -}}
{{- printf "%s-%s" ($full | trunc 41 | trimSuffix "-") (sha256sum $full | trunc 8) -}}
{{- else -}}
{{- $full -}}
{{- end -}}
{{- end -}}

{{- define "autoscale-operator.selector" -}}
app.kubernetes.io/name: autoscale-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* Two releases of one name in two namespaces must not select each other's pods by
anything but the namespace, which every selector here has anyway. */ -}}
{{- define "autoscale-operator.labels" -}}
{{ include "autoscale-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "autoscale-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "autoscale-operator.fullname" . -}}
{{- else -}}
{{- fail "serviceAccount.create is false: say in serviceAccount.name which account the operator is to use" -}}
{{- end -}}
{{- end -}}

{{- define "autoscale-operator.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The Secret with the serving certificate of webhooks and metrics. Each mode has its
own: it belongs to the release, to cert-manager or to neither, so that one cannot go on with
that of another, and pods of the new mode must not serve what the old one has left. */ -}}
{{- define "autoscale-operator.certSecret" -}}
{{- if eq .Values.certificates.mode "self-managed" -}}
{{ include "autoscale-operator.fullname" . }}-self-managed-cert
{{- else if eq .Values.certificates.mode "cert-manager" -}}
{{ include "autoscale-operator.fullname" . }}-serving-cert
{{- else if .Values.certificates.secretName -}}
{{ .Values.certificates.secretName }}
{{- else -}}
{{- fail "certificates.mode is provided: say in certificates.secretName which Secret holds tls.crt and tls.key" -}}
{{- end -}}
{{- end -}}

{{- /* The host names that the serving certificate is for. */ -}}
{{- define "autoscale-operator.dnsNames" -}}
{{- $services := list "webhook" -}}
{{- if .Values.metrics.enabled }}{{ $services = append $services "metrics" }}{{ end -}}
{{- range $services }}
- {{ include "autoscale-operator.fullname" $ }}-{{ . }}.{{ $.Release.Namespace }}.svc
- {{ include "autoscale-operator.fullname" $ }}-{{ . }}.{{ $.Release.Namespace }}.svc.cluster.local
{{- end }}
{{- end -}}

{{- /* Annotations of both webhook configurations: which namespaces this release is for,
which other installs look at, and who fills in the CA. It is never rendered, so that no
upgrade and no GitOps tool takes it away. */ -}}
{{- define "autoscale-operator.webhookAnnotations" -}}
autoscale.example.com/watch-namespaces: {{ join "," (sortAlpha .Values.watchNamespaces) | default "*" | quote }}
{{- if eq .Values.certificates.mode "cert-manager" }}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "autoscale-operator.fullname" . }}-serving
{{- end }}
{{- with .Values.webhook.annotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Our webhooks and policies are for the watched namespaces alone, by name. */ -}}
{{- define "autoscale-operator.namespaceSelector" -}}
{{- with .Values.watchNamespaces -}}
namespaceSelector:
  matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: In
    values: {{ sortAlpha . | toJson }}
{{- end }}
{{- end -}}

{{- /* The seconds of a duration, as 1h30m; 0 of null. */ -}}
{{- define "autoscale-operator.seconds" -}}
{{- $seconds := 0 }}
{{- range regexFindAll "[0-9]+[hms]" (toString .) -1 }}
{{- $unit := get (dict "h" 3600 "m" 60 "s" 1) (regexFind "[hms]" .) }}
{{- $seconds = add $seconds (mul (regexFind "[0-9]+" . | atoi) $unit) }}
{{- end }}
{{- $seconds }}
{{- end -}}

{{- /* The operator's own configuration. */ -}}
{{- define "autoscale-operator.config" -}}
{{- range $section := list "limits" "endpoints" "managers" "defaults" "claims" "rules" }}
{{- $value := index $.Values.config $section }}
{{- if or $value (eq $section "managers") }}
{{ $section }}: {{- if $value }}{{ toYaml $value | nindent 2 }}{{ else }} []{{ end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Refuses an install that another one would get in the way of. Looking is possible
on a cluster only, so helm template refuses nothing; the operator looks too, when it
starts. */ -}}
{{- define "autoscale-operator.refuseOverlap" -}}
{{- range (lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" "").items }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $labels := .metadata.labels | default dict }}
{{- $theirs := index $annotations "autoscale.example.com/watch-namespaces" }}
{{- $release := index $annotations "meta.helm.sh/release-name" }}
{{- $namespace := index $annotations "meta.helm.sh/release-namespace" }}
{{- if and $theirs (eq (index $labels "app.kubernetes.io/name" | default "") "autoscale-operator") (or (ne ($release | default "") $.Release.Name) (ne ($namespace | default "") $.Release.Namespace)) }}
{{- $other := printf "the autoscale-operator of release %q in namespace %q (ValidatingWebhookConfiguration %s)" ($release | default "unknown") ($namespace | default "unknown") .metadata.name }}
{{- if eq ($namespace | default "") $.Release.Namespace }}
{{- fail (printf "%s is installed in this namespace already; install this one into a namespace of its own" $other) }}
{{- end }}
{{- if eq $theirs "*" }}
{{- fail (printf "%s watches all namespaces; two operators would work against each other. Uninstall it, or give it watchNamespaces that leave out what is for this one" $other) }}
{{- end }}
{{- if not $.Values.watchNamespaces }}
{{- fail (printf "%s watches the namespaces %s, and this one would watch all. Set watchNamespaces to others, or uninstall it" $other $theirs) }}
{{- end }}
{{- range splitList "," $theirs }}
{{- if has . $.Values.watchNamespaces }}
{{- fail (printf "%s watches the namespace %s, which is in this one's watchNamespaces too. Each namespace has one operator" $other .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Refuses namespaces that are not there, before anything is made: the operator's rights
go into them. A chart above may bring them along, and so does --create-namespace with the
release's own. */ -}}
{{- define "autoscale-operator.refuseMissingNamespaces" -}}
{{- if and .Chart.IsRoot .Values.rbac.create (lookup "v1" "Namespace" "" "default") }}
{{- range .Values.watchNamespaces }}
{{- if not (or (eq . $.Release.Namespace) (lookup "v1" "Namespace" "" .)) }}
{{- fail (printf "watchNamespaces: there is no namespace %q, and the operator's rights go into it. Create it first: kubectl create namespace %s" . .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
