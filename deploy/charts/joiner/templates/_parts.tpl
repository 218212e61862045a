{{- /* Names, labels and checks that the other templates share. */ -}}

{{- define "joiner.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* The name of most objects: the release's, with the chart's unless it is in there already. */ -}}
{{- define "joiner.fullname" -}}
{{- $name := include "joiner.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "joiner.serviceAccountName" -}}
{{- $default := ternary (include "joiner.fullname" .) "default" .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default $default -}}
{{- end -}}

{{- define "joiner.selectorLabels" -}}
app.kubernetes.io/name: {{ include "joiner.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "joiner.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "joiner.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Labels and annotations of any object but its own. */ -}}
{{- define "joiner.metadata" -}}
labels:
  {{- include "joiner.labels" . | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Whoever the roles are for. */ -}}
{{- define "joiner.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "joiner.serviceAccountName" . }}
    namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "joiner.image" -}}
{{- with .Values.controller.image -}}
{{- if .digest -}}
{{ .repository }}{{ with .tag }}:{{ . }}{{ end }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The cloud, or an end with a word on what to do. */ -}}
{{- define "joiner.cloud" -}}
{{- $known := list "simulated" -}}
{{- if not .Values.cloud -}}
{{- fail (printf "cloud is not set: say where nodes come from, as in --set cloud=%s (one of: %s)" (first $known) (join ", " $known)) -}}
{{- end -}}
{{- if not (has .Values.cloud $known) -}}
{{- fail (printf "cloud is %q, which this version does not know: use one of: %s" .Values.cloud (join ", " $known)) -}}
{{- end -}}
{{- .Values.cloud -}}
{{- end -}}

{{- /* Where the simulated cloud keeps its machines; the program has the same name. */ -}}
{{- define "joiner.machinesNamespace" -}}
joiner-machines
{{- end -}}

{{- /* Names of the machines that an older version left in the release's namespace, as JSON. */ -}}
{{- define "joiner.oldMachines" -}}
{{- $names := list -}}
{{- if and .Release.IsUpgrade (ne .Release.Namespace (include "joiner.machinesNamespace" .)) -}}
{{- range dig "items" list (lookup "v1" "ConfigMap" .Release.Namespace "") -}}
{{- if hasKey (.metadata.labels | default dict) "joiner.dev/simulated-instance" -}}
{{- $names = append $names .metadata.name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{- /* A value that must be one of a few: (dict "key" .. "value" .. "known" (list ..)). */ -}}
{{- define "joiner.oneOf" -}}
{{- if not (has .value .known) -}}
{{- fail (printf "%s is %q: use one of: %s" .key (toString .value) (join ", " .known)) -}}
{{- end -}}
{{- .value -}}
{{- end -}}

{{- /* Upstream's names of the feature gates, with their values. */ -}}
{{- define "joiner.featureGates" -}}
{{- $gates := list -}}
{{- range $key := keys .Values.settings.featureGates | sortAlpha -}}
{{- $gates = append $gates (printf "%s%s=%v" (upper (substr 0 1 $key)) (substr 1 -1 $key) (index $.Values.settings.featureGates $key)) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{- /* Affinity whose terms between pods all have a selector. */ -}}
{{- define "joiner.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- $selector := dict "matchLabels" (include "joiner.selectorLabels" . | fromYaml) -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- with index $affinity $kind -}}
{{- range .requiredDuringSchedulingIgnoredDuringExecution -}}
{{- if not (hasKey . "labelSelector") }}{{ $_ := set . "labelSelector" $selector }}{{ end -}}
{{- end -}}
{{- range .preferredDuringSchedulingIgnoredDuringExecution -}}
{{- if not (hasKey .podAffinityTerm "labelSelector") }}{{ $_ := set .podAffinityTerm "labelSelector" $selector }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- /* Spread constraints that all have a selector. */ -}}
{{- define "joiner.topologySpreadConstraints" -}}
{{- $constraints := deepCopy .Values.topologySpreadConstraints -}}
{{- $selector := dict "matchLabels" (include "joiner.selectorLabels" . | fromYaml) -}}
{{- range $constraints -}}
{{- if not (hasKey . "labelSelector") }}{{ $_ := set . "labelSelector" $selector }}{{ end -}}
{{- end -}}
{{- toYaml $constraints -}}
{{- end -}}

{{- /* The environment of the program: upstream's names, and nothing for what is not set. */ -}}
{{- define "joiner.environment" -}}
{{- $settings := .Values.settings -}}
{{- $values := list
  (list "KARPENTER_SERVICE" (include "joiner.fullname" .))
  (list "METRICS_PORT" .Values.controller.metrics.port)
  (list "HEALTH_PROBE_PORT" .Values.controller.healthProbe.port)
  (list "LOG_LEVEL" (include "joiner.oneOf" (dict "key" "logLevel" "value" .Values.logLevel "known" (list "" "debug" "info" "error"))))
  (list "LOG_OUTPUT_PATHS" (join "," .Values.logOutputPaths))
  (list "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logErrorOutputPaths))
  (list "FEATURE_GATES" (include "joiner.featureGates" .))
  (list "BATCH_MAX_DURATION" $settings.batchMaxDuration)
  (list "BATCH_IDLE_DURATION" $settings.batchIdleDuration)
  (list "PREFERENCE_POLICY" (include "joiner.oneOf" (dict "key" "settings.preferencePolicy" "value" $settings.preferencePolicy "known" (list "Respect" "Ignore"))))
  (list "MIN_VALUES_POLICY" (include "joiner.oneOf" (dict "key" "settings.minValuesPolicy" "value" $settings.minValuesPolicy "known" (list "Strict" "BestEffort"))))
  (list "SCHEDULER_CONFIG" $settings.schedulerConfig)
  (list "MOVES_PER_REPLICA_PER_DAY" $settings.movesPerReplicaPerDay)
  (list "IGNORE_DRA_REQUESTS" $settings.ignoreDRARequests)
  (list "DISABLE_CLUSTER_STATE_OBSERVABILITY" $settings.disableClusterStateObservability)
  (list "CLUSTER_CA_BUNDLE" $settings.clusterCABundle)
  (list "CLUSTER_NAME" $settings.clusterName)
  (list "CLUSTER_ENDPOINT" $settings.clusterEndpoint)
  (list "ISOLATED_VPC" $settings.isolatedVPC)
  (list "EKS_CONTROL_PLANE" $settings.eksControlPlane)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent)
  (list "INTERRUPTION_QUEUE" $settings.interruptionQueue)
  (list "RESERVED_ENIS" $settings.reservedENIs)
  (list "DISABLE_DRY_RUN" $settings.disableDryRun)
-}}
{{- range $values }}
{{- $value := index . 1 }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- name: {{ index . 0 }}
  value: {{ toString $value | quote }}
{{- end }}
{{- end }}
{{- end -}}
