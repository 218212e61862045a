//! Which crate may depend on which. Arrows point inward only.
//!
//! The table below is the rule; the manifests are checked against it. Crates below the line, pure
//! and synchronous, must not reach a runtime, a client, a logger or a source of chance either, not
//! even through somebody else's crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use crate::test::cargo;

/// A side of the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Pure and synchronous.
    Below,
    /// May do I/O.
    Above,
}

/// What a crate may use, of ours.
struct Row {
    name: &'static str,
    side: Side,
    may_use: &'static [&'static str],
}

const fn below(name: &'static str, may_use: &'static [&'static str]) -> Row {
    Row {
        name,
        side: Side::Below,
        may_use,
    }
}

const fn above(name: &'static str, may_use: &'static [&'static str]) -> Row {
    Row {
        name,
        side: Side::Above,
        may_use,
    }
}

const ALL: &str = "*";
const TESTKIT: &str = "joiner-testkit";
/// What tests of crates above the line may run on: a control plane, a cloud, and both put together.
const TEST_BEDS: &[&str] = &["joiner-sandbox", "joiner-cloud-sim", "joiner-sim"];

const TABLE: &[Row] = &[
    below("joiner-model", &[]),
    below("joiner-api", &[]),
    below("joiner-pack", &[]),
    below("joiner-catalog", &["joiner-model"]),
    below("joiner-solver", &["joiner-model", "joiner-pack"]),
    below("joiner-verify", &["joiner-model"]),
    below("joiner-receipts", &["joiner-model"]),
    below("joiner-workload", &["joiner-model"]),
    below("joiner-disruption", &["joiner-model", "joiner-solver"]),
    below("joiner-nodegroup", &["joiner-model", "joiner-solver"]),
    below(
        "joiner-state",
        &["joiner-model", "joiner-api", "joiner-catalog"],
    ),
    below(
        "joiner-ec2",
        &["joiner-model", "joiner-api", "joiner-catalog"],
    ),
    below("joiner-machinery", &["joiner-api"]),
    below("joiner-cluster", &["joiner-machinery", "joiner-api"]),
    above("joiner-cloud", &["joiner-model", "joiner-api"]),
    above("joiner-cloud-aws", CLOUD),
    above("joiner-cloud-sim", SIMULATED),
    above(
        "joiner-runtime",
        &[
            "joiner-model",
            "joiner-api",
            "joiner-state",
            "joiner-receipts",
        ],
    ),
    above("joiner-engine", ENGINE),
    above("joiner-controllers", CONTROLLERS),
    above("joiner-sandbox", SANDBOX),
    above(
        "joiner-sim",
        &[
            "joiner-machinery",
            "joiner-runtime",
            "joiner-controllers",
            "joiner-cloud-sim",
            "joiner-sandbox",
        ],
    ),
    above("joiner-bench", &[ALL, TESTKIT]),
    above(
        "joiner-web",
        &["joiner-model", "joiner-receipts", "joiner-runtime"],
    ),
    above("joiner", &[ALL]),
    above(TESTKIT, &[ALL]),
    above("xtask", &[ALL, TESTKIT]),
];

const SANDBOX: &[&str] = &[
    "joiner-api",
    "joiner-machinery",
    "joiner-cluster",
    "joiner-runtime",
];

/// A cloud reads the classes that are in the cluster, and goes by the same clock as everything else.
const CLOUD: &[&str] = &[
    "joiner-model",
    "joiner-api",
    "joiner-cloud",
    "joiner-catalog",
    "joiner-ec2",
    "joiner-state",
    "joiner-runtime",
];

const SIMULATED: &[&str] = &[
    "joiner-model",
    "joiner-api",
    "joiner-cloud",
    "joiner-catalog",
    "joiner-state",
    "joiner-cluster",
    "joiner-machinery",
    "joiner-runtime",
];

const ENGINE: &[&str] = &[
    "joiner-model",
    "joiner-api",
    "joiner-state",
    "joiner-runtime",
];

const CONTROLLERS: &[&str] = &[
    "joiner-model",
    "joiner-api",
    "joiner-catalog",
    "joiner-solver",
    "joiner-verify",
    "joiner-workload",
    "joiner-disruption",
    "joiner-nodegroup",
    "joiner-state",
    "joiner-receipts",
    "joiner-cloud",
    "joiner-runtime",
    "joiner-engine",
];

/// Crates of others that have no place below the line.
const IMPURE: &[&str] = &[
    "async-std",
    "futures-executor",
    "hyper",
    "k8s-openapi",
    "kube",
    "kube-client",
    "kube-core",
    "kube-runtime",
    "log",
    "mio",
    "rand",
    "reqwest",
    "rustls",
    "smol",
    "tokio",
    "tower",
    "tracing",
];

/// Packages nobody may depend on.
const LEAVES: &[&str] = &["joiner", "joiner-bench", "xtask"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for an ordinary one.
    kind: Option<String>,
    /// Set for packages of this repository.
    path: Option<String>,
}

/// Everything that breaks the rule.
pub(crate) fn problems(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = output(root, &["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Metadata =
        serde_json::from_str(&text).context("cannot read what cargo metadata prints")?;
    let mut problems = Vec::new();
    for package in &metadata.packages {
        problems.extend(package.problems());
        if row(&package.name).is_some_and(|row| row.side == Side::Below) {
            problems.extend(impure(root, &package.name)?);
        }
    }
    Ok(problems)
}

fn row(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

impl Package {
    fn problems(&self) -> Vec<String> {
        let name = self.name.as_str();
        let Some(row) = row(name) else {
            return vec![format!(
                "{name} is new: say in xtask/src/deps.rs what it may use"
            )];
        };
        let ours = self.dependencies.iter().filter(|d| d.path.is_some());
        ours.filter(|dependency| !row.allows(dependency))
            .map(|dependency| {
                let kind = dependency.kind.as_deref().unwrap_or("ordinary");
                let other = &dependency.name;
                format!("{name} must not depend on {other} ({kind} dependency)")
            })
            .collect()
    }
}

impl Row {
    fn allows(&self, dependency: &Dependency) -> bool {
        let name = dependency.name.as_str();
        let listed = self.may_use.contains(&name);
        let any = self.may_use.contains(&ALL) && name != TESTKIT && !LEAVES.contains(&name);
        match dependency.kind.as_deref() {
            Some("dev") => {
                let runs_on = self.side == Side::Above && TEST_BEDS.contains(&name);
                listed || any || name == TESTKIT || runs_on
            }
            _ => listed || any,
        }
    }
}

/// What a pure crate reaches that it should not.
fn impure(root: &Path, name: &str) -> anyhow::Result<Vec<String>> {
    let arguments = [
        "tree",
        "--package",
        name,
        "--edges",
        "normal",
        "--prefix",
        "none",
    ];
    let text = output(root, &arguments)?;
    let reached: BTreeSet<&str> = text.lines().filter_map(|l| l.split(' ').next()).collect();
    let found: BTreeMap<_, _> = (IMPURE.iter())
        .filter(|impure| reached.contains(**impure))
        .map(|impure| (*impure, name))
        .collect();
    let message = |(other, name)| format!("{name} is pure and must not reach {other}");
    Ok(found.into_iter().map(message).collect())
}

fn output(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let called = || format!("cargo {}", arguments.join(" "));
    let output = cargo(root).args(arguments).output().with_context(called)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{}: {}", called(), errors.trim());
    String::from_utf8(output.stdout).with_context(called)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: Some("somewhere".to_owned()),
        };
        Package {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn arrows_point_inward_only() {
        let solver = package(
            "joiner-solver",
            &[("joiner-model", None), ("joiner-pack", None)],
        );
        assert!(solver.problems().is_empty());
        let verify = package("joiner-verify", &[("joiner-solver", None)]);
        assert_eq!(
            verify.problems(),
            ["joiner-verify must not depend on joiner-solver (ordinary dependency)"]
        );
        let pack = package("joiner-pack", &[("joiner-model", None)]);
        assert_eq!(pack.problems().len(), 1);
    }

    #[test]
    fn the_testkit_is_for_tests() {
        assert!(
            package("joiner-solver", &[(TESTKIT, Some("dev"))])
                .problems()
                .is_empty()
        );
        assert_eq!(package("joiner", &[(TESTKIT, None)]).problems().len(), 1);
        let on_bed = |name, kind| package(name, &[(TEST_BEDS[0], kind)]).problems();
        assert!(on_bed("joiner-cloud-sim", Some("dev")).is_empty());
        assert_eq!(on_bed("joiner-cloud-sim", None).len(), 1);
        assert_eq!(on_bed("joiner-state", Some("dev")).len(), 1);
        assert!(package("xtask", &[(TESTKIT, None)]).problems().is_empty());
        assert_eq!(package(TESTKIT, &[("joiner", None)]).problems().len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_a_problem() {
        assert!(package("joiner-magic", &[]).problems()[0].contains("joiner-magic is new"));
    }
}
