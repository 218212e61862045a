//! Everything that CI runs, in CI's order.
//!
//! All steps run even if one fails, each with a limit on its time. Missing components of Rust are
//! installed where rustup is there to do it, and left out, loudly, where it is not. Likewise the
//! control plane and the helm that some tests run on are built where Go is there to do it. Under
//! `CI=true` whatever is left out is a failure.
//!
//! Tests that are `#[ignore]`d are those of the [`soak`].

mod executables;
mod packages;
mod results;
mod runner;
pub(crate) mod soak;
mod step;

use std::path::{Path, PathBuf};

use anyhow::Context;
use joiner_testkit::control_plane::{
    ControlPlane, FOLDER_VARIABLE, Programs, SHARED_VARIABLE, is_ci,
};

use crate::control_plane::{self, Found};
use crate::{deny, deps, docs, generate, helm, report, tidy};
use executables::{Built, Case, Executable};
use runner::Settings as RunSettings;
use step::{CargoStep, Steps};

pub(crate) use executables::build_joiner;
pub(crate) use step::{Verdict, cargo, run_for};

const FORMAT: CargoStep = CargoStep {
    arguments: &["fmt", "--all", "--check"],
    component: Some("rustfmt"),
    minutes_max: 5,
};
/// Without benches, which tests do not build.
const LINTS: CargoStep = CargoStep {
    arguments: &[
        "clippy",
        "--workspace",
        "--exclude",
        "joiner-bench",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ],
    component: Some("clippy"),
    minutes_max: 30,
};
const DOC_TESTS: CargoStep = CargoStep {
    arguments: &[
        "test",
        "--workspace",
        "--exclude",
        "joiner-bench",
        "--doc",
        "--quiet",
    ],
    component: None,
    minutes_max: 20,
};
/// Executables whose tests take long: they begin first, so that none is left alone at the end.
const LONG_FIRST: [&str; 5] = [
    "joiner-controllers/e2e",
    "joiner/program",
    "joiner-solver/solver",
    "joiner-disruption/fleets",
    "joiner-sandbox/sandbox",
];

/// Runs all steps and says how each ended.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut steps = Steps::default();
    if is_ci() {
        steps.take("packages", || packages::install(root))?;
    }
    steps.take("format", || FORMAT.run(root))?;
    steps.take("lints", || LINTS.run(root))?;
    let mut programs = None;
    steps.take("control plane", || {
        let (verdict, found) = control_plane(root);
        programs = found;
        Ok(verdict)
    })?;
    steps.take("helm", || Ok(helm(root)))?;
    let mut built = Built::default();
    steps.take("build tests", || {
        built = executables::build(root)?;
        Ok(Verdict::Passed(format!(
            "{} executables",
            built.executables.len()
        )))
    })?;
    steps.take("tests", || {
        let mut cases = executables::cases(&built.executables)?;
        cases.retain(|case| !case.is_ignored);
        let outcomes = run_cases(cases, programs.as_ref(), RunSettings::new(root))?;
        results::tell(&outcomes).map(Verdict::Tested)
    })?;
    steps.take("doc tests", || DOC_TESTS.run(root))?;
    type Check = fn(&Path) -> anyhow::Result<Vec<String>>;
    let checks: [(&'static str, Check); 4] = [
        ("tidy", tidy::problems),
        ("deps", deps::problems),
        ("deny", deny::problems),
        ("gen --check", generate::stale),
    ];
    for (name, check) in checks {
        steps.take(name, || Ok(Verdict::of(check(root).and_then(report))))?;
    }
    steps.take("docs --check", || {
        let joiner = built.joiner.as_deref();
        let joiner = joiner.context("joiner was not built")?;
        Ok(Verdict::of(docs::stale(root, joiner).and_then(report)))
    })?;
    steps.sum_up(is_ci())
}

/// Runs tests, those that begin early first, on one control plane for all that need a real one.
fn run_cases(
    mut cases: Vec<Case>,
    programs: Option<&Programs>,
    mut settings: RunSettings,
) -> anyhow::Result<Vec<runner::Outcome>> {
    cases.sort_by_key(|case| place(&case.executable));
    // Unless somebody has one running already.
    let shared = match (programs, std::env::var_os(SHARED_VARIABLE)) {
        (Some(programs), None) if cases.iter().any(Case::is_real) => {
            let plane = ControlPlane::start_with(programs)?;
            settings
                .variables
                .push((SHARED_VARIABLE, plane.share()?.into()));
            Some(plane)
        }
        _ => None,
    };
    if let Some(programs) = programs {
        let folder: PathBuf = programs.folder().to_owned();
        settings.variables.push((FOLDER_VARIABLE, folder.into()));
    }
    let outcomes = runner::run(cases, &settings);
    drop(shared);
    outcomes
}

/// When an executable begins.
fn place(executable: &Executable) -> usize {
    let long = LONG_FIRST.iter().position(|name| *name == executable.name);
    long.unwrap_or(LONG_FIRST.len())
}

/// The control plane's programs, if they are there or can be built.
fn control_plane(root: &Path) -> (Verdict, Option<Programs>) {
    match control_plane::find_or_build(root) {
        Ok(Found::Programs(programs)) => (Verdict::Passed(String::new()), Some(programs)),
        Ok(Found::Nothing(why)) => (Verdict::LeftOut(why), None),
        Err(error) if is_ci() => (Verdict::Failed(format!("{error:#}")), None),
        Err(error) => (Verdict::LeftOut(format!("{error:#}")), None),
    }
}

/// The helm program, which tests find by themselves once it is there.
fn helm(root: &Path) -> Verdict {
    match helm::find_or_build(root) {
        Ok(Some(_)) => Verdict::Passed(String::new()),
        Ok(None) => Verdict::LeftOut("there is no helm to test the chart with".to_owned()),
        Err(error) if is_ci() => Verdict::Failed(format!("{error:#}")),
        Err(error) => Verdict::LeftOut(format!("{error:#}")),
    }
}
