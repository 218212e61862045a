//! The kinds of Kubernetes itself.

use super::{Kind, Subresource};
use Subresource::{Binding, Eviction, Finalize, Log, Scale, Status, Token};

/// One row: group, version, kind, plural, short names, where it lives, subresources, categories.
struct Row(
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
    Scope,
    &'static [Subresource],
    &'static [&'static str],
);

/// Where objects live.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespaced,
    Cluster,
}
use Scope::{Cluster, Namespaced};

const NONE: &[Subresource] = &[];
const STATUS: &[Subresource] = &[Status];
const SCALED: &[Subresource] = &[Scale, Status];
const POD: &[Subresource] = &[Binding, Eviction, Log, Status];
const ALL: &[&str] = &["all"];
const EXTENSIONS: &[&str] = &["api-extensions"];

const APPS: &str = "apps";
const STORAGE: &str = "storage.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row("", "v1", "ConfigMap", "configmaps", &["cm"], Namespaced, NONE, &[]),
    Row("", "v1", "Endpoints", "endpoints", &["ep"], Namespaced, NONE, &[]),
    Row("", "v1", "Event", "events", &["ev"], Namespaced, NONE, &[]),
    Row("", "v1", "LimitRange", "limitranges", &["limits"], Namespaced, NONE, &[]),
    Row("", "v1", "Namespace", "namespaces", &["ns"], Cluster, &[Finalize, Status], &[]),
    Row("", "v1", "Node", "nodes", &["no"], Cluster, STATUS, &[]),
    Row("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], Namespaced, STATUS, &[]),
    Row("", "v1", "PersistentVolume", "persistentvolumes", &["pv"], Cluster, STATUS, &[]),
    Row("", "v1", "Pod", "pods", &["po"], Namespaced, POD, ALL),
    Row("", "v1", "PodTemplate", "podtemplates", &[], Namespaced, NONE, &[]),
    Row("", "v1", "ResourceQuota", "resourcequotas", &["quota"], Namespaced, STATUS, &[]),
    Row("", "v1", "Secret", "secrets", &[], Namespaced, NONE, &[]),
    Row("", "v1", "ServiceAccount", "serviceaccounts", &["sa"], Namespaced, &[Token], &[]),
    Row("", "v1", "Service", "services", &["svc"], Namespaced, STATUS, ALL),
    Row("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", &["crd", "crds"], Cluster, STATUS, EXTENSIONS),
    Row(APPS, "v1", "ControllerRevision", "controllerrevisions", &[], Namespaced, NONE, &[]),
    Row(APPS, "v1", "DaemonSet", "daemonsets", &["ds"], Namespaced, STATUS, ALL),
    Row(APPS, "v1", "Deployment", "deployments", &["deploy"], Namespaced, SCALED, ALL),
    Row(APPS, "v1", "ReplicaSet", "replicasets", &["rs"], Namespaced, SCALED, ALL),
    Row(APPS, "v1", "StatefulSet", "statefulsets", &["sts"], Namespaced, SCALED, ALL),
    Row("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", &[], Cluster, NONE, &[]),
    Row("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", &[], Cluster, NONE, &[]),
    Row(AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", &[], Namespaced, NONE, &[]),
    Row(AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", &[], Cluster, NONE, &[]),
    Row(AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", &[], Cluster, NONE, &[]),
    Row(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", &[], Cluster, NONE, &[]),
    Row("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", &["hpa"], Namespaced, STATUS, ALL),
    Row("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", &["hpa"], Namespaced, STATUS, ALL),
    Row("batch", "v1", "CronJob", "cronjobs", &["cj"], Namespaced, STATUS, ALL),
    Row("batch", "v1", "Job", "jobs", &[], Namespaced, STATUS, ALL),
    Row("coordination.k8s.io", "v1", "Lease", "leases", &[], Namespaced, NONE, &[]),
    Row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", &[], Namespaced, NONE, &[]),
    Row("events.k8s.io", "v1", "Event", "events", &["ev"], Namespaced, NONE, &[]),
    Row("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", &[], Cluster, NONE, &[]),
    Row("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", &[], Namespaced, NONE, &[]),
    Row(NETWORKING, "v1", "IngressClass", "ingressclasses", &[], Cluster, NONE, &[]),
    Row(NETWORKING, "v1", "Ingress", "ingresses", &["ing"], Namespaced, STATUS, &[]),
    Row(NETWORKING, "v1", "NetworkPolicy", "networkpolicies", &["netpol"], Namespaced, NONE, &[]),
    Row("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", &[], Cluster, NONE, &[]),
    Row("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"], Namespaced, STATUS, &[]),
    Row(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", &[], Cluster, NONE, &[]),
    Row(RBAC, "v1", "ClusterRole", "clusterroles", &[], Cluster, NONE, &[]),
    Row(RBAC, "v1", "RoleBinding", "rolebindings", &[], Namespaced, NONE, &[]),
    Row(RBAC, "v1", "Role", "roles", &[], Namespaced, NONE, &[]),
    Row("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"], Cluster, NONE, &[]),
    Row(STORAGE, "v1", "CSIDriver", "csidrivers", &[], Cluster, NONE, &[]),
    Row(STORAGE, "v1", "CSINode", "csinodes", &[], Cluster, NONE, &[]),
    Row(STORAGE, "v1", "StorageClass", "storageclasses", &["sc"], Cluster, NONE, &[]),
    Row(STORAGE, "v1", "VolumeAttachment", "volumeattachments", &[], Cluster, STATUS, &[]),
];

/// Every kind of Kubernetes itself that is served, in discovery's order. Of a group with several
/// versions the preferred one comes first.
#[must_use]
pub fn builtin() -> Vec<Kind> {
    let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    let kind = |row: &Row| Kind {
        group: row.0.to_owned(),
        version: row.1.to_owned(),
        kind: row.2.to_owned(),
        plural: row.3.to_owned(),
        // The metrics server names no singulars.
        singular: if row.0 == "metrics.k8s.io" {
            String::new()
        } else {
            row.2.to_lowercase()
        },
        short_names: strings(row.4),
        categories: strings(row.7),
        namespaced: row.5 == Namespaced,
        subresources: row.6.to_vec(),
        custom: None,
    };
    ROWS.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fields;
    use super::*;

    fn find(group: &str, plural: &str) -> Kind {
        let mut all = builtin().into_iter();
        all.find(|k| k.group == group && k.plural == plural)
            .unwrap()
    }

    #[test]
    fn every_stored_kind_has_its_fields() {
        for kind in builtin() {
            let known = fields::root(&kind).is_some();
            assert_eq!(known, kind.group != "metrics.k8s.io", "{}", kind.resource());
        }
    }

    #[test]
    fn verbs_and_places() {
        let reviews = find("authorization.k8s.io", "selfsubjectaccessreviews");
        assert_eq!(reviews.verbs(), ["create"]);
        assert!(!reviews.is_stored());
        assert_eq!(find("metrics.k8s.io", "pods").verbs(), ["get", "list"]);
        assert!(!find("", "namespaces").verbs().contains(&"deletecollection"));
        assert!(find("", "pods").verbs().contains(&"deletecollection"));
        assert_eq!(find("events.k8s.io", "events").storage(), ("", "events"));
        assert_eq!(find("apps", "deployments").singular, "deployment");
        assert!(find("apps", "deployments").has(Scale));
    }
}
