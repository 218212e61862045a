//! The figures, from what the objects said.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::scene::Picture;
use super::story::Told;
use crate::table::{count, fits, write_fitting};
use crate::terminal::broken;

/// Letters that are left of what happened in a terminal that is very narrow.
const BRIEF_MIN: usize = 10;

/// Prints a line for every chapter, and what it comes to.
pub(super) fn print(
    told: &[Told],
    last: &Picture,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out)?;
    let full = rows(told, |own| &own.what);
    let short = rows(told, |own| &own.brief);
    let rows = match fits(&full, columns) {
        true => full,
        false => short,
    };
    write_fitting(&rows, columns, &[BRIEF_MIN, 4, 15, 20], out)?;
    let nodes = told.iter().map(|own| own.picture.nodes.len());
    let most = nodes.max().unwrap_or(0);
    // A pod that is seen in several chapters waited once.
    let waits: BTreeMap<&str, f64> = told
        .iter()
        .flat_map(|own| own.picture.waits.iter())
        .map(|(pod, secs)| (pod.as_str(), *secs))
        .collect();
    let longest = waits.values().copied().fold(0.0, f64::max);
    writeln!(out)?;
    let text = format!(
        "{} ran on at most {}; the longest that one waited for its node was {longest:.0} s.",
        count(waits.len(), "pod"),
        count(most, "node"),
    );
    let n_pods = last.n_running + last.n_waiting;
    let are = if n_pods == 1 { "is" } else { "are" };
    let now = format!(
        "Now there {are} {} and {} for ${:.3} an hour.",
        count(n_pods, "pod"),
        count(last.nodes.len(), "node"),
        last.price(),
    );
    for line in [text, now] {
        for part in broken(&line, columns.unwrap_or(usize::MAX), 0) {
            writeln!(out, "{part}")?;
        }
    }
    out.flush()
}

/// A row for each chapter, with titles; numbers end at the same place.
fn rows(told: &[Told], what: impl Fn(&Told) -> &str) -> Vec<Vec<String>> {
    let cells = |own: &Told| {
        [
            what(own).to_owned(),
            format!("{} s", own.took.as_secs()),
            prices(own),
            own.picture.types(),
        ]
    };
    let titles = ["what happened", "took", "price an hour", "nodes"].map(str::to_owned);
    let mut rows: Vec<[String; 4]> = std::iter::once(titles)
        .chain(told.iter().map(cells))
        .collect();
    for c in [1, 2] {
        let widest = rows.iter().map(|row| row[c].chars().count()).max();
        let widest = widest.unwrap_or(0);
        for row in &mut rows {
            row[c] = format!("{:>widest$}", row[c]);
        }
    }
    rows.into_iter().map(Vec::from).collect()
}

/// `$0.192 → $0.096`.
pub(super) fn prices(own: &Told) -> String {
    format!("${:.3} → ${:.3}", own.price_before, own.picture.price())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::scene::NodeRow;
    use super::*;

    fn told(what: &str, brief: &str, types: &[&str]) -> Told {
        let node = |name: &&str| NodeRow {
            instance_type: (*name).to_owned(),
            capacity_type: "spot".to_owned(),
            price: 0.034,
            ..NodeRow::default()
        };
        let picture = Picture {
            nodes: types.iter().map(node).collect(),
            ..Picture::default()
        };
        Told {
            what: what.to_owned(),
            brief: brief.to_owned(),
            price_before: 0.192,
            took: Duration::from_secs(37),
            picture,
        }
    }

    fn printed(columns: Option<usize>) -> String {
        let what = "EC2 takes spot node ip-10-91-199-17.ec2.internal back in two minutes";
        let told = [
            told(what, "a spot node is taken", &["c5.large", "r5.large"]),
            told(
                "inflate goes from 5 to 1 replica",
                "5 → 1 replica",
                &["c5.large"],
            ),
        ];
        let last = Picture {
            n_running: 1,
            ..told[1].picture.clone()
        };
        let mut out = Vec::new();
        print(&told, &last, columns, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_summary_fits_the_terminal_and_counts_in_english() {
        let narrow = printed(Some(80));
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 80),
            "{narrow}"
        );
        assert!(
            narrow.contains(
                "\na spot node is taken  37 s  $0.192 → $0.068  1 c5.large spot, 1 r5.large spot\n"
            ),
            "{narrow}"
        );
        let wide = printed(None);
        assert!(
            wide.contains("ip-10-91-199-17.ec2.internal back in two minutes  37 s"),
            "{wide}"
        );
        for text in [narrow, wide] {
            assert!(
                text.contains("Now there is 1 pod and 1 node for $0.034"),
                "{text}"
            );
        }
    }
}
