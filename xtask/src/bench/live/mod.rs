//! `joiner run` at work, measured from outside: a scale-out on a real control plane (`scale_out`),
//! and a large cluster on the embedded one (`crowd`).
//!
//! Times are of watches that run beside it (`seen`), memory and CPU of the system (`program`),
//! requests of the API server, and the floor of `joiner plan` for the same pods.

mod crowd;
mod program;
mod scale_out;
mod seen;
mod story;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;

use self::program::Joiner;
use super::table::{Section, machine, thousands};
use crate::control_plane::{Found, find_or_build};
use crate::say;

/// How often a story is looked at.
const POLL: Duration = Duration::from_millis(200);
/// Sizes of the scale-out.
const PODS: [usize; 2] = [1_000, 5_000];
/// Nodes and pods of the large cluster.
const CROWD: (usize, usize) = (5_000, 100_000);

/// A catalog to buy from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Catalog {
    /// The generic one of the kwok provider: linear prices.
    Generic,
    /// Types c, m and r of EC2 at their on-demand prices.
    Ec2,
}

impl Catalog {
    const fn title(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Ec2 => "EC2 c, m, r",
        }
    }
}

/// Figures of the incumbent for the same story: Karpenter v1.14.1 with its kwok provider and an
/// outside KWOK.
struct Incumbent {
    catalog: Catalog,
    /// Pods at first, and pods that were asked for.
    pods: (usize, usize),
    /// Until all ran; 0 where no new ones were asked for.
    running_s: u32,
    settled_s: u32,
    nodes: usize,
    price: f64,
    floor: f64,
    peak_mib: u64,
    cpu_secs: f64,
}

const INCUMBENT: [Incumbent; 6] = [
    theirs(
        Catalog::Generic,
        (0, 1_000),
        (20, 89),
        (9, 35.76, 33.38),
        (159, 9.8),
    ),
    theirs(
        Catalog::Generic,
        (1_000, 300),
        (0, 123),
        (10, 16.25, 10.01),
        (140, 5.5),
    ),
    theirs(
        Catalog::Ec2,
        (0, 1_000),
        (23, 137),
        (11, 55.76, 42.29),
        (191, 24.2),
    ),
    theirs(
        Catalog::Ec2,
        (1_000, 300),
        (0, 97),
        (9, 16.26, 12.69),
        (170, 7.0),
    ),
    theirs(
        Catalog::Ec2,
        (0, 5_000),
        (112, 470),
        (33, 294.73, 211.46),
        (477, 162.0),
    ),
    theirs(
        Catalog::Ec2,
        (5_000, 1_500),
        (0, 445),
        (17, 82.49, 63.44),
        (408, 69.0),
    ),
];

const fn theirs(
    catalog: Catalog,
    pods: (usize, usize),
    (running_s, settled_s): (u32, u32),
    (nodes, price, floor): (usize, f64, f64),
    (peak_mib, cpu_secs): (u64, f64),
) -> Incumbent {
    Incumbent {
        catalog,
        pods,
        running_s,
        settled_s,
        nodes,
        price,
        floor,
        peak_mib,
        cpu_secs,
    }
}

/// What is asked for.
pub(super) struct Asked<'a> {
    /// Sizes, if not the usual ones.
    pub(super) pods: &'a [usize],
    /// One catalog, if not all.
    pub(super) catalog: Option<Catalog>,
    /// The large cluster instead of the scale-out.
    pub(super) embedded: bool,
    /// The program to measure, if not one that is built now.
    pub(super) program: Option<&'a Path>,
}

