{{/* Pod of every process: settings, secrets, an unprivileged user, a read-only root file system. */}}

{{/* root, name, login (web, worker or owner), command; optional: of (its values), port, probes, token, grace. */}}
{{- define "gpubroker.pod" -}}
{{- $v := .root.Values -}}
metadata:
  labels:
    {{- include "gpubroker.selector" . | nindent 4 }}
    app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  {{- with merge (dict) (.annotations | default dict) $v.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if .account }}
  serviceAccountName: {{ .account }}
  {{- end }}
  # Only processes that call an API server get a token.
  automountServiceAccountToken: {{ .token | default false }}
  # Service links would set variables that look like settings: GPUBROKER_WEB_PORT=tcp://…
  enableServiceLinks: false
  {{- with $v.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: {{ $v.user | int64 }}
    runAsGroup: {{ $v.user | int64 }}
    fsGroup: {{ $v.user | int64 }}
    seccompProfile:
      type: RuntimeDefault
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .grace | default 30 }}
  {{- with $v.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $v.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "gpubroker.selector" . | nindent 10 }}
  containers:
    - name: {{ .container | default .name }}
      image: {{ include "gpubroker.image" .root }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      command:
        {{- toYaml .command | nindent 8 }}
      env:
        {{- include "gpubroker.settings" .root | nindent 8 }}
      {{- with .port }}
      ports:
        - name: http
          containerPort: {{ . }}
      {{- end }}
      {{- with .probes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with .of }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - {name: secrets, mountPath: /run/secrets/gpubroker, readOnly: true}
        - {name: files, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          {{- include "gpubroker.secrets" . | nindent 10 }}
    # Temporary files; everything to keep is in PostgreSQL.
    - name: files
      emptyDir: {sizeLimit: 256Mi}
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{/* Processes without HTTP touch a heartbeat file every few seconds; one older than two minutes means a hang. The
heartbeat continues while a database is unavailable, so that does not kill the pod. */}}
{{- define "gpubroker.alive" -}}
{{- $young := printf "test -n \"$(find /data/alive-%s -mmin -2)\"" . -}}
startupProbe:
  exec: {command: [sh, -c, {{ $young | quote }}]}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  exec: {command: [sh, -c, {{ $young | quote }}]}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 4
{{- end -}}

{{- define "gpubroker.settings" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: GPUBROKER_PUBLIC_URL
  value: {{ .Values.publicUrl | trimSuffix "/" | quote }}
# Where no ingress routes them, the web processes pass on live connections.
- name: GPUBROKER_EVENTS_UPSTREAM
  value: {{ include "gpubroker.name" . }}-events:80
# Probes and Prometheus call a pod by its own address.
- name: GPUBROKER_ALLOWED_HOSTS
  value: {{ concat (list (include "gpubroker.host" .)) .Values.allowedHosts (list "$(POD_IP)" "[$(POD_IP)]") | toJson | quote }}
- name: GPUBROKER_DATA_DIR
  value: /data
- name: GPUBROKER_TRUSTED_PROXY_COUNT
  value: {{ ternary .Values.ingress.proxies 0 .Values.ingress.enabled | toString | quote }}
{{- range $name, $value := .Values.settings }}
- name: GPUBROKER_{{ $name }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end -}}

{{/* Each process gets only its own database login; only migrations get the owner's. */}}
{{- define "gpubroker.secrets" -}}
{{- $s := .root.Values.secrets -}}
- secret:
    name: {{ $s.application.name }}
    items:
      - {key: {{ $s.application.keys.secretKey | quote }}, path: GPUBROKER_SECRET_KEY}
      {{- if or (eq .name "web" "worker" "background-worker" "log-collector" "events") (hasPrefix "agent-" .name) }}
      - {key: {{ $s.application.keys.credentialKeys | quote }}, path: GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS}
      {{- end }}
      {{- if and $s.application.keys.metricsToken (eq .name "web") }}
      - {key: {{ $s.application.keys.metricsToken | quote }}, path: GPUBROKER_METRICS_TOKEN}
      {{- end }}
- secret:
    name: {{ $s.database.name }}
    items:
      {{- if eq .login "owner" }}
      - {key: {{ $s.database.keys.owner | quote }}, path: GPUBROKER_OWNER_DATABASE_URL}
      {{- end }}
      - {key: {{ get $s.database.keys (ternary "web" .login (eq .login "owner")) | quote }}, path: GPUBROKER_DATABASE_URL}
- secret:
    name: {{ $s.valkey.name }}
    items:
      - {key: {{ $s.valkey.key | quote }}, path: GPUBROKER_BROKER_URL}
{{- with $s.ca }}
{{- if .name }}
- secret:
    name: {{ .name }}
    items:
      - {key: {{ .key | quote }}, path: ca.pem}
{{- end }}
{{- end }}
{{- if eq .name "web" "worker" "background-worker" }}
{{- range $s.extra }}
- secret:
    name: {{ .name }}
    items:
      - {key: {{ .key | quote }}, path: GPUBROKER_{{ .setting }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* Deployment of that pod. `scaled` leaves the number of replicas to an autoscaler. */}}
{{- define "gpubroker.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "gpubroker.name" .root }}-{{ .name }}
  labels:
    {{- include "gpubroker.labels" . | nindent 4 }}
spec:
  {{- if not .scaled }}
  replicas: {{ .replicas | int64 }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    {{- if .alone }}
    type: Recreate
    {{- else }}
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
    {{- end }}
  selector:
    matchLabels:
      {{- include "gpubroker.selector" . | nindent 6 }}
  template:
    {{- include "gpubroker.pod" . | nindent 4 }}
{{- end -}}

{{- define "gpubroker.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "gpubroker.name" .root }}-{{ .name }}
  labels:
    {{- include "gpubroker.labels" . | nindent 4 }}
spec:
  ports:
    - {name: http, port: 80, targetPort: http}
  selector:
    {{- include "gpubroker.selector" . | nindent 4 }}
{{- end -}}
