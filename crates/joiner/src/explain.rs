//! `joiner plan --explain POD`: from all offerings to the one that was chosen.

use std::io::Write;

use anyhow::bail;
use joiner_model::{Plan, PodIx, Problem, keys};

use crate::Outcome;
use crate::plan_json::dollars;
use crate::plan_table::{count, write_columns};

/// Prints the funnel for the pod that users call `name` (`pod` or `namespace/pod`).
pub(crate) fn render(
    problem: &Problem,
    plan: &Plan,
    name: &str,
    out: &mut dyn Write,
) -> anyhow::Result<Outcome> {
    let pod = find(problem, name)?;
    writeln!(out, "pod {}", problem.pods[pod.0 as usize].name)?;
    let mut rows = vec![
        ["POOL", "OFFERINGS LEFT", "AFTER"]
            .map(String::from)
            .to_vec(),
    ];
    for (pool, steps) in joiner_solver::explain(problem, pod).pools {
        for step in steps {
            rows.push(vec![
                pool.to_string(),
                step.n_left.to_string(),
                step.question,
            ]);
        }
    }
    write_columns(&rows, out)?;
    if let Some(launch) = plan.launches.iter().find(|l| l.pods.contains(&pod)) {
        let ty = &problem.types[launch.offering.0.0 as usize];
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
            writeln!(
                out,
                "next best type: {}",
                problem.types[next.0 as usize].name
            )?;
        }
        for requirement in &launch.requirements {
            writeln!(out, "the node is kept to {requirement}")?;
        }
    } else if let Some(placement) = plan.placements.iter().find(|p| p.pods.contains(&pod)) {
        let node = &problem.nodes[placement.node.0 as usize].name;
        writeln!(
            out,
            "goes to existing node {node}, which costs nothing more"
        )?;
    } else if let Some(left) = plan.unplaced.iter().find(|u| u.pod == pod) {
        writeln!(out, "is left over:")?;
        for refusal in &left.refusals {
            writeln!(out, "  - {refusal}")?;
        }
        return Ok(Outcome::PodsLeftOver);
    } else {
        writeln!(out, "is bound already; nothing to decide")?;
    }
    Ok(Outcome::Done)
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
