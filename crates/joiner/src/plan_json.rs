//! The machine-readable plan: one document, whose fields are a contract.

use std::collections::BTreeMap;

use joiner_model::{NanoDollars, Plan, PodIx, Problem, Requirement, keys};
use serde::Serialize;

/// The whole answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanView<'p> {
    new_nodes: Vec<NewNode<'p>>,
    existing_nodes: Vec<ExistingNode<'p>>,
    unschedulable: Vec<Unschedulable<'p>>,
    cost: CostView,
    timings: Timings,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewNode<'p> {
    name: &'p str,
    node_pool: &'p str,
    requirements: Vec<RequirementView<'p>>,
    instance_types: Vec<&'p str>,
    launch: LaunchView<'p>,
    pods: Vec<&'p str>,
    requests: BTreeMap<&'p str, String>,
}

#[derive(Serialize)]
struct RequirementView<'p> {
    key: &'p str,
    operator: &'static str,
    values: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LaunchView<'p> {
    instance_type: &'p str,
    zone: &'p str,
    capacity_type: &'p str,
    price_per_hour: f64,
}

#[derive(Serialize)]
struct ExistingNode<'p> {
    node: &'p str,
    pods: Vec<&'p str>,
}

#[derive(Serialize)]
struct Unschedulable<'p> {
    pod: &'p str,
    reasons: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CostView {
    new_nodes_per_hour: f64,
    lower_bound_per_hour: f64,
    gap: f64,
}

/// How long the steps took, in milliseconds.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timings {
    pub(crate) parse_ms: f64,
    pub(crate) solve_ms: f64,
    pub(crate) verify_ms: f64,
}

/// Dollars as a number.
pub(crate) fn dollars(price: NanoDollars) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "prices are far below 2^53 nano-dollars"
    )]
    let nanos = price.get() as f64;
    nanos / 1e9
}

/// How far a price is above its bound: 0.01 is one percent.
pub(crate) fn gap(price: NanoDollars, bound: NanoDollars) -> f64 {
    if bound == NanoDollars::ZERO {
        0.0
    } else {
        dollars(price) / dollars(bound) - 1.0
    }
}

impl<'p> PlanView<'p> {
    pub(crate) fn new(problem: &'p Problem, plan: &'p Plan, timings: Timings) -> Self {
        let names = |pods: &'p [PodIx]| -> Vec<&'p str> {
            pods.iter()
                .map(|p| problem.pods[p.0 as usize].name.as_ref())
                .collect()
        };
        let new_nodes = plan.launches.iter().map(|launch| {
            let ty = &problem.types[launch.offering.0.0 as usize];
            let offering = &ty.offerings[launch.offering.1.0 as usize];
            let label = |key: &str| offering.labels.get(key).map_or("", AsRef::as_ref);
            NewNode {
                name: &launch.name,
                node_pool: &problem.pools[launch.pool.0 as usize].name,
                requirements: launch.requirements.iter().flat_map(views).collect(),
                instance_types: launch
                    .types
                    .iter()
                    .map(|t| problem.types[t.0 as usize].name.as_ref())
                    .collect(),
                launch: LaunchView {
                    instance_type: &ty.name,
                    zone: label(keys::ZONE),
                    capacity_type: label(keys::CAPACITY_TYPE),
                    price_per_hour: dollars(launch.price),
                },
                pods: names(&launch.pods),
                requests: launch.requests.rendered().collect(),
            }
        });
        let existing_nodes = plan.placements.iter().map(|placement| ExistingNode {
            node: &problem.nodes[placement.node.0 as usize].name,
            pods: names(&placement.pods),
        });
        let unschedulable = plan.unplaced.iter().map(|left| Unschedulable {
            pod: &problem.pods[left.pod.0 as usize].name,
            reasons: left.refusals.iter().map(ToString::to_string).collect(),
        });
        Self {
            new_nodes: new_nodes.collect(),
            existing_nodes: existing_nodes.collect(),
            unschedulable: unschedulable.collect(),
            cost: CostView {
                new_nodes_per_hour: dollars(plan.cost.price),
                lower_bound_per_hour: dollars(plan.cost.bound),
                gap: gap(plan.cost.price, plan.cost.bound),
            },
            timings,
        }
    }
}

fn views(requirement: &Requirement) -> impl Iterator<Item = RequirementView<'_>> {
    requirement
        .entries()
        .into_iter()
        .map(|(operator, values)| RequirementView {
            key: requirement.key(),
            operator: operator.as_str(),
            values: values.iter().map(ToString::to_string).collect(),
        })
}
