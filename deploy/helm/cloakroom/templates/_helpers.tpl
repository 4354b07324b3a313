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

{{- define "cloakroom.podDefaults" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
securityContext: {{- include "cloakroom.podSecurity" . | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cloakroom.settings" -}}
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "cloakroom.databaseEnvironment" -}}
- { name: CLOAKROOM__VAULT__ENVIRONMENT, value: {{ .Values.environment | quote }} }
- { name: CLOAKROOM__DATABASE__URL_FILE, value: /etc/cloakroom/database/url }
- { name: CLOAKROOM__DATABASE__CA_FILE, value: /etc/cloakroom/database-ca/ca.crt }
{{- if .Values.rootKey.secretName }}
- { name: CLOAKROOM__ROOT_KEY__FILE, value: /etc/cloakroom/root-key/root.key }
- { name: CLOAKROOM__ROOT_KEY__ALLOW_FILE_IN_PRODUCTION, value: "true" }
{{- end }}
{{- include "cloakroom.settings" . }}
{{- end }}

{{- define "cloakroom.environment" -}}
{{ include "cloakroom.databaseEnvironment" . }}
- name: CLOAKROOM__VAULT__NODE
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- { name: CLOAKROOM__HTTP__LISTEN, value: "0.0.0.0:8443" }
- { name: CLOAKROOM__HTTP__BASE_URL, value: {{ .Values.baseUrl | quote }} }
- { name: CLOAKROOM__HTTP__TLS_CERT_FILE, value: /etc/cloakroom/tls/tls.crt }
- { name: CLOAKROOM__HTTP__TLS_KEY_FILE, value: /etc/cloakroom/tls/tls.key }
- { name: CLOAKROOM__ADMIN__LISTEN, value: "0.0.0.0:9090" }
{{- with .Values.trustedProxies }}
- { name: CLOAKROOM__HTTP__TRUSTED_PROXIES, value: {{ join "," . | quote }} }
{{- end }}
{{- if .Values.redis.secretName }}
- { name: CLOAKROOM__REDIS__URL_FILE, value: /etc/cloakroom/redis/url }
{{- if .Values.redis.caConfigMapName }}
- { name: CLOAKROOM__REDIS__CA_FILE, value: /etc/cloakroom/redis-ca/ca.crt }
{{- end }}
{{- end }}
{{- end }}

{{- define "cloakroom.mounts" -}}
- { name: database, mountPath: /etc/cloakroom/database, readOnly: true }
- { name: database-ca, mountPath: /etc/cloakroom/database-ca, readOnly: true }
- { name: tls, mountPath: /etc/cloakroom/tls, readOnly: true }
{{- if .Values.rootKey.secretName }}
- { name: root-key, mountPath: /etc/cloakroom/root-key, readOnly: true }
{{- end }}
{{- if .Values.redis.secretName }}
- { name: redis, mountPath: /etc/cloakroom/redis, readOnly: true }
{{- if .Values.redis.caConfigMapName }}
- { name: redis-ca, mountPath: /etc/cloakroom/redis-ca, readOnly: true }
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The database URL of the owner of the tables or of the nodes. Files belong to root, and only the group of the node (fsGroup) can read them, which a node accepts. */}}
{{- define "cloakroom.databaseVolumes" -}}
- name: database
  secret:
    secretName: {{ ternary .root.Values.database.ownerSecretName .root.Values.database.secretName .owner }}
    defaultMode: 0440
    items: [{ key: url, path: url }]
- name: database-ca
  configMap: { name: {{ .root.Values.database.caConfigMapName }} }
{{- end }}

{{- define "cloakroom.volumes" -}}
{{ include "cloakroom.databaseVolumes" (dict "root" . "owner" false) }}
- name: tls
  secret:
    secretName: {{ .Values.tls.secretName }}
    defaultMode: 0440
    items: [{ key: tls.crt, path: tls.crt }, { key: tls.key, path: tls.key }]
{{- with .Values.rootKey.secretName }}
- name: root-key
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items: [{ key: root.key, path: root.key }]
{{- end }}
{{- if .Values.redis.secretName }}
- name: redis
  secret:
    secretName: {{ .Values.redis.secretName }}
    defaultMode: 0440
    items: [{ key: url, path: url }]
{{- if .Values.redis.caConfigMapName }}
- name: redis-ca
  configMap: { name: {{ .Values.redis.caConfigMapName }} }
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
