//! Tells the program which commit it is built from.
//!
//! `JOINER_COMMIT` says it where the sources come without their repository, as in a container; else git is
//! asked. Without either it is unknown, which stops no build.

#![expect(
    clippy::disallowed_methods,
    reason = "that is how a build script reads what it is told"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "JOINER_COMMIT";
const UNKNOWN: &str = "unknown";
/// Letters of a commit, as upstream shows it.
const LETTERS: usize = 7;

fn main() {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var(VARIABLE).ok();
    let commit = given.filter(|commit| is_commit(commit));
    let commit = commit.or_else(|| of_repository(&root));
    let commit = commit.unwrap_or_else(|| UNKNOWN.to_owned());
    let short = commit.get(..LETTERS).unwrap_or(&commit);
    println!("cargo::rustc-env=JOINER_BUILT_FROM={short}");
}

fn is_commit(text: &str) -> bool {
    text.len() >= LETTERS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The commit that is checked out, if the sources are a repository of their own.
fn of_repository(root: &Path) -> Option<String> {
    // A tarball may lie inside of somebody else's repository.
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let head = git(root, &["rev-parse", "--symbolic-full-name", "HEAD"])?;
    for name in ["HEAD", &head, "packed-refs"] {
        let path = git(root, &["rev-parse", "--git-path", name])?;
        // Paths are relative to where git was asked. One that is not there would mean a build each time.
        let path = root.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = git(root, &["rev-parse", "HEAD"])?;
    is_commit(&commit).then_some(commit)
}

/// What git says; nothing when there is none, or it refuses.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
