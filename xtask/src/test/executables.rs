//! Test executables and the tests in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::Context;
use serde::Deserialize;

use super::step::cargo;

/// The package of benches: neither built nor run by tests.
pub(super) const BENCHES: &str = "joiner-bench";
/// The package and the binary of the product.
const PROGRAM: &str = "joiner";
/// A part of a test's name that says that it needs the real control plane.
const REAL: &str = "real";

/// A file full of tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    /// Package and target.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Where cargo would start it.
    pub(super) folder: PathBuf,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) executable: Arc<Executable>,
    pub(super) name: String,
    /// Only the soak runs it.
    pub(super) is_ignored: bool,
}

impl Case {
    /// Package, target and test.
    pub(super) fn full_name(&self) -> String {
        format!("{} {}", self.executable.name, self.name)
    }

    /// It takes its turn on the real control plane.
    pub(super) fn is_real(&self) -> bool {
        self.name.split("::").any(|part| part == REAL)
    }
}

/// What cargo prints for everything that it has built.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// What was built.
#[derive(Default)]
pub(super) struct Built {
    pub(super) executables: Vec<Arc<Executable>>,
    /// The product, which some tests run.
    pub(super) joiner: Option<PathBuf>,
}

/// Builds all tests of the workspace.
pub(super) fn build(root: &Path) -> anyhow::Result<Built> {
    let text = built(
        root,
        &["test", "--workspace", "--exclude", BENCHES, "--no-run"],
    )?;
    let executables = text.lines().filter_map(executable).map(Arc::new);
    Ok(Built {
        executables: executables.collect(),
        joiner: text.lines().find_map(program),
    })
}

/// Builds the product as tests run it.
pub(crate) fn build_joiner(root: &Path) -> anyhow::Result<PathBuf> {
    let text = built(root, &["build", "--package", PROGRAM, "--bin", PROGRAM])?;
    let joiner = text.lines().find_map(program);
    joiner.context("cargo does not say where joiner is")
}

/// What cargo says of everything that it builds.
fn built(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = cargo(root);
    command.args(arguments);
    command.arg("--message-format=json-render-diagnostics");
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    anyhow::ensure!(output.status.success(), "it does not build");
    String::from_utf8(output.stdout).context("cargo prints text")
}

/// The product, if a line of cargo tells of it.
fn program(line: &str) -> Option<PathBuf> {
    let message: Message = serde_json::from_str(line).ok()?;
    let is_program = message.reason == "compiler-artifact" && !message.profile?.test;
    let path = message.executable?;
    (is_program && message.target?.name == PROGRAM).then_some(path)
}

/// The test executable that a line of cargo tells of, if it does.
fn executable(line: &str) -> Option<Executable> {
    let message: Message = serde_json::from_str(line).ok()?;
    if message.reason != "compiler-artifact" || !message.profile?.test {
        return None;
    }
    let target = message.target?;
    let folder = message.manifest_path?.parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    let is_unit = target
        .kind
        .iter()
        .any(|kind| kind == "lib" || kind == "bin");
    debug_assert!(message.package_id.is_some(), "cargo names the package");
    Some(Executable {
        name: match is_unit {
            true => package,
            false => format!("{package}/{}", target.name),
        },
        path: message.executable?,
        folder,
    })
}

/// All tests in these, in their order.
pub(super) fn cases(executables: &[Arc<Executable>]) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for executable in executables {
        let ignored = list(executable, &["--ignored"])?;
        for name in list(executable, &[])? {
            cases.push(Case {
                executable: Arc::clone(executable),
                is_ignored: ignored.contains(&name),
                name,
            });
        }
    }
    Ok(cases)
}

fn list(executable: &Executable, more: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(&executable.path);
    command.args(["--list", "--format", "terse"]).args(more);
    let output = command.current_dir(&executable.folder).output();
    let output = output.with_context(|| format!("cannot run {}", executable.path.display()))?;
    let text = String::from_utf8(output.stdout).context("a list of tests is text")?;
    Ok(tests(&text))
}

fn tests(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(test: bool, kind: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"p","manifest_path":"/r/crates/joiner-x/Cargo.toml",
            "target":{{"name":"stories","kind":["{kind}"]}},"executable":"/t/stories-1",
            "profile":{{"test":{test}}}}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn only_tests_count() {
        let found = executable(&line(true, "test")).unwrap();
        assert_eq!(found.name, "joiner-x/stories");
        assert_eq!(found.folder, Path::new("/r/crates/joiner-x"));
        assert_eq!(executable(&line(true, "lib")).unwrap().name, "joiner-x");
        assert_eq!(executable(&line(false, "lib")), None);
        assert_eq!(
            executable(r#"{"reason":"build-finished","success":true}"#),
            None
        );
        assert_eq!(executable("not JSON"), None);
    }

    #[test]
    fn a_test_is_real_by_a_part_of_its_name() {
        let executable = executable(&line(true, "test")).map(Arc::new).unwrap();
        let case = |name: &str| Case {
            executable: Arc::clone(&executable),
            name: name.to_owned(),
            is_ignored: false,
        };
        assert!(case("scale_out::one_pod::real").is_real());
        assert!(case("real::one_pod").is_real());
        assert!(!case("scale_out::real_prices").is_real());
    }

    #[test]
    fn the_product_is_found_among_what_was_built() {
        let product = |is_test: bool, kind: &str| {
            line(is_test, kind).replace("\"name\":\"stories\"", "\"name\":\"joiner\"")
        };
        assert!(program(&product(false, "bin")).is_some());
        assert_eq!(program(&product(true, "bin")), None);
        assert_eq!(program(&line(false, "bin")), None);
        assert_eq!(program("not JSON"), None);
    }

    #[test]
    fn benches_in_a_list_are_no_tests() {
        assert_eq!(tests("a::b: test\nc: benchmark\n\n1 test\n"), ["a::b"]);
    }
}
