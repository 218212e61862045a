//! A real Kubernetes control plane for tests: built once, outside of the tree, and run on demand.
//!
//! The programs come from the modules that `hack/control-plane/go.mod` pins. A cold build takes
//! minutes and half a gigabyte; the result is kept in a folder named after the version.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Subcommand;
use joiner_testkit::control_plane::{
    ControlPlane, Program, Programs, VERSION, assets, cache_folder, is_ci,
};

use crate::say;
use crate::test::run_for;

/// The Go module, below the root.
const MODULE: &str = "hack/control-plane";
/// Where Kubernetes keeps its version; without one its client does not parse its server's answer.
const VERSION_PACKAGE: &str = "k8s.io/component-base/version";
/// One program takes three minutes on two cores, once everything is downloaded.
const BUILD_MAX: Duration = Duration::from_secs(40 * 60);
/// How often a running control plane is looked at.
const POLL: Duration = Duration::from_millis(200);

/// What to do with it.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Builds the programs unless they are there, and prints their folder.
    Build,
    /// Starts one on free ports, prints the path of its kubeconfig, and stops it on Ctrl-C.
    Run {
        /// Also writes the kubeconfig to this file.
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
    },
}

/// What came of looking for the programs.
pub(crate) enum Found {
    /// They are there.
    Programs(Programs),
    /// They cannot be had, for this reason.
    Nothing(String),
}

/// Runs the chore.
pub(crate) fn run(root: &Path, task: &Task) -> anyhow::Result<()> {
    let programs = match find_or_build(root)? {
        Found::Programs(programs) => programs,
        Found::Nothing(why) => anyhow::bail!(why),
    };
    match task {
        Task::Build => say(&programs.folder().display().to_string()),
        Task::Run { kubeconfig } => serve(&programs, kubeconfig.as_deref()),
    }
}

/// The programs, from `KUBEBUILDER_ASSETS`, from the cache, or from a build.
pub(crate) fn find_or_build(root: &Path) -> anyhow::Result<Found> {
    if let Some(folder) = assets() {
        return Ok(Found::Programs(Programs::in_folder(&folder)?));
    }
    let folder = cache_folder().context("set JOINER_CACHE or HOME: there is no cache folder")?;
    if folder.is_dir() {
        return Ok(Found::Programs(Programs::in_folder(&folder)?));
    }
    if !has_go() {
        let why = "there is no control plane to test on: install Go, or set KUBEBUILDER_ASSETS";
        anyhow::ensure!(!is_ci(), why);
        return Ok(Found::Nothing(why.to_owned()));
    }
    build(&root.join(MODULE), &folder)?;
    Ok(Found::Programs(Programs::in_folder(&folder)?))
}

