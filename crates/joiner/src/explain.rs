//! `joiner plan --explain POD`: from all offerings to the one that was chosen.

use std::io::Write;

use anyhow::bail;
use joiner_model::{Launch, Placement, Plan, PodIx, Problem, Refusal, keys};
use serde::Serialize;

use crate::Outcome;
use crate::plan_json::{ExistingNode, NewNode, dollars, type_names};
use crate::plan_table::{count, write_columns};

/// What became of one pod, and how offerings were ruled out for it.
pub(crate) struct Explained<'p> {
    problem: &'p Problem,
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
    funnel: Vec<Funnel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_node: Option<NewNode<'p, Vec<&'p str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_node: Option<ExistingNode<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Funnel {
    node_pool: String,
    steps: Vec<Step>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    after: String,
    offerings_left: usize,
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
        Ok(Self { problem, pod, fate })
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
            }
            Fate::Bound => view.outcome = "Bound",
        }
        view
    }

    fn funnel(&self) -> Vec<Funnel> {
        let pools = joiner_solver::explain(self.problem, self.pod).pools;
        pools
            .into_iter()
            .map(|(pool, steps)| Funnel {
                node_pool: pool.to_string(),
                steps: steps
                    .into_iter()
                    .map(|step| Step {
                        after: step.question,
                        offerings_left: step.n_left,
                    })
                    .collect(),
            })
            .collect()
    }

    /// Prints it for people.
    pub(crate) fn render(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        writeln!(out, "pod {}", self.problem.pods[self.pod.0 as usize].name)?;
        let header = ["POOL", "OFFERINGS LEFT", "AFTER"];
        let mut rows = vec![header.map(String::from).to_vec()];
        for Funnel { node_pool, steps } in self.funnel() {
            for step in steps {
                rows.push(vec![
                    node_pool.clone(),
                    step.offerings_left.to_string(),
                    step.after,
                ]);
            }
        }
        write_columns(&rows, out)?;
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
        None => bail!("there is no pod {name:?} in the input; name it as namespace/pod"),
    }
}
