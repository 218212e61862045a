//! The table: how the parts of the built-in kinds merge.
//!
//! One line per type, continued where it is indented; a line that starts with an API version is a
//! kind, and a kind that is not here is an [`OTHER`] one. A cell is `field:how`:
//!
//! | how | meaning |
//! |---|---|
//! | `Type` | an object with a line of its own |
//! | `.` | an object without one |
//! | `!…` | an object or list that is always there: an absent one is an empty one |
//! | `@` | apply owns it as a whole, a strategic merge goes into it |
//! | `=@` | the same, and a strategic merge replaces it |
//! | `[a,b]…` | a list of objects; apply knows them by `a` and `b`, a strategic merge by `a` |
//! | `[a,b=X]…` | `X` stands in where an object has no `b`; otherwise an empty string or zero does |
//! | `[a/]…` | a strategic merge replaces the list |
//! | `[/a]…` | apply owns the list as a whole |
//! | `<>`, `<->` | a set of scalars, for both and for apply alone |
//!
//! What is not listed merges by the general rule: objects field by field, lists as a whole.

/// The line for kinds without one.
pub(super) const OTHER: &str = "Other";

/// See the module page.
pub(super) const TABLE: &str = "
Other metadata:!ObjectMeta spec:!. status:!.
ObjectMeta finalizers:<> ownerReferences:[uid]@

v1/Pod metadata:!ObjectMeta spec:!PodSpec status:!PodStatus
PodStatus conditions:[type] hostIPs:[/ip] podIPs:[ip] resourceClaimStatuses:[name]
    resources:ResourceRequirements
PodTemplateSpec metadata:!ObjectMeta spec:!PodSpec
PodSpec affinity:Affinity containers:![name]Container ephemeralContainers:[name]Container
    hostAliases:[ip] imagePullSecrets:[name]@ initContainers:[name]Container nodeSelector:@
    resourceClaims:[name] resources:ResourceRequirements schedulingGates:[name]
    topologySpreadConstraints:[topologyKey,whenUnsatisfiable]TopologySpreadConstraint
    volumes:[name]Volume
Affinity nodeAffinity:NodeAffinity
NodeAffinity requiredDuringSchedulingIgnoredDuringExecution:@
TopologySpreadConstraint labelSelector:@
Container env:[name]EnvVar ports:[containerPort,protocol=TCP] resources:!ResourceRequirements
    volumeDevices:[devicePath] volumeMounts:[mountPath]
EnvVar valueFrom:EnvVarSource
EnvVarSource configMapKeyRef:@ fieldRef:@ fileKeyRef:@ resourceFieldRef:@ secretKeyRef:@
ResourceRequirements claims:[name/]
Volume cephfs:SecretRef cinder:SecretRef csi:CSIVolumeSource ephemeral:EphemeralVolumeSource
    flexVolume:SecretRef iscsi:SecretRef rbd:SecretRef scaleIO:SecretRef storageos:SecretRef
SecretRef secretRef:@
CSIVolumeSource nodePublishSecretRef:@
EphemeralVolumeSource volumeClaimTemplate:PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate metadata:!ObjectMeta spec:!PersistentVolumeClaimSpec

apps/v1/DaemonSet metadata:!ObjectMeta spec:!DaemonSetSpec status:!Conditions
DaemonSetSpec selector:@ template:!PodTemplateSpec updateStrategy:!.
apps/v1/Deployment metadata:!ObjectMeta spec:!DeploymentSpec status:!Conditions
DeploymentSpec selector:@ strategy:!. template:!PodTemplateSpec
apps/v1/ReplicaSet metadata:!ObjectMeta spec:!ReplicaSetSpec status:!Conditions
ReplicaSetSpec selector:@ template:!PodTemplateSpec
apps/v1/StatefulSet metadata:!ObjectMeta spec:!StatefulSetSpec status:!Conditions
StatefulSetSpec selector:@ template:!PodTemplateSpec updateStrategy:!.
Conditions conditions:[type]

batch/v1/CronJob metadata:!ObjectMeta spec:!CronJobSpec status:!.
CronJobSpec jobTemplate:!JobTemplateSpec
JobTemplateSpec metadata:!ObjectMeta spec:!JobSpec
JobSpec selector:@ template:!PodTemplateSpec
batch/v1/Job metadata:!ObjectMeta spec:!JobSpec status:!JobStatus
JobStatus conditions:[/type] uncountedTerminatedPods:UncountedTerminatedPods
UncountedTerminatedPods failed:<-> succeeded:<->

