//! The public story of a scale-out: twenty Deployments of ten sizes, four of them spread over zones
//! and four for arm64 only.

use serde_json::{Value, json};

/// CPU in millicores and memory in MiB that pods ask for.
const SHAPES: [(u64, u64); 10] = [
    (100, 128),
    (250, 512),
    (500, 512),
    (500, 2048),
    (1000, 1024),
    (1000, 4096),
    (2000, 2048),
    (2000, 8192),
    (4000, 8192),
    (750, 3000),
];

/// Deployments of the story.
pub const N_DEPLOYMENTS: usize = 2 * SHAPES.len();

/// What the pods of one Deployment ask for.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Name of the Deployment, and of the label `app`.
    pub name: String,
    /// Millicores.
    pub milli: u64,
    /// Mebibytes of memory.
    pub mebi: u64,
    /// Rules about where pods go, for the pods' spec.
    pub rules: Value,
}

/// Rules about where pods go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Anywhere.
    None,
    /// As many in every zone.
    Zones,
    /// On arm64 only.
    Arm,
}

impl Workload {
    /// A Deployment with a number.
    #[must_use]
    pub fn new(number: usize, (milli, mebi): (u64, u64), rule: Rule) -> Self {
        let name = format!("d{number}");
        let rules = match rule {
            Rule::None => json!({}),
            Rule::Zones => json!({"topologySpreadConstraints": [{"maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}}}]}),
            Rule::Arm => json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}}),
        };
        Self {
            name,
            milli,
            mebi,
            rules,
        }
    }
}

/// The Deployments of the story.
#[must_use]
pub fn workloads() -> Vec<Workload> {
    let of = |n: usize| {
        let rule = match n % 5 {
            1 => Rule::Zones,
            2 => Rule::Arm,
            _ => Rule::None,
        };
        Workload::new(n, SHAPES[n % SHAPES.len()], rule)
    };
    (0..N_DEPLOYMENTS).map(of).collect()
}
