//! Price and speed on seeded problems, as a table.
//!
//! Every problem is written to a folder and measured in a process of its own (`case`), so that one
//! does not warm up or fatten another; `table` sums up. How time grows is sampled apart (`growth`).
//! Figures are of the release profile: a debug build runs itself again as one.

mod answers;
mod case;
mod growth;
mod live;
mod passes;
mod sandbox;
mod small;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::Args;
use joiner_testkit::{Family, Growth, generate};

use crate::say;
use crate::test::cargo;
use answers::Answers;
pub(crate) use case::{CaseArgs, run_case};
use table::{Row, Section};

/// Sizes of every family but `bench`.
const SIZES: [usize; 2] = [100, 1000];
const PAGE: &str = "docs/benchmarks.md";

/// Measures price and speed on seeded problems; prints a table.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Only these families.
    #[arg(long = "family", value_name = "FAMILY", value_delimiter = ',')]
    families: Vec<Family>,
    /// These numbers of pods, instead of the usual ones.
    #[arg(long, value_name = "PODS", value_delimiter = ',')]
    sizes: Vec<usize>,
    /// So many problems of each family and size, with seeds from 1.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Solves each problem so often, and takes the best time.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Takes problems from the folders in here, named FAMILY-SEED-SIZE, with objects.json and
    /// instance-types.json, instead of making them.
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Compares with these answers: columns case, placed, price_per_hour and others.
    #[arg(long, value_name = "FILE.csv")]
    answers: Option<PathBuf>,
    /// One line for each problem, not for each family and size.
    #[arg(long)]
    each: bool,
    /// Only how time grows with pods, types and nodes; else it comes last, and only when neither
    /// families nor sizes nor cases are chosen.
    #[arg(long, conflicts_with_all = ["families", "sizes", "cases"])]
    growth: bool,
    /// Only the sandbox under load: memory, creations, watches, lists.
    #[arg(long, conflicts_with_all = ["families", "sizes", "cases", "growth"])]
    sandbox: bool,
    /// Only random small clusters: CPU time, and the ten slowest of so many.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = small::COUNT,
        conflicts_with_all = ["families", "sizes", "cases", "growth", "sandbox"])]
    small: Option<u64>,
    /// With --small: writes one line for each cluster to this file.
    #[arg(long, value_name = "FILE.csv", requires = "small")]
    out: Option<PathBuf>,
    /// Only the time of a look for nodes to give back.
    #[arg(long, conflicts_with_all = ["families", "sizes", "cases", "growth", "sandbox"])]
    passes: bool,
    /// Only `joiner run` at work: out and in on a real control plane.
    #[arg(long, conflicts_with_all = ["families", "sizes", "cases", "growth", "sandbox", "passes"])]
    live: bool,
    /// With --live: these numbers of pods, instead of the usual ones.
    #[arg(long, value_name = "PODS", value_delimiter = ',', requires = "live")]
    pods: Vec<usize>,
    /// With --live: only this catalog.
    #[arg(long, requires = "live")]
    catalog: Option<live::Catalog>,
    /// With --live: a large cluster on the embedded control plane instead.
    #[arg(long, requires = "live")]
    embedded: bool,
    /// With --live: measures this program instead of building one, to compare versions.
    #[arg(long, value_name = "FILE", requires = "live")]
    program: Option<PathBuf>,
    /// Samples less of how time grows.
    #[arg(long)]
    quick: bool,
    /// Also puts the tables into their sections of docs/benchmarks.md.
    #[arg(long)]
    write: bool,
}

/// A problem in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    family: Family,
    size: usize,
    seed: u64,
    folder: PathBuf,
}

impl Problem {
    /// What the name of a folder says; `None` for a folder that is something else.
    fn parse(folder: PathBuf) -> Option<Self> {
        let name = folder.file_name()?.to_str()?;
        let mut parts = name.splitn(3, '-');
        Some(Self {
            family: parts.next()?.parse().ok()?,
            seed: parts.next()?.parse().ok()?,
            size: parts.next()?.parse().ok()?,
            folder,
        })
    }

    fn name(&self) -> String {
        format!("{}-{}-{}", self.family, self.seed, self.size)
    }
}

/// Runs the chore.
pub(crate) fn run(root: &Path, args: &BenchArgs) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return again_in_release(root);
    }
    if args.sandbox {
        let section = sandbox::run(root)?;
        return match args.write {
            true => write(root, Section::Sandbox, &section),
            false => Ok(()),
        };
    }
    if let Some(count) = args.small {
        let section = small::run(count, args.out.as_ref())?;
        return match args.write {
            true => write(root, Section::Small, &section),
            false => Ok(()),
        };
    }
    if args.passes {
        let section = passes::run(root)?;
        return match args.write {
            true => write(root, Section::Passes, &section),
            false => Ok(()),
        };
    }
    if args.live {
        let asked = live::Asked {
            pods: &args.pods,
            catalog: args.catalog,
            embedded: args.embedded,
            program: args.program.as_deref(),
        };
        let (section, text) = live::run(root, &asked)?;
        return match args.write {
            true => write(root, section, &text),
            false => say(&text),
        };
    }
    if !args.growth {
        run_problems(root, args)?;
    }
    let all = args.families.is_empty() && args.sizes.is_empty() && args.cases.is_none();
    if all {
        let report = growth::run(root, args.quick)?;
        if args.write {
            write(root, Section::Growth, &report.section)?;
        }
        if let Some(first) = report.violations.first() {
            let count = report.violations.len();
            anyhow::bail!("the verifier found {count} violations, the first one: {first}");
        }
    }
    Ok(())
}

