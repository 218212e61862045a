//! Files that are missing, empty, binary or not YAML or JSON at all.

use crate::support::{
    TempFile, TempFolder, any_pool, documents, joiner, joiner_reading, plan, small_pod, unique,
};

fn good() -> String {
    documents(&[&any_pool(), &small_pod("web")])
}

#[test]
fn a_missing_file_is_named() {
    let path = unique("missing.yaml");
    let path = path.to_str().unwrap();
    joiner(&["plan", "-f", path]).fails_in_one_line(&["cannot read", path]);
}

#[test]
fn an_empty_folder_says_what_it_looked_for() {
    let folder = TempFolder::new();
    joiner(&["plan", "-f", folder.path()]).fails_in_one_line(&[folder.path(), ".yaml", ".json"]);
}

#[test]
fn a_folder_is_read_and_other_files_in_it_are_not() {
    let folder = TempFolder::new();
    folder.write("notes.txt", "{ not: [yaml");
    folder.write("pod.yaml", &small_pod("web"));
    let run = joiner(&["plan", "-f", folder.path()]).exits(2);
    run.prints(&["there is no NodePool"]);
}

#[test]
fn an_error_in_a_folder_names_the_file() {
    let folder = TempFolder::new();
    folder.write("a.yaml", &any_pool());
    folder.write("b.yaml", "a: [1");
    joiner(&["plan", "-f", folder.path()]).fails_in_one_line(&["b.yaml:", "malformed YAML"]);
}

#[test]
fn nothing_at_all_needs_no_nodes() {
    for text in ["", "# a comment\n", "---\n---\n"] {
        plan(text).exits(0).prints(&["Nothing to place"]);
    }
}

#[test]
fn standard_input_is_read() {
    let run = joiner_reading(&["plan", "-f", "-"], small_pod("web").as_bytes()).exits(2);
    run.prints(&["No place for web"]);
}

#[test]
fn binary_files_are_refused() {
    let bytes: Vec<u8> = (0..=255).collect();
    plan(&bytes).fails_in_one_line(&["objects.yaml", "UTF-8"]);
    let run = joiner_reading(&["plan", "-f", "-"], &bytes);
    run.fails_in_one_line(&["standard input", "UTF-8"]);
}

#[test]
fn malformed_yaml_has_a_line() {
    let text = documents(&[&any_pool(), "kind: [Pod\nname: }"]);
    plan(text).fails_in_one_line(&["objects.yaml:13:", "malformed YAML"]);
}

#[test]
fn tabs_are_called_tabs() {
    plan("kind: Pod\nmetadata:\n\tname: web\n").fails_in_one_line(&["objects.yaml:3", "tabs"]);
}

#[test]
fn malformed_json_has_a_line() {
    let file = TempFile::new("objects.json", "{\"kind\": \"Pod\",\n \"metadata\": ");
    joiner(&["plan", "-f", file.path()]).fails_in_one_line(&[file.path(), ":2:", "malformed JSON"]);
}

#[test]
fn text_after_json_is_an_error() {
    let file = TempFile::new(
        "objects.json",
        "{\"apiVersion\": \"v1\", \"kind\": \"Pod\"} more",
    );
    joiner(&["plan", "-f", file.path()]).fails_in_one_line(&[file.path(), ":1:"]);
}

#[test]
fn windows_line_endings_and_byte_order_marks_are_read() {
    plan(good().replace('\n', "\r\n"))
        .exits(0)
        .prints(&["1 pod on 1 new node"]);
    plan(format!("\u{feff}{}", good()))
        .exits(0)
        .prints(&["1 pod on 1 new node"]);
}

#[test]
fn deep_nesting_is_refused() {
    let yaml: String = (0..2000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    plan(yaml).fails_in_one_line(&["nested too deeply"]);
    plan("- ".repeat(20_000)).fails_in_one_line(&["nested too deeply"]);
    plan("[".repeat(100_000)).fails_in_one_line(&["objects.yaml:1:"]);
    let lists = "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[".repeat(60);
    plan(lists + &"]}".repeat(60)).fails_in_one_line(&["nested too deeply"]);
}

#[test]
fn aliases_do_not_blow_up() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    plan(text).fails_in_one_line(&["objects.yaml:", "aliases"]);
}

#[test]
fn things_that_are_not_objects_are_refused() {
    plan("hello\n").fails_in_one_line(&["objects.yaml:1", "expected a Kubernetes object"]);
    plan("[1, 2]\n").fails_with(&["objects.yaml:1"]);
    plan("apiVersion: v1\nmetadata: {name: a}\n").fails_in_one_line(&["there is no kind"]);
    plan("kind: Pod\nmetadata: {name: a}\n").fails_in_one_line(&["Pod a", "no apiVersion"]);
    plan("apiVersion: v1\nkind: 5\n").fails_in_one_line(&["objects.yaml:1", "quotes"]);
}

#[test]
fn unknown_kinds_are_skipped_with_a_warning() {
    let text = documents(&[
        &good(),
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}",
    ]);
    plan(text).exits(0).warns(&["Service", "skipped"]);
}

#[test]
fn bad_arguments_exit_with_one() {
    joiner(&["plan"]).fails_with(&["--filename"]);
    joiner(&["frobnicate"]).fails_with(&["unrecognized subcommand"]);
    joiner(&["plan", "-f", "-", "-o", "xml"]).fails_with(&["table, json, yaml"]);
    joiner(&["plan", "-f", "-", "--region", "moon-1"]).fails_with(&["unknown region", "us-east-1"]);
    let missing = ["plan", "-f", "-", "--instance-types", "/no/such/types.json"];
    joiner(&missing).fails_in_one_line(&["cannot read", "/no/such/types.json"]);
}
