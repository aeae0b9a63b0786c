{{/* Names, labels and image. */}}

{{- define "gpubroker.name" -}}
{{- $name := ternary .Release.Name (printf "%s-gpubroker" .Release.Name) (contains "gpubroker" .Release.Name) -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The host of publicUrl, without its port; fails with a message when it is missing. */}}
{{- define "gpubroker.host" -}}
{{- if not .Values.publicUrl -}}
{{- fail "\n\npublicUrl is missing: no one could reach the portal, and cookies would belong to no address.\nSet it to where people will reach it: --set publicUrl=https://gpus.example.com\n" -}}
{{- end -}}
{{- (urlParse .Values.publicUrl).host | regexFind "^(\\[[^]]+\\]|[^:]+)" -}}
{{- end -}}

{{- define "gpubroker.selector" -}}
app.kubernetes.io/name: gpubroker
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "gpubroker.labels" -}}
{{ include "gpubroker.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "gpubroker.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The service account that calls the API server, where leases run in this cluster. */}}
{{- define "gpubroker.account" -}}
{{- include "gpubroker.name" . }}{{ ternary "-broker" "" .Values.cluster.leases }}
{{- end -}}
