{{- /* The names and labels of a group's objects, and its pod. Each takes a dict: root (the chart's $), name, group. */ -}}

{{- define "neuraxis.name" -}}
{{- printf "%s-%s" .root.Release.Name .name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "neuraxis.selector" -}}
app.kubernetes.io/name: neuraxis
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .name | quote }}
{{- end -}}

{{- define "neuraxis.labels" -}}
{{ include "neuraxis.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
{{- end -}}

{{- define "neuraxis.hardened" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "neuraxis.pod" -}}
metadata:
  labels:
    {{- include "neuraxis.labels" . | nindent 4 }}
  annotations:
    checksum/configuration: {{ .root.Values.configuration | sha256sum }}
spec:
  serviceAccountName: {{ .root.Release.Name }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .root.Values.graceSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "neuraxis.selector" . | nindent 10 }}
  containers:
    - name: {{ .name }}
      image: {{ .root.Values.image | quote }}
      imagePullPolicy: {{ .root.Values.imagePullPolicy }}
      args:
        {{- toYaml .group.args | nindent 8 }}
      env:
        - name: NEURAXIS_RUNTIME__HEALTH_FILE
          value: /tmp/health.json
        {{- if and .root.Values.network.metricsPort (not .group.serves) }}
        # Prometheus is told this address: it cannot resolve a pod's name.
        - name: POD_IP
          valueFrom:
            fieldRef: {fieldPath: status.podIP}
        - name: NEURAXIS_TELEMETRY__METRICS
          value: "$(POD_IP):{{ .root.Values.network.metricsPort }}"
        {{- end }}
        {{- range $name, $value := .root.Values.environment }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      {{- if .group.keeps }}
      envFrom:
        # Such as OTEL_EXPORTER_OTLP_HEADERS, where the collector of traces asks for a key.
        - secretRef: {name: neuraxis-{{ .name }}-environment, optional: true}
      {{- end }}
      securityContext:
        {{- include "neuraxis.hardened" . | nindent 8 }}
      resources:
        {{- toYaml .group.resources | nindent 8 }}
      {{- if .group.serves }}
      ports:
        - name: http
          containerPort: {{ .root.Values.port }}
      lifecycle:
        preStop:
          exec:
            # Until every node has heard that this pod is no end point any more.
            command: [sleep, {{ .root.Values.drainSeconds | quote }}]
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 3
      {{- else }}
      startupProbe:
        exec:
          command: [neuraxis-probe, live]
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      livenessProbe:
        exec:
          command: [neuraxis-probe, live]
        periodSeconds: 15
        timeoutSeconds: 5
        failureThreshold: 2
      readinessProbe:
        exec:
          command: [neuraxis-probe, ready]
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      {{- end }}
      volumeMounts:
        - name: configuration
          mountPath: /etc/neuraxis
          readOnly: true
        - name: secrets
          mountPath: /run/secrets
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- if .group.keeps }}
        - name: ledger
          mountPath: /var/lib/neuraxis
        {{- end }}
  volumes:
    - name: configuration
      configMap:
        name: {{ .root.Release.Name }}-configuration
    - name: secrets
      secret:
        secretName: neuraxis-{{ .name }}
        defaultMode: 0440
    - name: tmp
      emptyDir:
        medium: Memory
        sizeLimit: 64Mi
{{- end -}}
