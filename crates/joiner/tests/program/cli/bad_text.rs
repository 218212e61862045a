//! Files that are missing, empty, binary or not YAML or JSON at all.

use crate::cli::support::{
    TempFile, TempFolder, any_pool, documents, joiner, joiner_reading, plan, plan_with, pod,
    small_catalog, small_pod, unique,
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
fn nothing_at_all_is_an_error() {
    for text in ["", "# a comment\n", "---\n---\n", "null\n"] {
        plan(text).fails_in_one_line(&["no Kubernetes object in", "objects.yaml", "kubectl"]);
        let run = joiner_reading(&["plan", "-f", "-"], text.as_bytes());
        run.fails_in_one_line(&["no Kubernetes object in standard input"]);
    }
    let folder = TempFolder::new();
    folder.write("a.yaml", "# nothing\n");
    joiner(&["plan", "-f", folder.path()]).fails_in_one_line(&[folder.path(), "no Kubernetes"]);
}

#[test]
fn an_empty_file_among_others_is_warned_about() {
    let folder = TempFolder::new();
    folder.write("a.yaml", "# nothing\n");
    folder.write("b.yaml", &good());
    let run = joiner(&["plan", "-f", folder.path()]).exits(0);
    run.warns(&["a.yaml: there is no object in it"]);
}

#[test]
fn an_empty_list_needs_no_nodes() {
    let list = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}";
    plan(list).exits(0).prints(&["Nothing to place"]);
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
fn utf_16_is_called_by_its_name() {
    let bytes: Vec<u8> = "\u{feff}kind: Pod"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    plan(&bytes).fails_in_one_line(&["objects.yaml", "UTF-16", "save it as UTF-8"]);
}

#[test]
fn folders_are_read_as_kubectl_reads_them() {
    let folder = TempFolder::new();
    folder.write("a.yaml", &good());
    folder.write(".b.yaml", "not: an object");
    let inner = std::path::Path::new(folder.path()).join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("c.yml"), small_pod("other")).unwrap();
    #[cfg(unix)]
    for link in ["one", "two"] {
        std::os::unix::fs::symlink(folder.path(), inner.join(link)).unwrap();
    }
    let run = joiner(&["plan", "-f", folder.path()]).exits(0);
    run.prints(&["2 pods on 1 new node"]);
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
    plan("hello\n").fails_in_one_line(&["objects.yaml:1", "must be a Kubernetes object"]);
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
    let missing = ["plan", "-f", "-", "--instance-types", "/no/such/types.json"];
    joiner(&missing).fails_in_one_line(&["cannot read", "/no/such/types.json"]);
}

#[test]
fn a_region_that_is_not_there_is_told_in_short() {
    for command in [
        &["plan", "-f", "-"][..],
        &["catalog"],
        &["sandbox"],
        &["demo"],
    ] {
        let run = |region: &str| joiner(&[command, &["--region", region]].concat());
        let far = run("moon-1");
        far.fails_in_one_line(&[
            "unknown region \"moon-1\"",
            "like us-east-1",
            "catalog --help",
        ]);
        assert!(far.stderr.len() < 160, "{far:?}");
        let near = run("us-east-3");
        near.fails_in_one_line(&["did you mean one of us-east-1, us-east-2", "catalog --help"]);
        assert!(near.stderr.len() < 160, "{near:?}");
        run("us_west_2").fails_in_one_line(&["did you mean us-west-2?"]);
    }
    joiner(&["catalog", "--help"])
        .exits(0)
        .prints(&["Regions:", "us-east-1", "eu-central-1"]);
}

#[test]
fn a_list_without_a_list_is_an_error() {
    plan("apiVersion: v1\nkind: List\nitems: 5\n").fails_in_one_line(&["items"]);
    plan("{\"apiVersion\": \"v1\", \"kind\": \"List\"}").fails_in_one_line(&["items"]);
}

#[test]
fn a_key_that_is_there_twice_is_an_error() {
    let text = documents(&[&any_pool(), &(small_pod("web") + "spec: {}\n")]);
    plan(text).fails_in_one_line(&["objects.yaml:18:1: Pod web: spec: ", "twice", "remove"]);
    let json = "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"web\"}, \
                \"spec\": {}, \"spec\": {}}";
    plan(json).fails_in_one_line(&["objects.yaml:1:", "Pod web: spec: ", "twice"]);
}

#[test]
fn control_characters_are_not_printed() {
    let odd = "\"a\\e[31mb\"";
    let named = documents(&[&any_pool(), &small_pod(odd)]);
    let spread = format!(
        "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {odd}, labelSelector: {{}}}}]"
    );
    let keyed = documents(&[&any_pool(), &pod("web", "{cpu: 1}", &spread)]);
    let bound = documents(&[
        &any_pool(),
        &pod("web", "{cpu: 1}", &format!("nodeName: {odd}")),
    ]);
    plan(&named).fails_in_one_line(&["Pod a\\u{1b}[31mb: metadata.name: ", "lower case"]);
    for text in [&named, &keyed, &bound] {
        for args in [
            &[][..],
            &["-o", "json"],
            &["-o", "yaml"],
            &["--explain", "web"],
        ] {
            let run = plan_with(text, args);
            assert!(
                !(run.stdout.clone() + &run.stderr).contains('\u{1b}'),
                "{run:?}"
            );
        }
    }
}

#[test]
fn a_catalog_among_manifests_is_recognized() {
    let file = TempFile::new("types.json", small_catalog());
    let run = joiner(&["plan", "-f", file.path()]);
    run.fails_in_one_line(&["types.json:1:2", "instance type", "--instance-types"]);
    let run = joiner(&["plan", "-f", "examples/own-catalog"]);
    run.fails_in_one_line(&["examples/own-catalog/types.json:", "--instance-types"]);
}

#[test]
fn ten_thousand_documents_are_read() {
    let pods: Vec<String> = (0..10_000)
        .map(|n| small_pod(&format!("web-{n}")))
        .collect();
    let mut parts: Vec<&str> = pods.iter().map(String::as_str).collect();
    let pool = any_pool();
    parts.push(&pool);
    plan(documents(&parts)).exits(0).prints(&["10000 pods on"]);
}