autoscaling/v1/HorizontalPodAutoscaler metadata:!ObjectMeta spec:!ScaleTarget status:!.
ScaleTarget scaleTargetRef:!@
autoscaling/v2/HorizontalPodAutoscaler metadata:!ObjectMeta spec:!ScaleTargetV2
    status:!Conditions
ScaleTargetV2 scaleTargetRef:!.
policy/v1/PodDisruptionBudget metadata:!ObjectMeta spec:!PodDisruptionBudgetSpec
    status:!Conditions
PodDisruptionBudgetSpec selector:=@

v1/Namespace metadata:!ObjectMeta spec:!. status:!Conditions
v1/Node metadata:!ObjectMeta spec:!NodeSpec status:!NodeStatus
NodeSpec podCIDRs:<>
NodeStatus addresses:[type] conditions:[type] daemonEndpoints:!NodeDaemonEndpoints nodeInfo:!.
NodeDaemonEndpoints kubeletEndpoint:!.
v1/Service metadata:!ObjectMeta spec:!ServiceSpec status:!ServiceStatus
ServiceSpec ports:[port,protocol=TCP] selector:@
ServiceStatus conditions:[type] loadBalancer:!.
v1/ServiceAccount metadata:!ObjectMeta secrets:[name]@
v1/Event involvedObject:!@ metadata:!ObjectMeta related:@ source:!.
events.k8s.io/v1/Event deprecatedSource:!. metadata:!ObjectMeta regarding:!@ related:@

v1/PersistentVolume metadata:!ObjectMeta spec:!PersistentVolumeSpec status:!.
PersistentVolumeSpec cephfs:SecretRef cinder:SecretRef csi:CSIPersistentVolumeSource
    flexVolume:SecretRef iscsi:SecretRef nodeAffinity:VolumeNodeAffinity rbd:SecretRef
    scaleIO:SecretRef storageos:SecretRef
CSIPersistentVolumeSource controllerExpandSecretRef:@ controllerPublishSecretRef:@
    nodeExpandSecretRef:@ nodePublishSecretRef:@ nodeStageSecretRef:@
VolumeNodeAffinity required:@
v1/PersistentVolumeClaim metadata:!ObjectMeta spec:!PersistentVolumeClaimSpec
    status:!Conditions
PersistentVolumeClaimSpec dataSource:@ resources:!. selector:@
storage.k8s.io/v1/CSIDriver metadata:!ObjectMeta spec:!CSIDriverSpec
CSIDriverSpec volumeLifecycleModes:<->
storage.k8s.io/v1/CSINode metadata:!ObjectMeta spec:!CSINodeSpec
CSINodeSpec drivers:![name]
storage.k8s.io/v1/VolumeAttachment metadata:!ObjectMeta spec:!VolumeAttachmentSpec status:!.
VolumeAttachmentSpec source:!VolumeAttachmentSource
VolumeAttachmentSource inlineVolumeSpec:PersistentVolumeSpec

v1/PodTemplate metadata:!ObjectMeta template:!PodTemplateSpec
v1/ResourceQuota metadata:!ObjectMeta spec:!ResourceQuotaSpec status:!.
ResourceQuotaSpec scopeSelector:@
networking.k8s.io/v1/Ingress metadata:!ObjectMeta spec:!IngressSpec status:!IngressStatus
IngressSpec defaultBackend:IngressBackend
IngressBackend resource:@ service:IngressServiceBackend
IngressServiceBackend port:!.
IngressStatus loadBalancer:!.
networking.k8s.io/v1/IngressClass metadata:!ObjectMeta spec:!.
networking.k8s.io/v1/NetworkPolicy metadata:!ObjectMeta spec:!NetworkPolicySpec
NetworkPolicySpec podSelector:!@
node.k8s.io/v1/RuntimeClass metadata:!ObjectMeta scheduling:Scheduling
Scheduling nodeSelector:@
rbac.authorization.k8s.io/v1/ClusterRoleBinding metadata:!ObjectMeta roleRef:!@
rbac.authorization.k8s.io/v1/RoleBinding metadata:!ObjectMeta roleRef:!@
apiextensions.k8s.io/v1/CustomResourceDefinition metadata:!ObjectMeta
    spec:!CustomResourceDefinitionSpec status:!CustomResourceDefinitionStatus
CustomResourceDefinitionSpec names:!.
CustomResourceDefinitionStatus acceptedNames:!. conditions:![type/]
";