/// Measures problems one by one.
fn run_problems(root: &Path, args: &BenchArgs) -> anyhow::Result<()> {
    let answers = match &args.answers {
        Some(path) => Some(Answers::read(path)?),
        None => None,
    };
    let mut rows: Vec<Row> = Vec::new();
    say(&table::header(answers.is_some()))?;
    for problem in problems(root, args)? {
        if args.cases.is_none() {
            make(&problem)?;
        }
        let measured = measure(&problem, args.runs)
            .with_context(|| format!("cannot measure {}", problem.name()))?;
        let answer = answers.as_ref().and_then(|all| all.get(&problem.name()));
        let mut row = Row::new(&problem, &measured, answer);
        if args.each {
            row = row.titled(problem.name());
        }
        match rows.last_mut() {
            Some(last) if !args.each && last.same_kind(&row) => last.add(&row),
            Some(_) | None => {
                if let Some(done) = rows.last() {
                    say(&done.render(answers.is_some()))?;
                }
                rows.push(row);
            }
        }
    }
    if let Some(done) = rows.last() {
        say(&done.render(answers.is_some()))?;
    }
    if args.write {
        let text = table::page(&rows, answers.is_some());
        write(root, Section::Bench, &text)?;
    }
    let broken: usize = rows.iter().map(|row| row.violations).sum();
    anyhow::ensure!(broken == 0, "the verifier found {broken} violations");
    Ok(())
}

/// The same call, of a build whose figures mean something.
fn again_in_release(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--"]);
    command.args(std::env::args_os().skip(1));
    // Paths in the arguments are relative to where the user is.
    command.current_dir(std::env::current_dir().context("there is no current folder")?);
    let status = command.status().context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "bench of the release build: {status}");
    Ok(())
}

/// The problems to measure, by family and size.
fn problems(root: &Path, args: &BenchArgs) -> anyhow::Result<Vec<Problem>> {
    let wanted = |problem: &Problem| {
        (args.families.is_empty() || args.families.contains(&problem.family))
            && (args.sizes.is_empty() || args.sizes.contains(&problem.size))
    };
    let mut problems = Vec::new();
    if let Some(cases) = &args.cases {
        let context = || format!("cannot read folder {}", cases.display());
        for entry in std::fs::read_dir(cases).with_context(context)? {
            problems.extend(Problem::parse(entry.with_context(context)?.path()));
        }
        problems.retain(wanted);
    } else {
        let folder = root.join("target/bench-cases");
        for family in Family::ALL {
            let usual: &[usize] = match family {
                Family::Bench => Growth::Pods.sizes(),
                Family::Generic
                | Family::Jitter
                | Family::Selectors
                | Family::Pools
                | Family::Spread
                | Family::Affinity
                | Family::Existing
                | Family::Mixed => &SIZES,
            };
            let sizes = if args.sizes.is_empty() {
                usual
            } else {
                &args.sizes
            };
            let cases = (sizes.iter()).flat_map(|size| (1..=args.seeds).map(|seed| (*size, seed)));
            problems.extend(cases.map(|(size, seed)| Problem {
                family,
                size,
                seed,
                folder: folder.join(format!("{family}-{seed}-{size}")),
            }));
        }
        problems
            .retain(|problem| args.families.is_empty() || args.families.contains(&problem.family));
    }
    problems.sort();
    anyhow::ensure!(!problems.is_empty(), "there is no such problem");
    Ok(problems)
}

/// Writes the files of a problem.
fn make(problem: &Problem) -> anyhow::Result<()> {
    let case = generate(problem.family, problem.seed, problem.size);
    let folder = &problem.folder;
    let context = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(context)?;
    for (name, text) in [
        (case::OBJECTS, &case.objects_json),
        (case::TYPES, &case.instance_types_json),
    ] {
        std::fs::write(folder.join(name), text).with_context(context)?;
    }
    Ok(())
}

/// Figures of a problem, from a process that does nothing else.
fn measure(problem: &Problem, runs: u32) -> anyhow::Result<case::Measured> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("bench-case").arg(&problem.folder);
    command.args(["--runs", &runs.to_string()]);
    let output = command.output().context("cannot run this program again")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{}", errors.trim());
    serde_json::from_slice(&output.stdout).context("cannot read the figures")
}

/// Puts tables into their section of the page.
fn write(root: &Path, section: Section, text: &str) -> anyhow::Result<()> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|_| "# Benchmarks\n".to_owned());
    let page = table::with_section(&page, section, text)?;
    std::fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"))?;
    say(&format!("wrote {PAGE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_their_problem() {
        let problem = Problem::parse("some/where/bench-3-500".into()).unwrap();
        assert_eq!(
            (problem.family, problem.seed, problem.size),
            (Family::Bench, 3, 500)
        );
        assert_eq!(problem.name(), "bench-3-500");
        assert_eq!(Problem::parse("some/where/notes".into()), None);
        assert_eq!(Problem::parse("some/where/bench-a-500".into()), None);
    }
}
