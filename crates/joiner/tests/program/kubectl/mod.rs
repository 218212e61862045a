//! What people type: `kubectl` against `joiner sandbox`, compared with what a cluster answers.
//!
//! A script in `scripts/` is a list of commands (`$ ..`), each followed by the output that it must
//! have, errors included, and by `[exit N]` where it fails. `[..]` stands for any part of a line,
//! `...` for any number of lines; blanks in a row count as one; `##` is a heading. Commands run in this folder, and
//! each script has a sandbox of its own, whose clock runs fast.
//!
//! Two versions of `kubectl` say some things differently: the scripts hold for 1.32 to 1.36. The
//! program is taken from the folder in `JOINER_CONTROL_PLANE`, else from that in
//! `KUBEBUILDER_ASSETS`, else from the path. Without one the tests are skipped, unless `CI=true`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and one that is skipped should say so"
)]

mod command;
mod sandbox;
mod transcript;

use std::path::Path;

use sandbox::Sandbox;
use transcript::Block;

/// Runs a script and compares.
fn run(name: &str, script: &str) {
    let Some(sandbox) = Sandbox::start(name) else {
        return;
    };
    let mut seen = String::new();
    let mut wrong = Vec::new();
    for block in Block::all(script) {
        let output = sandbox.sh(&block.command);
        if !block.matches(&output) {
            wrong.push(format!(
                "line {}: $ {}\n--- expected\n{}\n--- got\n{output}",
                block.line, block.command, block.expected
            ));
        }
        seen.push_str(&format!("$ {}\n{output}\n\n", block.command));
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{name}.txt"));
    std::fs::write(&file, seen).unwrap();
    assert!(
        wrong.is_empty(),
        "{} answers of scripts/{name}.txt differ; all of them are in {}\n\n{}",
        wrong.len(),
        file.display(),
        wrong.join("\n\n")
    );
}

#[test]
fn creating_and_reading() {
    run("read", include_str!("scripts/read.txt"));
}

#[test]
fn workloads() {
    run("workloads", include_str!("scripts/workloads.txt"));
}

#[test]
fn nodes() {
    run("nodes", include_str!("scripts/nodes.txt"));
}

#[test]
fn priorities_volumes_and_jobs() {
    run("pressure", include_str!("scripts/pressure.txt"));
}

#[test]
fn applying_and_deleting() {
    run("apply", include_str!("scripts/apply.txt"));
}

#[test]
fn rights() {
    run("rights", include_str!("scripts/rights.txt"));
}
