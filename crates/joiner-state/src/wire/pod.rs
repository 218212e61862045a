//! Pods and pod templates.

use super::{Amounts, Expression, LabelSelector, Meta, Text, TextMap, volume::ClaimSpec};

wire! {
    /// A pod.
    struct Pod<'a> {
        metadata: Meta<'a>,
        spec: PodSpec<'a>,
        status: PodStatus<'a>,
    }

    /// A pod to be made by a workload.
    struct PodTemplate<'a> {
        metadata: Meta<'a>,
        spec: PodSpec<'a>,
    }

    /// What a pod asks for.
    struct PodSpec<'a> {
        node_name: Text<'a>,
        containers: Vec<Container<'a>>,
        init_containers: Vec<Container<'a>>,
        resources: ContainerResources<'a>,
        overhead: Amounts<'a>,
        runtime_class_name: Text<'a>,
        node_selector: TextMap<'a>,
        affinity: Affinity<'a>,
        tolerations: Vec<Toleration<'a>>,
        topology_spread_constraints: Vec<SpreadConstraint<'a>>,
        volumes: Vec<Volume<'a>>,
        host_network: bool,
        priority: i32,
        priority_class_name: Text<'a>,
        scheduling_gates: Vec<serde::de::IgnoredAny>,
        resource_claims: Vec<serde::de::IgnoredAny>,
    }

    /// How a pod is doing.
    struct PodStatus<'a> {
        phase: Text<'a>,
        container_statuses: Vec<ContainerStatus<'a>>,
        init_container_statuses: Vec<ContainerStatus<'a>>,
    }

    /// How a container is doing.
    struct ContainerStatus<'a> {
        name: Text<'a>,
        allocated_resources: Amounts<'a>,
    }

    /// A container.
    struct Container<'a> {
        name: Text<'a>,
        resources: ContainerResources<'a>,
        ports: Vec<ContainerPort<'a>>,
        restart_policy: Text<'a>,
    }

    /// Requests, limits, and claims for devices.
    struct ContainerResources<'a> {
        requests: Amounts<'a>,
        limits: Amounts<'a>,
        claims: Vec<serde::de::IgnoredAny>,
    }

    /// A port of a container.
    struct ContainerPort<'a> {
        container_port: u16,
        host_port: u16,
        #[serde(rename = "hostIP")]
        host_ip: Text<'a>,
        protocol: Text<'a>,
    }

    /// Affinity of a pod.
    struct Affinity<'a> {
        node_affinity: NodeAffinity<'a>,
        pod_affinity: PodAffinity<'a>,
        pod_anti_affinity: PodAffinity<'a>,
    }

    /// Node affinity.
    struct NodeAffinity<'a> {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: NodeSelector<'a>,
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        preferred: Vec<PreferredNodeTerm<'a>>,
    }

    /// A choice of terms.
    struct NodeSelector<'a> {
        node_selector_terms: Vec<NodeTerm<'a>>,
    }

    /// Expressions that must all hold.
    struct NodeTerm<'a> {
        match_expressions: Vec<Expression<'a>>,
        match_fields: Vec<Expression<'a>>,
    }

    /// A wish for a node.
    struct PreferredNodeTerm<'a> {
        weight: i32,
        preference: NodeTerm<'a>,
    }

    /// Pod affinity or anti-affinity.
    struct PodAffinity<'a> {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: Vec<PodTerm<'a>>,
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        preferred: Vec<PreferredPodTerm<'a>>,
    }

    /// A wish for company or solitude.
    struct PreferredPodTerm<'a> {
        weight: i32,
        pod_affinity_term: PodTerm<'a>,
    }

    /// Pods to be near or away from.
    struct PodTerm<'a> {
        label_selector: LabelSelector<'a>,
        topology_key: Text<'a>,
        namespaces: Vec<Text<'a>>,
        namespace_selector: LabelSelector<'a>,
        match_label_keys: Vec<Text<'a>>,
        mismatch_label_keys: Vec<Text<'a>>,
    }

    /// A toleration.
    struct Toleration<'a> {
        key: Text<'a>,
        operator: Text<'a>,
        value: Text<'a>,
        effect: Text<'a>,
    }

    /// A topology spread constraint.
    struct SpreadConstraint<'a> {
        max_skew: i32,
        topology_key: Text<'a>,
        when_unsatisfiable: Text<'a>,
        label_selector: LabelSelector<'a>,
        match_label_keys: Vec<Text<'a>>,
        min_domains: i32,
        node_affinity_policy: Text<'a>,
        node_taints_policy: Text<'a>,
    }

    /// A volume of a pod.
    struct Volume<'a> {
        name: Text<'a>,
        persistent_volume_claim: ClaimReference<'a>,
        ephemeral: EphemeralVolume<'a>,
    }

    /// A claim that is mounted.
    struct ClaimReference<'a> {
        claim_name: Text<'a>,
    }

    /// A volume that lives as long as its pod.
    struct EphemeralVolume<'a> {
        volume_claim_template: ClaimTemplate<'a>,
    }

    /// A claim to be made.
    struct ClaimTemplate<'a> {
        metadata: Meta<'a>,
        spec: ClaimSpec<'a>,
    }
}