/// Plays what is asked for; returns a section of the page.
pub(super) fn run(root: &Path, asked: &Asked<'_>) -> anyhow::Result<(Section, String)> {
    let programs = match find_or_build(root)? {
        Found::Programs(programs) => programs,
        Found::Nothing(why) => anyhow::bail!(why),
    };
    let joiner = match asked.program {
        Some(path) => Joiner::at(path),
        None => Joiner::build(root)?,
    };
    let logs = root.join("target/bench-live");
    std::fs::create_dir_all(&logs).context("cannot create a folder for logs")?;
    if asked.embedded {
        let pods = asked.pods.first().copied().unwrap_or(CROWD.1);
        let nodes = (pods * CROWD.0 / CROWD.1).max(1);
        let text = crowd::run(&joiner, &programs, &logs, (nodes, pods))?;
        return Ok((Section::Crowd, text));
    }
    let sizes = match asked.pods {
        [] => &PODS,
        sizes => sizes,
    };
    let catalogs = [Catalog::Generic, Catalog::Ec2].into_iter();
    let catalogs = catalogs.filter(|own| asked.catalog.is_none_or(|catalog| catalog == *own));
    let mut lines = Vec::new();
    say(HEADER)?;
    for catalog in catalogs {
        for pods in sizes {
            let phases = scale_out::run(&joiner, &programs, &logs, (catalog, *pods))?;
            let mut before = 0;
            for phase in phases {
                lines.push(phase.render(catalog, before));
                let asked = (catalog, (before, phase.pods));
                let theirs = INCUMBENT.iter();
                let theirs = theirs.filter(|own| (own.catalog, own.pods) == asked);
                lines.extend(theirs.map(Incumbent::render));
                before = phase.pods;
            }
        }
    }
    let table = lines.join("\n");
    say(&table)?;
    Ok((Section::Live, section(&table)))
}

const HEADER: &str = "\
| catalog | pods | program | claims created | pods running | settled | moved | nodes | $/h | over floor | peak MiB | CPU s | requests |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

impl Incumbent {
    fn render(&self) -> String {
        let running = match self.running_s {
            0 => "-".to_owned(),
            secs => format!("{secs} s"),
        };
        format!(
            "| {} | {} to {} | Karpenter | - | {running} | {} s | - | {} | {:.2} | {:.1} % | {} | {:.1} | - |",
            self.catalog.title(),
            thousands(self.pods.0),
            thousands(self.pods.1),
            self.settled_s,
            self.nodes,
            self.price,
            (self.price / self.floor - 1.0) * 100.0,
            self.peak_mib,
            self.cpu_secs,
        )
    }
}

impl scale_out::Phase {
    fn render(&self, catalog: Catalog, before: usize) -> String {
        let secs = |secs: Option<f64>| secs.map_or("-".to_owned(), |secs| format!("{secs:.1} s"));
        format!(
            "| {} | {} to {} | joiner | {} | {} | {:.0} s | {} | {} | {:.2} | {:.1} % | {} | {:.1} | {} |",
            catalog.title(),
            thousands(before),
            thousands(self.pods),
            secs(self.running.map(|own| own.0)),
            secs(self.running.map(|own| own.1)),
            self.settled,
            self.moved,
            self.nodes,
            self.price,
            (self.price / self.floor - 1.0) * 100.0,
            self.usage.peak_kib / 1024,
            self.usage.cpu_secs,
            thousands(self.requests),
        )
    }
}

fn section(table: &str) -> String {
    format!(
        "## Out and in, live\n\n\
         Twenty Deployments of ten shapes, four with zone spread and four for arm64 only, scaled \
         from 0 on a real control plane, left to settle, and scaled to 30 %; one NodePool, on demand, \
         `consolidateAfter: 0s`, budget 100 %. Measured on {} for everything, \
         control plane included, with `cargo xtask bench --live`, one run each. Times count from \
         the change of the Deployments; *settled* is the last change that was followed by a minute \
         without any, *moved* the pods that were evicted on the way. *Over floor* compares with the planner's lower bound for \
         the same pods and catalog. Memory, CPU and requests are those of `joiner run` with the \
         simulated cloud and the simulated kubelets in it, from its start.\n\n\
         Karpenter is v1.14.1 with its kwok provider and an outside KWOK, on 2 cores as well; its \
         5,000 pods shared the machine with other work. Its floor is a linear program's.\n\n\
         {HEADER}\n{table}",
        machine()
    )
}

/// Waits until something holds; looks at it all the time.
fn until(
    what: &str,
    limit: Duration,
    mut holds: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let began = Instant::now();
    while !holds()? {
        anyhow::ensure!(
            began.elapsed() < limit,
            "waited {} s for {what}",
            limit.as_secs()
        );
        std::thread::park_timeout(POLL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_incumbent_has_a_line_like_ours() {
        let columns = |line: &str| line.matches('|').count();
        let phase = scale_out::Phase {
            price: 3.0,
            floor: 2.0,
            ..scale_out::Phase::default()
        };
        let ours = phase.render(Catalog::Generic, 0);
        assert!(ours.contains("| 3.00 | 50.0 % |"), "{ours}");
        for line in INCUMBENT.iter().map(Incumbent::render).chain([ours]) {
            assert_eq!(columns(&line), columns(HEADER) / 2, "{line}");
        }
    }
}
