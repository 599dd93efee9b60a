{{- /* The layout of docs/api.md, rendered by crd-ref-docs. */ -}}
{{- define "gvList" -}}
# API reference

<!-- Written by make generate from the comments in api/. Do not edit. -->
{{ range $group := . }}
## {{ .GroupVersionString }}

{{ .Doc | trim }}

Kinds:{{ range $i, $kind := .SortedKinds }}{{ if $i }},{{ end }} {{ $group.TypeForKind $kind | markdownRenderTypeLink }}{{ end }}
{{ range .SortedTypes }}{{ if markdownShouldRenderType . }}{{ template "type" . }}{{ end }}{{ end }}
{{- end }}
{{- end -}}

{{- define "type" }}
### {{ .Name }}
{{ if .Doc }}
{{ .Doc | trim }}
{{ end }}
{{- if .IsAlias }}
Underlying type: {{ markdownRenderTypeLink .UnderlyingType }}
{{ end }}
{{- if .Validation }}
Validation: {{ .Validation | join ", " }}
{{ end }}
{{- if .References }}
Appears in:{{ range $i, $reference := .SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $reference }}{{ end }}
{{ end }}
{{- if .Members }}
| Field | Description | Default | Validation |
| --- | --- | --- | --- |
{{- if .GVK }}
| `apiVersion` _string_ | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` _string_ | `{{ .GVK.Kind }}` | | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "description" . }} | {{ template "default" . }} | {{ template "validation" . }} |
{{- end }}
{{ end }}
{{- if .EnumValues }}
| Value | Description |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{- end }}
{{ end }}
{{- end -}}

{{- define "description" -}}
{{- if eq .Name "metadata" -}}
Standard object metadata.
{{- else -}}
{{ markdownRenderFieldDoc .Doc | replace "<br />" " " | replace "\\{" "{" | replace "\\}" "}" }}
{{- end -}}
{{- end -}}

{{- define "default" -}}
{{- $default := markdownRenderDefault .Default -}}
{{- if ne (regexReplaceAll "[\\\\{} ]" $default "") "" }}{{ $default }}{{ end -}}
{{- end -}}

{{- /* What is not required is optional; only the first is worth a word. */ -}}
{{- define "validation" -}}
{{- $rules := list -}}
{{- range .Validation -}}
{{- if hasPrefix "Required" . }}{{ $rules = prepend $rules "required" -}}
{{- else if not (hasPrefix "Optional" .) }}{{ $rules = append $rules (markdownRenderFieldDoc . | trim) }}{{ end -}}
{{- end -}}
{{ $rules | join "<br />" | replace "\\{" "{" | replace "\\}" "}" }}
{{- end -}}
