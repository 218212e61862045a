//! The plan as a person reads it: nodes with fill bars, pods by workload, totals, reasons.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use joiner_model::{Launch, Name, Plan, PodIx, Problem, ResourceName, keys};

use crate::plan_json::{Timings, dollars, gap};
use crate::table::{count, write_columns};

/// Most rows of a kind that are shown; the rest is counted.
const ROWS_MAX: usize = 60;
/// Hours in an average month, as clouds count them.
const HOURS_A_MONTH: f64 = 730.0;

/// Prints the plan.
pub(crate) fn render(
    problem: &Problem,
    plan: &Plan,
    timings: Timings,
    out: &mut dyn Write,
) -> io::Result<()> {
    render_launches(problem, plan, out)?;
    render_placements(problem, plan, out)?;
    render_unplaced(problem, plan, out)?;
    render_totals(problem, plan, timings, out)
}

fn render_launches(problem: &Problem, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    if plan.launches.is_empty() {
        let nothing = plan.placements.is_empty() && plan.unplaced.is_empty();
        let text = if nothing {
            "Nothing to place: no pod is pending."
        } else {
            "No new nodes."
        };
        return writeln!(out, "{text}");
    }
    let mut groups: Vec<(&Launch, String, usize)> = Vec::new();
    for launch in &plan.launches {
        let pods = by_workload(problem, &launch.pods);
        match groups.last_mut() {
            Some((like, same, n)) if *same == pods && alike(like, launch) => *n += 1,
            _ => groups.push((launch, pods, 1)),
        }
    }
    let mut rows = vec![
        [
            "NEW NODE", "TYPE", "ZONE", "CAPACITY", "$/H", "CPU", "MEMORY", "OR", "PODS",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for (launch, pods, n) in groups.iter().take(ROWS_MAX) {
        rows.push(launch_row(problem, launch, pods, *n));
    }
    write_columns(&rows, out)?;
    if groups.len() > ROWS_MAX {
        writeln!(
            out,
            "… and {} more rows; -o json shows all",
            groups.len() - ROWS_MAX
        )?;
    }
    Ok(())
}

fn alike(a: &Launch, b: &Launch) -> bool {
    a.pool == b.pool && a.offering == b.offering && a.requests == b.requests
}

fn launch_row(problem: &Problem, launch: &Launch, pods: &str, n: usize) -> Vec<String> {
    let ty = &problem.types[launch.offering.0.0 as usize];
    let offering = &ty.offerings[launch.offering.1.0 as usize];
    let label = |key: &str| {
        offering
            .labels
            .get(key)
            .map_or("-", AsRef::as_ref)
            .to_owned()
    };
    let room = ty.allocatable().unwrap_or_default();
    let fill = |name: ResourceName| bar(launch.requests.get(&name), room.get(&name));
    let name = if n > 1 {
        format!("{} ×{n}", launch.name)
    } else {
        launch.name.to_string()
    };
    vec![
        name,
        ty.name.to_string(),
        label(keys::ZONE),
        label(keys::CAPACITY_TYPE),
        format!("{:.4}", dollars(launch.price)),
        fill(ResourceName::Cpu),
        fill(ResourceName::Memory),
        alternatives(launch.types.len()),
        pods.to_owned(),
    ]
}

fn render_placements(problem: &Problem, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    if plan.placements.is_empty() {
        return Ok(());
    }
    let mut rows = vec![vec!["EXISTING NODE".to_owned(), "PODS".to_owned()]];
    for placement in plan.placements.iter().take(ROWS_MAX) {
        let node = &problem.nodes[placement.node.0 as usize];
        rows.push(vec![
            node.name.to_string(),
            by_workload(problem, &placement.pods),
        ]);
    }
    writeln!(out)?;
    write_columns(&rows, out)?;
    if plan.placements.len() > ROWS_MAX {
        writeln!(out, "… and {} more nodes", plan.placements.len() - ROWS_MAX)?;
    }
    Ok(())
}

fn render_unplaced(problem: &Problem, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let mut by_reasons: BTreeMap<Vec<String>, Vec<PodIx>> = BTreeMap::new();
    for left in &plan.unplaced {
        let reasons = left.refusals.iter().map(ToString::to_string).collect();
        by_reasons.entry(reasons).or_default().push(left.pod);
    }
    for (reasons, pods) in by_reasons.iter().take(ROWS_MAX) {
        writeln!(out, "\nNo place for {}:", by_workload(problem, pods))?;
        for reason in reasons {
            writeln!(out, "  - {reason}")?;
        }
    }
    if by_reasons.len() > ROWS_MAX {
        writeln!(
            out,
            "\n… and {} more groups of pods",
            by_reasons.len() - ROWS_MAX
        )?;
    }
    Ok(())
}

/// True when something besides hard rules may have made the plan dearer.
fn has_wishes(problem: &Problem) -> bool {
    let first = problem.pools.first().map(|p| p.weight);
    problem
        .pools
        .iter()
        .any(|p| p.limits.is_some() || Some(p.weight) != first)
        || problem.shapes.iter().any(|s| {
            !s.preferred_node_terms.is_empty()
                || !s.preferred_affinity.is_empty()
                || !s.preferred_anti_affinity.is_empty()
                || s.spreads.iter().any(|spread| !spread.hard)
        })
}

fn render_totals(
    problem: &Problem,
    plan: &Plan,
    timings: Timings,
    out: &mut dyn Write,
) -> io::Result<()> {
    let n_new: usize = plan.launches.iter().map(|l| l.pods.len()).sum();
    let n_existing: usize = plan.placements.iter().map(|p| p.pods.len()).sum();
    let price = dollars(plan.cost.price);
    writeln!(
        out,
        "\n{} on {}, {n_existing} on nodes there are, {} left over.",
        count(n_new, "pod"),
        count(plan.launches.len(), "new node"),
        plan.unplaced.len()
    )?;
    writeln!(
        out,
        "Price ${price:.4} an hour, ${:.2} a month.",
        price * HOURS_A_MONTH
    )?;
    if plan.cost.bound.get() > 0 {
        let percent = gap(plan.cost.price, plan.cost.bound) * 100.0;
        let gain = match percent {
            p if p <= 0.0 => "nothing to gain".to_owned(),
            p if p < 0.1 => "less than 0.1 % to gain".to_owned(),
            p => format!("at most {p:.1} % to gain"),
        };
        let aside = if has_wishes(problem) {
            " (weights, limits and preferences not counted)"
        } else {
            ""
        };
        writeln!(
            out,
            "No legal plan for these pods costs less than ${:.4}: {gain}{aside}.",
            dollars(plan.cost.bound),
        )?;
    }
    writeln!(
        out,
        "Read in {:.1} ms, solved in {:.1} ms, checked in {:.1} ms.",
        timings.parse_ms, timings.solve_ms, timings.verify_ms
    )
}

/// How many other types would do; the list of a node ends at 600.
fn alternatives(n_types: usize) -> String {
    match n_types {
        0 | 1 => "-".to_owned(),
        600.. => "599+ types".to_owned(),
        n => count(n - 1, "type"),
    }
}

/// A bar of ten and a percentage.
fn bar(used: u64, room: u64) -> String {
    let percent = u128::from(used) * 100 / u128::from(room.max(1));
    let full = usize::try_from((percent + 5) / 10).unwrap_or(10).min(10);
    format!(
        "{}{} {percent:>3}%",
        "█".repeat(full),
        "░".repeat(10 - full)
    )
}

/// `web ×3, api, jobs/batch ×12`: pods by the workload their names speak of.
fn by_workload(problem: &Problem, pods: &[PodIx]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods {
        let name: &Name = &problem.pods[pod.0 as usize].name;
        *counts.entry(workload(name)).or_default() += 1;
    }
    let mut text = String::new();
    let n_shown = if counts.len() > 6 { 5 } else { 6 };
    for (i, (name, n)) in counts.iter().take(n_shown).enumerate() {
        let separator = if i > 0 { ", " } else { "" };
        let times = if *n > 1 {
            format!(" ×{n}")
        } else {
            String::new()
        };
        let _ = write!(text, "{separator}{name}{times}");
    }
    if counts.len() > n_shown {
        let rest: usize = counts.values().skip(n_shown).sum();
        let _ = write!(
            text,
            ", {rest} more of {} workloads",
            counts.len() - n_shown
        );
    }
    text
}

/// The workload in a pod's name: without the ordinal or the random ends, and without `default/`.
fn workload(name: &str) -> &str {
    let name = name.strip_prefix("default/").unwrap_or(name);
    let Some((stem, end)) = name.rsplit_once('-') else {
        return name;
    };
    if !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit()) {
        return stem;
    }
    let random = |s: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&s.len())
            && s.bytes()
                .all(|b| b.is_ascii_digit() || (b.is_ascii_lowercase() && !b"aeiou".contains(&b)))
    };
    if !random(end, 5..=5) {
        return name;
    }
    match stem.rsplit_once('-') {
        Some((owner, hash)) if random(hash, 8..=10) => owner,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_read_from_names() {
        for (name, expected) in [
            ("default/web-0", "web"),
            ("shop/api-7d4b9c6f5d-x2k4z", "shop/api"),
            ("shop/batch-x2k4z", "shop/batch"),
            ("default/single", "single"),
            ("default/my-app", "my-app"),
        ] {
            assert_eq!(workload(name), expected);
        }
    }

    #[test]
    fn bars_are_ten_wide() {
        assert_eq!(bar(50, 100), "█████░░░░░  50%");
        assert_eq!(bar(200, 100), "██████████ 200%");
        assert_eq!(bar(0, 0), "░░░░░░░░░░   0%");
    }
}
