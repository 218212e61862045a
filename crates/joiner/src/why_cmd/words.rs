//! Times, prices and machines, as people say them.

use std::io::{self, Write};

use jiff::Timestamp;
use joiner_receipts::{Machine, PoolFunnel};

use crate::table::{fits, write_columns};
use crate::terminal::broken;

/// Columns of the title of pools.
const POOL: usize = 6;

/// How long ago, where the time is known, else when.
pub(super) fn when(time: Timestamp, now: Option<Timestamp>) -> String {
    match now {
        Some(now) => format!("{} ago", span(time, now)),
        None => format!("at {}", time.strftime("%Y-%m-%d %H:%M:%S UTC")),
    }
}

/// For how long, where the time is known, else since when.
pub(super) fn since(time: Timestamp, now: Option<Timestamp>) -> String {
    match now {
        Some(now) => format!("for {}", span(time, now)),
        None => format!("since {}", time.strftime("%Y-%m-%d %H:%M:%S UTC")),
    }
}

fn span(from: Timestamp, to: Timestamp) -> String {
    let secs = to.duration_since(from).as_secs().max(0);
    match secs {
        0..120 => format!("{secs}s"),
        120..600 => format!("{}m{:02}s", secs / 60, secs % 60),
        600..7_200 => format!("{}m", secs / 60),
        7_200..172_800 => format!("{}h", secs / 3_600),
        _ => format!("{}d", secs / 86_400),
    }
}

/// Dollars an hour.
pub(super) fn price(dollars: f64) -> String {
    format!("${dollars:.4} an hour")
}

/// `3 pods`.
pub(super) fn count(n: usize, what: &str) -> String {
    crate::table::count(n, what)
}

/// What a machine is: type, how it is paid for, zone, pool, price.
pub(super) fn machine(own: &Machine) -> String {
    let mut text = match own.instance_type.as_str() {
        "" => "a node".to_owned(),
        name => name.to_owned(),
    };
    let place: Vec<&str> = [own.capacity_type.as_str(), own.zone.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    if !place.is_empty() {
        text = format!("{text} ({})", place.join(", "));
    }
    if !own.node_pool.is_empty() {
        text = format!("{text} of NodePool {}", own.node_pool);
    }
    if let Some(dollars) = own.price_per_hour {
        text = format!("{text} at {}", price(dollars));
    }
    text
}

/// `node/x` and `nodeclaim/x`, as they are read.
pub(super) fn target(text: &str) -> String {
    match text.split_once('/') {
        Some(("nodeclaim", name)) => format!("new node {name}"),
        Some(("node", name)) => name.to_owned(),
        _ => text.to_owned(),
    }
}

/// The same in few words, for a narrow terminal.
pub(super) fn machine_briefly(own: &Machine) -> String {
    let short = Machine {
        node_pool: String::new(),
        price_per_hour: None,
        ..own.clone()
    };
    match own.price_per_hour {
        Some(dollars) => format!("{} ${dollars:.4}", machine(&short)),
        None => machine(&short),
    }
}

/// How offerings were ruled out, a line for each pool: only questions that ruled something out. Where
/// that is too wide, each question has a line of its own.
pub(crate) fn funnel(
    pools: &[PoolFunnel],
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let told: Vec<(String, Vec<String>)> = pools.iter().filter_map(steps).collect();
    let title = || vec!["  POOL".to_owned(), "OFFERINGS LEFT".to_owned()];
    let mut rows = vec![title()];
    for (pool, steps) in &told {
        rows.push(vec![pool.clone(), steps.join(" ")]);
    }
    if fits(&rows, columns) {
        return write_columns(&rows, out);
    }
    let widest = told.iter().map(|(pool, _)| pool.chars().count()).max();
    let room = columns.unwrap_or(usize::MAX);
    let room = room.saturating_sub(widest.unwrap_or(0).max(POOL) + 2);
    let mut rows = vec![title()];
    for (pool, steps) in told {
        let lines = steps.iter().flat_map(|step| broken(step, room, 2));
        for (n, line) in lines.enumerate() {
            let pool = if n == 0 { pool.clone() } else { String::new() };
            rows.push(vec![pool, line]);
        }
    }
    write_columns(&rows, out)
}

/// A pool, and what is left of it after each question.
fn steps(pool: &PoolFunnel) -> Option<(String, Vec<String>)> {
    let mut steps = pool.steps.iter();
    let first = steps.next()?;
    let mut last = first.offerings_left;
    let mut told = vec![last.to_string()];
    for step in steps {
        if step.offerings_left != last {
            told.push(format!("→ {} {}", step.offerings_left, step.after));
            last = step.offerings_left;
        }
    }
    Some((format!("  {}", pool.node_pool), told))
}

#[cfg(test)]
mod tests {
    use joiner_receipts::FunnelStep;

    use super::*;

    fn shown(columns: Option<usize>) -> Vec<String> {
        let step = |offerings_left, after: &str| FunnelStep {
            offerings_left,
            after: after.to_owned(),
        };
        let pool = PoolFunnel {
            node_pool: "general".to_owned(),
            steps: vec![
                step(16290, "offerings"),
                step(5820, "for sale and allowed by the pool"),
                step(5820, "with any label"),
                step(0, "with topology.kubernetes.io/zone In [moon-1a]"),
            ],
        };
        let mut out = Vec::new();
        funnel(&[pool], columns, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_funnel_is_a_line_or_as_wide_as_the_terminal() {
        let line = "  general  16290 → 5820 for sale and allowed by the pool → 0 with \
                    topology.kubernetes.io/zone In [moon-1a]";
        assert_eq!(shown(None), ["  POOL     OFFERINGS LEFT", line]);
        assert_eq!(
            shown(Some(50)),
            [
                "  POOL     OFFERINGS LEFT",
                "  general  16290",
                "           → 5820 for sale and allowed by the pool",
                "           → 0 with topology.kubernetes.io/zone In",
                "             [moon-1a]",
            ]
        );
    }

    #[test]
    fn a_machine_has_a_short_description() {
        let own = Machine {
            instance_type: "m5.large".to_owned(),
            capacity_type: "spot".to_owned(),
            zone: "us-east-1a".to_owned(),
            node_pool: "general".to_owned(),
            price_per_hour: Some(0.05),
            ..Machine::default()
        };
        assert_eq!(machine_briefly(&own), "m5.large (spot, us-east-1a) $0.0500");
    }
}
