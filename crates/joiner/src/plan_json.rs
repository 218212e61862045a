//! The machine-readable plan: one document, whose fields are a contract.
//!
//! The document is written as it is made: a plan for a million pods is not built up in memory first.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use anyhow::Context;
use joiner_model::{
    Launch, NanoDollars, Placement, Plan, PodIx, Problem, Requirement, TypeIx, keys,
};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::cost::{self, Figures};

/// The whole answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanView<N, E, U> {
    new_nodes: N,
    existing_nodes: E,
    unschedulable: U,
    cost: CostView,
    timings: Timings,
}

/// A node to buy. How the list of its types is kept depends on where it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewNode<'p, T> {
    name: &'p str,
    node_pool: &'p str,
    requirements: Vec<RequirementView<'p>>,
    instance_types: T,
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

/// A node there is, and what goes there.
#[derive(Serialize)]
pub(crate) struct ExistingNode<'p> {
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
    lower_bound_per_hour: Option<f64>,
    gap: Option<f64>,
    savings_at_most: Option<f64>,
    preferences_cost_per_hour: Option<f64>,
    prices_of: Option<String>,
    prices_are_foreign: bool,
}

impl CostView {
    fn new(plan: &Plan, figures: &Figures) -> Self {
        let (price, bound) = (plan.cost.price, cost::bound(plan));
        Self {
            new_nodes_per_hour: dollars(price),
            lower_bound_per_hour: bound.map(dollars),
            gap: bound.map(|bound| cost::gap(price, bound)),
            savings_at_most: bound.map(|bound| cost::savings_at_most(price, bound)),
            preferences_cost_per_hour: figures.preferences.map(dollars),
            prices_of: figures.prices.names(),
            prices_are_foreign: figures.prices.foreign_to().is_some(),
        }
    }
}

/// How long the steps took, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
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

/// Writes the plan as JSON.
pub(crate) fn write_json(
    problem: &Problem,
    plan: &Plan,
    figures: &Figures,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let lists = TypeLists::new(problem, plan).context("cannot write the plan")?;
    let nodes = || {
        let launches = plan.launches.iter().zip(&lists.of_launch);
        launches.map(|(launch, list)| NewNode::new(problem, launch, &lists.rendered[*list]))
    };
    let view = view(problem, plan, figures, Each(nodes));
    serde_json::to_writer(&mut *out, &view).context("cannot write the plan")?;
    writeln!(out)?;
    Ok(())
}

/// Writes the plan as YAML.
pub(crate) fn write_yaml(
    problem: &Problem,
    plan: &Plan,
    figures: &Figures,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let nodes = || {
        let launches = plan.launches.iter();
        launches.map(|launch| NewNode::new(problem, launch, type_names(problem, &launch.types)))
    };
    let view = view(problem, plan, figures, Each(nodes));
    let text = serde_saphyr::to_string(&view).context("cannot write the plan")?;
    out.write_all(text.as_bytes())?;
    Ok(())
}

fn view<'p, N: Serialize + 'p>(
    problem: &'p Problem,
    plan: &'p Plan,
    figures: &Figures,
    new_nodes: N,
) -> impl Serialize + use<'p, N> {
    let existing_nodes = move || {
        let placements = plan.placements.iter();
        placements.map(move |placement| ExistingNode::new(problem, placement))
    };
    let unschedulable = move || {
        plan.unplaced.iter().map(move |left| Unschedulable {
            pod: &problem.pods[left.pod.0 as usize].name,
            reasons: left.refusals.iter().map(ToString::to_string).collect(),
        })
    };
    PlanView {
        new_nodes,
        existing_nodes: Each(existing_nodes),
        unschedulable: Each(unschedulable),
        cost: CostView::new(plan, figures),
        timings: figures.timings,
    }
}

/// A list whose items are made while it is written.
struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// The lists of types of all nodes, each distinct one rendered once: nodes by the thousand share a
/// few lists of up to 600 names.
struct TypeLists {
    rendered: Vec<Box<RawValue>>,
    /// For each launch, which of them it has.
    of_launch: Vec<usize>,
}

impl TypeLists {
    fn new(problem: &Problem, plan: &Plan) -> serde_json::Result<Self> {
        let mut known: HashMap<&[TypeIx], usize> = HashMap::new();
        let (mut rendered, mut of_launch) = (Vec::new(), Vec::with_capacity(plan.launches.len()));
        let mut last: (&[TypeIx], usize) = (&[], usize::MAX);
        for launch in &plan.launches {
            let types: &[TypeIx] = &launch.types;
            if types != last.0 || last.1 == usize::MAX {
                let list = match known.get(types) {
                    Some(list) => *list,
                    None => {
                        rendered.push(to_raw_value(&type_names(problem, types))?);
                        known.insert(types, rendered.len() - 1);
                        rendered.len() - 1
                    }
                };
                last = (types, list);
            }
            of_launch.push(last.1);
        }
        Ok(Self {
            rendered,
            of_launch,
        })
    }
}

/// The names of some types.
pub(crate) fn type_names<'p>(problem: &'p Problem, types: &[TypeIx]) -> Vec<&'p str> {
    let name = |ix: &TypeIx| problem.types[ix.0 as usize].name.as_ref();
    types.iter().map(name).collect()
}

fn pod_names<'p>(problem: &'p Problem, pods: &[PodIx]) -> Vec<&'p str> {
    let name = |ix: &PodIx| problem.pods[ix.0 as usize].name.as_ref();
    pods.iter().map(name).collect()
}

impl<'p, T> NewNode<'p, T> {
    pub(crate) fn new(problem: &'p Problem, launch: &'p Launch, instance_types: T) -> Self {
        let ty = &problem.types[launch.offering.0.0 as usize];
        let offering = &ty.offerings[launch.offering.1.0 as usize];
        let label = |key: &str| offering.labels.get(key).map_or("", AsRef::as_ref);
        Self {
            name: &launch.name,
            node_pool: &problem.pools[launch.pool.0 as usize].name,
            requirements: launch.requirements.iter().flat_map(views).collect(),
            instance_types,
            launch: LaunchView {
                instance_type: &ty.name,
                zone: label(keys::ZONE),
                capacity_type: label(keys::CAPACITY_TYPE),
                price_per_hour: dollars(launch.price),
            },
            pods: pod_names(problem, &launch.pods),
            requests: launch.requests.rendered().collect(),
        }
    }
}

impl<'p> ExistingNode<'p> {
    pub(crate) fn new(problem: &'p Problem, placement: &'p Placement) -> Self {
        Self {
            node: &problem.nodes[placement.node.0 as usize].name,
            pods: pod_names(problem, &placement.pods),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::PricesOf;

    #[test]
    fn without_a_bound_there_is_no_gap() {
        let mut plan = Plan::default();
        plan.cost.price = NanoDollars::new(5);
        let figures = Figures {
            timings: Timings {
                parse_ms: 0.0,
                solve_ms: 0.0,
                verify_ms: 0.0,
            },
            preferences: None,
            prices: PricesOf::default(),
        };
        let mut out = Vec::new();
        write_json(&Problem::default(), &plan, &figures, &mut out).unwrap();
        let view: serde_json::Value = serde_json::from_slice(&out).unwrap();
        for field in ["lowerBoundPerHour", "gap", "savingsAtMost"] {
            assert!(view["cost"][field].is_null(), "{view}");
        }
    }
}
