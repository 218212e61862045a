//! Times, prices and machines, as people say them.

use std::io::{self, Write};

use jiff::Timestamp;
use joiner_runtime::receipt::{Machine, PoolFunnel};

use crate::table::write_columns;

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

/// How offerings were ruled out, a line for each pool: only questions that ruled something out.
pub(crate) fn funnel(pools: &[PoolFunnel], out: &mut dyn Write) -> io::Result<()> {
    let mut rows = vec![vec!["  POOL".to_owned(), "OFFERINGS LEFT".to_owned()]];
    for pool in pools {
        let mut steps = pool.steps.iter();
        let Some(first) = steps.next() else { continue };
        let mut line = first.offerings_left.to_string();
        let mut last = first.offerings_left;
        for step in steps {
            if step.offerings_left != last {
                line = format!("{line} → {} {}", step.offerings_left, step.after);
                last = step.offerings_left;
            }
        }
        rows.push(vec![format!("  {}", pool.node_pool), line]);
    }
    write_columns(&rows, out)
}
