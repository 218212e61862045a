//! Every folder under `examples/` runs as its README says.

use crate::cli::support::{joiner, root};

#[test]
fn every_example_runs() {
    let entries = std::fs::read_dir(root().join("examples")).unwrap();
    let mut folders: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    folders.sort_unstable();
    assert!(folders.len() >= 8, "{folders:?}");
    for name in folders {
        let folder = format!("examples/{name}");
        let types = format!("{folder}/types.json");
        let cluster = format!("{folder}/cluster.yaml");
        let args = if root().join(&types).exists() {
            vec![
                "plan",
                "-o",
                "json",
                "-f",
                &cluster,
                "--instance-types",
                &types,
            ]
        } else {
            vec!["plan", "-o", "json", "-f", &folder]
        };
        let expected = if name == "left-over" { 2 } else { 0 };
        let run = joiner(&args).exits(expected);
        assert_eq!(run.stderr, "", "{name} has no warnings");
        let left = run.json()["unschedulable"].as_array().unwrap().len();
        assert_eq!(left > 0, expected == 2, "{name}");
    }
}