/// True when Go is there to build with.
pub(crate) fn has_go() -> bool {
    let mut command = Command::new("go");
    command.arg("version").stdout(Stdio::null());
    let quiet = command.stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Builds all programs.
fn build(module: &Path, folder: &Path) -> anyhow::Result<()> {
    tell(&format!(
        "building a control plane of Kubernetes {VERSION}: once, about 7 minutes on two cores"
    ));
    fill(folder, |draft| build_all(module, draft))
}

/// Fills a folder beside its place and moves it there at once: it is whole or not there.
pub(crate) fn fill(
    folder: &Path,
    fill: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let name = folder.file_name().context("the cache folder has no name")?;
    let name = format!("{}-building-{}", name.display(), std::process::id());
    let draft = folder.with_file_name(name);
    let failed = || format!("cannot create {}", draft.display());
    std::fs::create_dir_all(&draft).with_context(failed)?;
    let built = fill(&draft).and_then(|()| settle(&draft, folder));
    if built.is_err() {
        // The error to tell is the first one.
        let _ = std::fs::remove_dir_all(&draft);
    }
    built
}

fn build_all(module: &Path, draft: &Path) -> anyhow::Result<()> {
    let count = Program::ALL.len();
    for (ix, program) in Program::ALL.into_iter().enumerate() {
        let name = program.file_name();
        tell(&format!("[{}/{count}] go build {name}", ix + 1));
        build_one(&mut build_command(module, program, &draft.join(name)), name)?;
    }
    Ok(())
}

/// Runs a build of this name, and tells how long it takes.
pub(crate) fn build_one(command: &mut Command, name: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    let status = run_for(command, BUILD_MAX)?;
    let status = status.with_context(|| format!("go build {name} takes too long"))?;
    anyhow::ensure!(status.success(), "go build {name}: {status}");
    tell(&format!("      {} s", started.elapsed().as_secs()));
    Ok(())
}

fn build_command(module: &Path, program: Program, target: &Path) -> Command {
    let package = match program {
        Program::Etcd => "go.etcd.io/etcd/server/v3",
        Program::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
        Program::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
        Program::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
        Program::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
    };
    let mut numbers = VERSION.trim_start_matches('v').split('.');
    let mut number = || numbers.next().unwrap_or_default();
    let flags = format!(
        "-s -w -X {VERSION_PACKAGE}.gitVersion={VERSION} -X {VERSION_PACKAGE}.gitMajor={} \
         -X {VERSION_PACKAGE}.gitMinor={}",
        number(),
        number(),
    );
    go_build(module, package, &flags, target)
}

/// A build of a package that a Go module pins.
pub(crate) fn go_build(module: &Path, package: &str, flags: &str, target: &Path) -> Command {
    let mut command = Command::new("go");
    // Not a step outside of go.sum, whatever the user's settings are.
    command.args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly"]);
    command.args(["-ldflags", flags, "-o"]);
    command.arg(target).arg(package);
    command.current_dir(module).env("CGO_ENABLED", "0");
    command.env("GOWORK", "off");
    command
}

/// Gives the finished folder its name, unless somebody else was faster.
fn settle(draft: &Path, folder: &Path) -> anyhow::Result<()> {
    match std::fs::rename(draft, folder) {
        Err(_) if folder.is_dir() => std::fs::remove_dir_all(draft)
            .with_context(|| format!("cannot remove {}", draft.display())),
        renamed => renamed.with_context(|| format!("cannot create {}", folder.display())),
    }
}

/// Runs a control plane until a signal comes or one of its programs ends.
fn serve(programs: &Programs, copy: Option<&Path>) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot hear signals")?;
    }
    let started = Instant::now();
    let mut plane = ControlPlane::start_with(programs)?;
    let mut path = plane.kubeconfig();
    if let Some(copy) = copy {
        let failed = || format!("cannot write {}", copy.display());
        std::fs::copy(&path, copy).with_context(failed)?;
        path = copy.to_owned();
    }
    tell(&format!(
        "Kubernetes {VERSION} is at {} after {:.1} s, its logs are in {}; Ctrl-C stops it",
        plane.url(),
        started.elapsed().as_secs_f64(),
        plane.folder().display()
    ));
    say(&path.display().to_string())?;
    while !stop.load(Ordering::Relaxed) {
        plane.check()?;
        std::thread::park_timeout(POLL);
    }
    drop(plane);
    tell("stopped");
    Ok(())
}

/// Tells how things go, beside the output proper.
pub(crate) fn tell(line: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_of_our_version() {
        let root = crate::root().unwrap();
        let module = std::fs::read_to_string(root.join(MODULE).join("go.mod")).unwrap();
        assert!(module.contains(&format!("k8s.io/kubernetes {VERSION} ")));
        let staging = VERSION.replacen("v1.", "v0.", 1);
        let replaced = module.lines().filter(|line| line.contains(" => "));
        let ours = replaced.clone().filter(|line| line.ends_with(&staging));
        assert_eq!(ours.count(), replaced.count());
    }

    #[test]
    fn the_version_is_linked_in() {
        let command = build_command(Path::new("."), Program::Kubectl, Path::new("kubectl"));
        let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        let flags = arguments.iter().find(|a| a.contains("gitMinor")).unwrap();
        let minor = VERSION.split('.').nth(1).unwrap();
        assert!(flags.ends_with(&format!("gitMinor={minor}")), "{flags}");
    }

    #[test]
    fn the_first_build_stays() {
        let parent = std::env::temp_dir().join(format!("xtask-settle-{}", std::process::id()));
        let (draft, folder) = (parent.join("draft"), parent.join("done"));
        for name in ["first", "second"] {
            std::fs::create_dir_all(&draft).unwrap();
            std::fs::write(draft.join(name), "").unwrap();
            settle(&draft, &folder).unwrap();
            assert!(!draft.exists() && folder.join("first").is_file());
        }
        assert!(!folder.join("second").exists());
        std::fs::remove_dir_all(&parent).unwrap();
    }
}
