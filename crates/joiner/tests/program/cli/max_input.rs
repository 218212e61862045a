//! What is read has a bound.

use crate::cli::support::{
    TempFile, TempFolder, any_pool, documents, joiner, joiner_reading, small_catalog, small_pod,
};

fn good() -> String {
    documents(&[&any_pool(), &small_pod("web")])
}

#[test]
fn larger_input_is_refused_with_the_flag_that_lets_it_in() {
    let file = TempFile::new("objects.yaml", good());
    let refused = [file.path(), "larger than 64", "--max-input"];
    joiner(&["plan", "-f", file.path(), "--max-input", "64"]).fails_in_one_line(&refused);
    let run = joiner_reading(&["plan", "-f", "-", "--max-input", "64"], good().as_bytes());
    run.fails_in_one_line(&["standard input", "larger than 64", "--max-input"]);
    joiner(&["plan", "-f", file.path(), "--max-input", "1Ki"]).exits(0);
    joiner(&["plan", "-f", file.path(), "--max-input", "much"])
        .fails_with(&["--max-input", "much"]);
}

#[test]
fn files_are_counted_together() {
    let folder = TempFolder::new();
    folder.write("a.yaml", &any_pool());
    folder.write("b.yaml", &small_pod("web"));
    joiner(&["plan", "-f", folder.path(), "--max-input", "1Ki"]).exits(0);
    let size = any_pool().len().to_string();
    let run = joiner(&["plan", "-f", folder.path(), "--max-input", &size]);
    run.fails_in_one_line(&["b.yaml", "--max-input"]);
}

#[test]
fn devices_end() {
    let zero = "/dev/zero";
    let types = TempFile::new("types.json", small_catalog());
    for args in [
        &["plan", "-f", zero][..],
        &["plan", "-f", types.path(), "--instance-types", zero],
        &["plan", "-f", types.path(), "--scheduler-config", zero],
        &["plan", "-f", types.path(), "--prices", zero],
        &["catalog", "--prices", zero],
        &["run", "--cloud", "simulated", "--kubeconfig", zero],
        &["run", "--cloud", "simulated", "--scheduler-config", zero],
        &["sandbox", "--kubeconfig", zero],
        &["why", "pod", "web", "--kubeconfig", zero],
        &["why", "pod", "web", "--decision-log", zero],
    ] {
        joiner(args).fails_in_one_line(&[zero]);
    }
}
