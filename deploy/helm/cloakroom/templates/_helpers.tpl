{{- define "cloakroom.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "cloakroom.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cloakroom.labels" -}}
{{ include "cloakroom.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "cloakroom.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "cloakroom.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "cloakroom.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Copies the secrets to memory, owned by the node with mode 0400. Files of a Secret belong to root, and a node rejects a root key that its group can read. */}}
{{- define "cloakroom.secretsContainer" -}}
- name: secrets
  image: {{ .root.Values.secretsImage }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  securityContext: {{- include "cloakroom.containerSecurity" .root | nindent 4 }}
  command: [sh, -euc]
  args:
    - |
      umask 277
      cd /from
      for file in */*; do cat "$file" > "/to/$(echo "$file" | tr / .)"; done
  resources:
    requests: { cpu: 10m, memory: 16Mi }
    limits: { memory: 32Mi }
  volumeMounts:
    - { name: secrets, mountPath: /to }
    - { name: root-key, mountPath: /from/root, readOnly: true }
    - { name: {{ ternary "database-owner" "database" .owner }}, mountPath: /from/database, readOnly: true }
    {{- if not .owner }}
    - { name: tls, mountPath: /from/tls, readOnly: true }
    {{- if .root.Values.redis.secretName }}
    - { name: redis, mountPath: /from/redis, readOnly: true }
    {{- end }}
    {{- end }}
{{- end }}

{{- define "cloakroom.commonEnvironment" -}}
- { name: CLOAKROOM__VAULT__ENVIRONMENT, value: {{ .Values.environment | quote }} }
- { name: CLOAKROOM__DATABASE__URL_FILE, value: /run/cloakroom/database.url }
- { name: CLOAKROOM__DATABASE__CA_FILE, value: /etc/cloakroom/database/ca.crt }
- { name: CLOAKROOM__ROOT_KEY__FILE, value: /run/cloakroom/root.root.key }
- { name: CLOAKROOM__ROOT_KEY__ALLOW_FILE_IN_PRODUCTION, value: "true" }
{{- end }}

{{- define "cloakroom.environment" -}}
{{ include "cloakroom.commonEnvironment" . }}
- name: CLOAKROOM__VAULT__NODE
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- { name: CLOAKROOM__HTTP__LISTEN, value: "0.0.0.0:8443" }
- { name: CLOAKROOM__HTTP__BASE_URL, value: {{ .Values.baseUrl | quote }} }
- { name: CLOAKROOM__HTTP__TLS_CERT_FILE, value: /run/cloakroom/tls.tls.crt }
- { name: CLOAKROOM__HTTP__TLS_KEY_FILE, value: /run/cloakroom/tls.tls.key }
- { name: CLOAKROOM__ADMIN__LISTEN, value: "0.0.0.0:9090" }
{{- with .Values.trustedProxies }}
- { name: CLOAKROOM__HTTP__TRUSTED_PROXIES, value: {{ join "," . | quote }} }
{{- end }}
{{- if .Values.redis.secretName }}
- { name: CLOAKROOM__REDIS__URL_FILE, value: /run/cloakroom/redis.url }
{{- if .Values.redis.caConfigMapName }}
- { name: CLOAKROOM__REDIS__CA_FILE, value: /etc/cloakroom/redis/ca.crt }
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "cloakroom.mounts" -}}
- { name: secrets, mountPath: /run/cloakroom, readOnly: true }
- { name: database-ca, mountPath: /etc/cloakroom/database, readOnly: true }
{{- if and .Values.redis.secretName .Values.redis.caConfigMapName }}
- { name: redis-ca, mountPath: /etc/cloakroom/redis, readOnly: true }
{{- end }}
{{- end }}

{{- define "cloakroom.commonVolumes" -}}
- name: secrets
  emptyDir: { medium: Memory, sizeLimit: 1Mi }
- name: root-key
  secret:
    secretName: {{ .Values.rootKey.secretName }}
    items: [{ key: root.key, path: root.key }]
- name: database-ca
  configMap: { name: {{ .Values.database.caConfigMapName }} }
{{- end }}

{{- define "cloakroom.volumes" -}}
{{ include "cloakroom.commonVolumes" . }}
- name: database
  secret:
    secretName: {{ .Values.database.secretName }}
    items: [{ key: url, path: url }]
- name: tls
  secret:
    secretName: {{ .Values.tls.secretName }}
    items: [{ key: tls.crt, path: tls.crt }, { key: tls.key, path: tls.key }]
{{- if .Values.redis.secretName }}
- name: redis
  secret:
    secretName: {{ .Values.redis.secretName }}
    items: [{ key: url, path: url }]
{{- if .Values.redis.caConfigMapName }}
- name: redis-ca
  configMap: { name: {{ .Values.redis.caConfigMapName }} }
{{- end }}
{{- end }}
{{- end }}
