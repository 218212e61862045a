//! `joiner plan --explain POD`: from all offerings to the one that was chosen, or to none, and then to
//! what would help.

use std::io::Write;

use anyhow::bail;
use joiner_model::{Launch, Placement, Plan, PodIx, Problem, Refusal, keys};
use joiner_receipts::{FunnelStep, Helps, PoolFunnel, in_dollars, near};
use serde::Serialize;

use crate::Outcome;
use crate::plan_json::{ExistingNode, NewNode, dollars, type_names};
use crate::table::count;
use crate::why_cmd::{render_changes, render_funnel};

/// Changes that are shown.
const CHANGES_MAX: usize = 5;

/// What became of one pod, and how offerings were ruled out for it.
pub(crate) struct Explained<'p> {
    problem: &'p Problem,
    plan: &'p Plan,
    pod: PodIx,
    fate: Fate<'p>,
}

/// What became of a pod.
enum Fate<'p> {
    NewNode(&'p Launch),
    ExistingNode(&'p Placement),
    LeftOver(&'p [Refusal]),
    Bound,
}

/// The same as a document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'p> {
    pod: &'p str,
    outcome: &'static str,
    funnel: Vec<PoolFunnel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_node: Option<NewNode<'p, Vec<&'p str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_node: Option<ExistingNode<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<Helps>>,
}

impl<'p> Explained<'p> {
    /// Looks up the pod that users call `name` (`pod` or `namespace/pod`).
    pub(crate) fn new(problem: &'p Problem, plan: &'p Plan, name: &str) -> anyhow::Result<Self> {
        let pod = find(problem, name)?;
        let launch = plan.launches.iter().find(|l| l.pods.contains(&pod));
        let placement = plan.placements.iter().find(|p| p.pods.contains(&pod));
        let left = plan.unplaced.iter().find(|u| u.pod == pod);
        let fate = match (launch, placement, left) {
            (Some(launch), ..) => Fate::NewNode(launch),
            (None, Some(placement), _) => Fate::ExistingNode(placement),
            (None, None, Some(left)) => Fate::LeftOver(&left.refusals),
            (None, None, None) => Fate::Bound,
        };
        Ok(Self {
            problem,
            plan,
            pod,
            fate,
        })
    }

    /// What scripts are told.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.fate {
            Fate::LeftOver(_) => Outcome::PodsLeftOver,
            Fate::NewNode(_) | Fate::ExistingNode(_) | Fate::Bound => Outcome::Done,
        }
    }

    /// The document for programs.
    pub(crate) fn view(&self) -> impl Serialize {
        let funnel = self.funnel();
        let mut view = View {
            pod: &self.problem.pods[self.pod.0 as usize].name,
            outcome: "",
            funnel,
            new_node: None,
            existing_node: None,
            reasons: None,
            changes: None,
        };
        match self.fate {
            Fate::NewNode(launch) => {
                view.outcome = "NewNode";
                let types = type_names(self.problem, &launch.types);
                view.new_node = Some(NewNode::new(self.problem, launch, types));
            }
            Fate::ExistingNode(placement) => {
                view.outcome = "ExistingNode";
                view.existing_node = Some(ExistingNode::new(self.problem, placement));
            }
            Fate::LeftOver(refusals) => {
                view.outcome = "Unschedulable";
                view.reasons = Some(refusals.iter().map(ToString::to_string).collect());
                view.changes = Some(self.changes());
            }
            Fate::Bound => view.outcome = "Bound",
        }
        view
    }

    fn funnel(&self) -> Vec<PoolFunnel> {
        let pools = joiner_solver::explain(self.problem, self.plan, self.pod).pools;
        let step = |own: joiner_solver::FunnelStep| FunnelStep {
            after: own.question,
            offerings_left: own.n_left,
        };
        let pools = pools.into_iter();
        pools
            .map(|(pool, steps)| PoolFunnel {
                node_pool: pool.to_string(),
                steps: steps.into_iter().map(step).collect(),
            })
            .collect()
    }

    /// What would help, cheapest first.
    fn changes(&self) -> Vec<Helps> {
        let all = joiner_solver::remedies(self.problem, self.plan, self.pod);
        let shown = all.into_iter().take(CHANGES_MAX);
        shown
            .map(|own| Helps {
                kind: own.change.kind().to_owned(),
                change: own.change.to_string(),
                place: own.place.to_string(),
                price_per_hour: in_dollars(own.price),
            })
            .collect()
    }

    /// Prints it for people.
    pub(crate) fn render(&self, columns: Option<usize>, out: &mut dyn Write) -> anyhow::Result<()> {
        writeln!(out, "pod {}", self.problem.pods[self.pod.0 as usize].name)?;
        render_funnel(&self.funnel(), columns, out)?;
        match self.fate {
            Fate::NewNode(launch) => self.render_launch(launch, out)?,
            Fate::ExistingNode(placement) => {
                let node = &self.problem.nodes[placement.node.0 as usize].name;
                writeln!(
                    out,
                    "goes to existing node {node}, which costs nothing more"
                )?;
            }
            Fate::LeftOver(refusals) => {
                writeln!(out, "is left over:")?;
                for refusal in refusals {
                    writeln!(out, "  - {refusal}")?;
                }
                if !refusals
                    .iter()
                    .any(|own| matches!(own, Refusal::Ignored(_)))
                {
                    render_changes(&self.changes(), out)?;
                }
            }
            Fate::Bound => writeln!(out, "is bound already; nothing to decide")?,
        }
        Ok(())
    }

    fn render_launch(&self, launch: &Launch, out: &mut dyn Write) -> anyhow::Result<()> {
        let ty = &self.problem.types[launch.offering.0.0 as usize];
        let offering = &ty.offerings[launch.offering.1.0 as usize];
        let label = |key: &str| offering.labels.get(key).map_or("-", AsRef::as_ref);
        writeln!(
            out,
            "goes to new node {}: {} in {} ({}) at ${:.4} an hour, with {}; {} would do too",
            launch.name,
            ty.name,
            label(keys::ZONE),
            label(keys::CAPACITY_TYPE),
            dollars(launch.price),
            count(launch.pods.len() - 1, "other pod"),
            count(launch.types.len() - 1, "more type")
        )?;
        if let Some(next) = launch.types.get(1) {
            let next = &self.problem.types[next.0 as usize].name;
            writeln!(out, "next best type: {next}")?;
        }
        for requirement in &launch.requirements {
            writeln!(out, "the node is kept to {requirement}")?;
        }
        Ok(())
    }
}

fn find(problem: &Problem, name: &str) -> anyhow::Result<PodIx> {
    let full = if name.contains('/') {
        name.to_owned()
    } else {
        format!("default/{name}")
    };
    let position = |test: &dyn Fn(&str) -> bool| problem.pods.iter().position(|p| test(&p.name));
    let ix = position(&|n| n == full).or_else(|| position(&|n| n.rsplit('/').next() == Some(name)));
    match ix.and_then(|ix| u32::try_from(ix).ok()) {
        Some(ix) => Ok(PodIx(ix)),
        None => {
            let all = problem.pods.iter().map(|own| own.name.to_string());
            let close = near(name, &all.collect());
            let close = match close.as_slice() {
                [] => String::new(),
                close => format!("; did you mean {}?", close.join(", ")),
            };
            bail!("there is no pod {name:?} in the input; name it as namespace/pod{close}")
        }
    }
}
