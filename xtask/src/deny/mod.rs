//! Licenses, versions and sources of the crates that we are built with, against `deny.toml`.
//!
//! The same file is for `cargo deny check`, which `cargo xtask soak stories` runs where it is installed.
//! This is what needs nothing but cargo, and a second.

mod file;
mod rules;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::test::{Verdict, cargo};
use file::Rules;
use rules::Linked;

const FILE: &str = "deny.toml";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

/// Everything that breaks a rule.
pub(crate) fn problems(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(FILE)).context("cannot read deny.toml")?;
    let rules = Rules::parse(&text)?;
    rules::problems(&rules, &linked(root, &rules)?)
}

/// All crates that something of ours is built with on one of the platforms, tests and benches included.
fn linked(root: &Path, rules: &Rules) -> anyhow::Result<Vec<Linked>> {
    // The tree knows what is really built; metadata also has what a feature that is off would bring.
    let mut tree = vec!["tree", "--workspace", "--all-features", "--prefix", "none"];
    tree.extend(["--edges", "normal,build,dev", "--format", "{p}"]);
    let mut metadata = vec!["metadata", "--format-version", "1", "--all-features"];
    for target in &rules.graph.targets {
        tree.extend(["--target", target]);
        metadata.extend(["--filter-platform", target]);
    }
    let built = output(root, &tree)?;
    let built: BTreeSet<(&str, &str)> = built.lines().filter_map(name_and_version).collect();
    let metadata: Metadata = serde_json::from_str(&output(root, &metadata)?)
        .context("cannot read what cargo metadata prints")?;
    let ours = metadata.workspace_members;
    let packages = metadata.packages.into_iter();
    let packages =
        packages.filter(|own| built.contains(&(own.name.as_str(), own.version.as_str())));
    let crates: Vec<Linked> = packages.map(|package| package.linked(&ours)).collect();
    ensure!(
        crates.len() == built.len(),
        "cargo tree names {} crates, cargo metadata knows {} of them",
        built.len(),
        crates.len()
    );
    Ok(crates)
}

/// What a line `NAME vVERSION ..` of cargo's tree names.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

impl Package {
    fn linked(self, ours: &BTreeSet<String>) -> Linked {
        let is_ours = ours.contains(&self.id);
        let any = self.dependencies.into_iter().filter(|dependency| {
            // Those of others are theirs to mend.
            is_ours && dependency.req == "*" && dependency.path.is_none()
        });
        Linked {
            any_version_of: any.map(|dependency| dependency.name).collect(),
            name: self.name,
            version: self.version,
            license: self.license,
            source: self.source,
            is_ours,
        }
    }
}

fn output(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let called = || format!("cargo {}", arguments.join(" "));
    let output = cargo(root).args(arguments).output().with_context(called)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", called(), errors.trim());
    String::from_utf8(output.stdout).with_context(called)
}

/// `cargo deny check` with the same file, where it is installed. Its list of advisories is not asked: it
/// comes from elsewhere, and changes by itself.
pub(crate) fn cargo_deny(root: &Path) -> anyhow::Result<Verdict> {
    let mut probe = cargo(root);
    probe.args(["deny", "--version"]);
    let quiet = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !quiet.is_ok_and(|status| status.success()) {
        let why = "there is no cargo-deny; cargo install cargo-deny --locked";
        return Ok(Verdict::LeftOut(why.to_owned()));
    }
    let mut command = cargo(root);
    command.args(["deny", "--log-level", "warn", "check"]);
    command.args(["licenses", "bans", "sources"]);
    let status = command.status().context("cannot run cargo deny")?;
    Ok(match status.success() {
        true => Verdict::Passed(String::new()),
        false => Verdict::Failed(status.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_tree_name_crates() {
        assert_eq!(
            name_and_version("syn v2.0.119 (proc-macro) (*)"),
            Some(("syn", "2.0.119"))
        );
        assert_eq!(
            name_and_version("joiner v0.1.0 (/r/crates/joiner)"),
            Some(("joiner", "0.1.0"))
        );
        assert_eq!(name_and_version(""), None);
        assert_eq!(name_and_version("std feature \"default\""), None);
    }

    #[test]
    fn any_version_is_a_problem_of_ours_only() {
        let package = |id: &str| Package {
            id: id.to_owned(),
            name: id.to_owned(),
            version: "1.0.0".to_owned(),
            license: None,
            source: None,
            dependencies: vec![
                Dependency {
                    name: "any".to_owned(),
                    req: "*".to_owned(),
                    path: None,
                },
                Dependency {
                    name: "near".to_owned(),
                    req: "*".to_owned(),
                    path: Some("/r/near".to_owned()),
                },
            ],
        };
        let ours = BTreeSet::from(["own".to_owned()]);
        assert_eq!(package("own").linked(&ours).any_version_of, ["any"]);
        assert!(package("other").linked(&ours).any_version_of.is_empty());
    }
}
