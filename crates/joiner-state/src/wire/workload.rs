//! Objects that make pods, and cluster-wide settings for pods.

use super::strict::object_only;
use super::{
    Amounts, LabelSelector, Meta, TextMap,
    pod::{ClaimTemplate, PodTemplate, Toleration},
};

wire! {
    /// A Deployment, ReplicaSet, StatefulSet, Job or DaemonSet.
    struct Workload<'a> {
        metadata: Meta<'a>,
        spec: WorkloadSpec<'a>,
        status: WorkloadStatus,
    }

    /// What to make and how many.
    struct WorkloadSpec<'a> {
        replicas: i32,
        selector: LabelSelector<'a>,
        template: PodTemplate<'a>,
        volume_claim_templates: Vec<ClaimTemplate<'a>>,
        ordinals: Ordinals,
        parallelism: i32,
        completions: i32,
        suspend: bool,
    }

    /// Something that selects pods by labels alone.
    struct MapSelecting<'a> {
        metadata: Meta<'a>,
        spec: MapSelectingSpec<'a>,
    }

    /// Which pods.
    struct MapSelectingSpec<'a> {
        selector: TextMap<'a>,
    }

    /// A named priority.
    struct PriorityClass<'a> {
        metadata: Meta<'a>,
        value: i32,
        global_default: bool,
    }

    /// A container runtime with a price of its own.
    struct RuntimeClass<'a> {
        metadata: Meta<'a>,
        overhead: RuntimeOverhead<'a>,
        scheduling: RuntimeScheduling<'a>,
    }

    /// What the runtime itself takes.
    struct RuntimeOverhead<'a> {
        pod_fixed: Amounts<'a>,
    }

    /// Nodes that have the runtime.
    struct RuntimeScheduling<'a> {
        node_selector: TextMap<'a>,
        tolerations: Vec<Toleration<'a>>,
    }
}

/// Where the numbers of a StatefulSet start.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(remote = "Self", expecting = "an object")]
pub(crate) struct Ordinals {
    pub(crate) start: Option<u32>,
}

object_only!(Ordinals);

/// What is done.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(remote = "Self", expecting = "an object")]
pub(crate) struct WorkloadStatus {
    pub(crate) succeeded: Option<i32>,
}

object_only!(WorkloadStatus);
