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
    pods: usize,
    running_s: u32,
    nodes: usize,
    price: f64,
    floor: f64,
    peak_mib: u64,
    cpu_secs: f64,
}

const INCUMBENT: [Incumbent; 3] = [
    Incumbent {
        catalog: Catalog::Generic,
        pods: 1_000,
        running_s: 20,
        nodes: 9,
        price: 35.76,
        floor: 33.38,
        peak_mib: 159,
        cpu_secs: 9.8,
    },
    Incumbent {
        catalog: Catalog::Ec2,
        pods: 1_000,
        running_s: 23,
        nodes: 11,
        price: 55.76,
        floor: 42.29,
        peak_mib: 191,
        cpu_secs: 24.2,
    },
    Incumbent {
        catalog: Catalog::Ec2,
        pods: 5_000,
        running_s: 112,
        nodes: 33,
        price: 294.73,
        floor: 211.46,
        peak_mib: 477,
        cpu_secs: 162.0,
    },
];

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
            let story = scale_out::run(&joiner, &programs, &logs, (catalog, *pods))?;
            lines.push(story.render(catalog, *pods));
            let theirs = INCUMBENT.iter();
            let theirs = theirs.filter(|own| own.catalog == catalog && own.pods == *pods);
            lines.extend(theirs.map(Incumbent::render));
        }
    }
    let table = lines.join("\n");
    say(&table)?;
    Ok((Section::Live, section(&table)))
}

const HEADER: &str = "\
| catalog | pods | program | claims created | pods running | nodes | $/h | over floor | peak MiB | CPU s | requests |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|";

impl Incumbent {
    fn render(&self) -> String {
        format!(
            "| {} | {} | Karpenter | - | {} s | {} | {:.2} | {:.1} % | {} | {:.1} | - |",
            self.catalog.title(),
            thousands(self.pods),
            self.running_s,
            self.nodes,
            self.price,
            (self.price / self.floor - 1.0) * 100.0,
            self.peak_mib,
            self.cpu_secs,
        )
    }
}

impl scale_out::Story {
    fn render(&self, catalog: Catalog, pods: usize) -> String {
        format!(
            "| {} | {} | joiner | {:.1} s | {:.1} s | {} | {:.2} | {:.1} % | {} | {:.1} | {} |",
            catalog.title(),
            thousands(pods),
            self.times.claims_there,
            self.times.pods_up,
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
        "## A live scale-out\n\n\
         Twenty Deployments of ten shapes, four with zone spread and four for arm64 only, scaled \
         from 0 on a real control plane; one NodePool, on demand. Measured on {} for everything, \
         control plane included, with `cargo xtask bench --live`, one run each. Times count from \
         the creation of the Deployments. *Over floor* compares with the planner's lower bound for \
         the same pods and catalog. Memory, CPU and requests are those of `joiner run` with the \
         simulated cloud and the simulated kubelets in it.\n\n\
         Karpenter is v1.14.1 with its kwok provider and an outside KWOK, on 2 cores as well; its \
         nodes, price, memory and CPU are those after it has consolidated, and its 5,000 pods \
         shared the machine with other work. Its floor is a linear program's.\n\n\
         {HEADER}\n{table}\n\n\
         Scaling in is not measured yet: it needs disruption.",
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
        let story = scale_out::Story {
            price: 3.0,
            floor: 2.0,
            ..scale_out::Story::default()
        };
        let ours = story.render(Catalog::Generic, 1_000);
        assert!(ours.contains("| 3.00 | 50.0 % |"), "{ours}");
        for line in INCUMBENT.iter().map(Incumbent::render).chain([ours]) {
            assert_eq!(columns(&line), columns(HEADER) / 2, "{line}");
        }
    }
}
