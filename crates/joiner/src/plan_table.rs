//! The plan as a person reads it: nodes with fill bars, pods by workload, totals, reasons.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use joiner_model::{Launch, Name, NanoDollars, Plan, PodIx, Problem, ResourceName, keys};

use crate::cost::{self, Figures};
use crate::plan_json::dollars;
use crate::table::{count, fits, write_columns, write_fitting};

/// Most rows of a kind that are shown; the rest is counted.
const ROWS_MAX: usize = 60;
/// Letters of a name that is cut to fit a terminal.
const NAME_MIN: usize = 8;
/// Hours in an average month, as clouds count them.
const HOURS_A_MONTH: f64 = 730.0;

/// Prints the plan.
pub(crate) fn render(
    problem: &Problem,
    plan: &Plan,
    figures: &Figures,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    render_launches(problem, plan, columns, out)?;
    render_placements(problem, plan, columns, out)?;
    render_unplaced(problem, plan, out)?;
    render_totals(problem, plan, figures, out)
}

fn render_launches(
    problem: &Problem,
    plan: &Plan,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
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
    let rows_in = |form: Form| {
        let shown = groups.iter().take(ROWS_MAX);
        let rows = shown.map(|(launch, pods, n)| launch_row(problem, launch, (pods, *n), form));
        std::iter::once(form.titles())
            .chain(rows)
            .collect::<Vec<_>>()
    };
    let full = rows_in(Form::Full);
    match fits(&full, columns) {
        true => write_columns(&full, out)?,
        false => write_fitting(&rows_in(Form::Short), columns, &Form::LEAST, out)?,
    }
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

/// How much a row says.
#[derive(Clone, Copy)]
enum Form {
    /// All.
    Full,
    /// What fits a narrow terminal.
    Short,
}

impl Form {
    /// How short the columns of the short form may become: names and pods, and nothing else.
    const LEAST: [usize; 8] = [
        NAME_MIN,
        usize::MAX,
        usize::MAX,
        usize::MAX,
        usize::MAX,
        usize::MAX,
        usize::MAX,
        NAME_MIN,
    ];

    fn titles(self) -> Vec<String> {
        let titles: &[&str] = match self {
            Self::Full => &[
                "NEW NODE", "TYPE", "ZONE", "CAPACITY", "$/H", "CPU", "MEMORY", "OR", "PODS",
            ],
            Self::Short => &[
                "NEW NODE", "TYPE", "ZONE", "CAPACITY", "$/H", "CPU", "MEM", "PODS",
            ],
        };
        titles.iter().map(|title| (*title).to_owned()).collect()
    }
}

fn launch_row(
    problem: &Problem,
    launch: &Launch,
    (pods, n): (&str, usize),
    form: Form,
) -> Vec<String> {
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
    let fill = |name: ResourceName| {
        let (used, room) = (launch.requests.get(&name), room.get(&name));
        match form {
            Form::Full => bar(used, room),
            Form::Short => format!("{}%", percentage(used, room)),
        }
    };
    let name = if n > 1 {
        format!("{} ×{n}", launch.name)
    } else {
        launch.name.to_string()
    };
    let mut row = vec![
        name,
        ty.name.to_string(),
        label(keys::ZONE),
        label(keys::CAPACITY_TYPE),
        format!("{:.4}", dollars(launch.price)),
        fill(ResourceName::Cpu),
        fill(ResourceName::Memory),
    ];
    if let Form::Full = form {
        row.push(alternatives(launch.types.len()));
    }
    row.push(pods.to_owned());
    row
}

fn render_placements(
    problem: &Problem,
    plan: &Plan,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
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
    write_fitting(&rows, columns, &[NAME_MIN, NAME_MIN], out)?;
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
        || problem.shapes.iter().any(cost::prefers)
}

fn render_totals(
    problem: &Problem,
    plan: &Plan,
    figures: &Figures,
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
        "Price ${price:.4} an hour, ${:.2} a month.{}",
        price * HOURS_A_MONTH,
        figures.prices.aside()
    )?;
    render_proof(problem, plan, figures, out)?;
    let timings = figures.timings;
    writeln!(
        out,
        "Read in {:.1} ms, solved in {:.1} ms, checked in {:.1} ms.",
        timings.parse_ms, timings.solve_ms, timings.verify_ms
    )
}

/// What preferences cost, and how much another plan for the same pods could save. Nothing is said
/// where nothing is known.
fn render_proof(
    problem: &Problem,
    plan: &Plan,
    figures: &Figures,
    out: &mut dyn Write,
) -> io::Result<()> {
    let preferences = figures.preferences.filter(|cost| *cost > NanoDollars::ZERO);
    let without = NanoDollars::new(plan.cost.price.get() - preferences.map_or(0, NanoDollars::get));
    if let Some(cost) = preferences {
        writeln!(
            out,
            "Preferences cost ${:.4} an hour of this; planned without them, the same pods cost \
             ${:.4}.",
            dollars(cost),
            dollars(without)
        )?;
    }
    let Some(bound) = cost::bound(plan).filter(|bound| *bound > NanoDollars::ZERO) else {
        return Ok(());
    };
    let pods = match plan.unplaced.is_empty() {
        true => "these pods",
        false => "the pods placed here",
    };
    let gain = cost::gain(without, bound);
    let aside = match preferences {
        Some(_) => " without preferences",
        None if has_wishes(problem) => " (weights, limits and preferences not counted)",
        None => "",
    };
    let prices = figures.prices.names().unwrap_or_default();
    let (at, but) = match figures.prices.foreign_to() {
        None => ("No".to_owned(), String::new()),
        Some(asked) => (
            format!("At the prices of {prices} no"),
            format!(" Of the prices of {asked} this proves nothing."),
        ),
    };
    writeln!(
        out,
        "{at} legal plan for {pods} costs less than ${:.4}: {gain}{aside}.{but}",
        dollars(bound),
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

fn percentage(used: u64, room: u64) -> u128 {
    u128::from(used) * 100 / u128::from(room.max(1))
}

/// A bar of ten and a percentage.
fn bar(used: u64, room: u64) -> String {
    let percent = percentage(used, room);
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
    use std::path::PathBuf;

    use joiner_state::Objects;

    use super::*;
    use crate::cost::PricesOf;
    use crate::plan_catalog::Market;
    use crate::plan_json::Timings;
    use crate::sources::Reader;
    use crate::terminal;

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

    /// The table for an example.
    fn shown(example: &str, columns: Option<usize>) -> String {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
        let mut reader = Reader::unbounded();
        let market = Market::read("us-east-1", None, None, &mut reader).unwrap();
        let paths = [PathBuf::from(format!("{root}{example}"))];
        let objects = Objects::read(reader.read(&paths).unwrap()).unwrap();
        let catalog = market.catalog(&objects).unwrap().catalog;
        let problem = objects.problem(catalog).unwrap().problem;
        let plan = joiner_solver::solve(&problem);
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
        terminal::print(&mut out, columns, |out| {
            Ok(render(&problem, &plan, &figures, columns, out)?)
        })
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_fit_a_narrow_terminal() {
        for example in ["web", "left-over", "existing-nodes", "spread-and-affinity"] {
            let narrow = shown(example, Some(80));
            let longest = narrow.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{narrow}");
            assert!(narrow.starts_with("NEW NODE"), "{narrow}");
            assert!(!narrow.contains('█'), "{narrow}");
            let wide = shown(example, None);
            assert!(wide.contains('█') && wide.contains(" OR "), "{wide}");
            assert_eq!(shown(example, Some(200)), wide);
        }
    }

    #[test]
    fn bars_are_ten_wide() {
        assert_eq!(bar(50, 100), "█████░░░░░  50%");
        assert_eq!(bar(200, 100), "██████████ 200%");
        assert_eq!(bar(0, 0), "░░░░░░░░░░   0%");
    }
}
