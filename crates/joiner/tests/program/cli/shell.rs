//! Completions, manual pages, and being a plugin of kubectl.

use std::path::Path;
use std::process::Command;

use crate::cli::support::{TempFolder, joiner};

#[test]
fn every_shell_gets_a_script() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = joiner(&["completions", shell]).exits(0);
        script.prints(&["joiner", "sandbox", "preference-policy", "decision-log"]);
    }
    joiner(&["completions", "csh"]).fails_with(&["csh", "bash, elvish, fish"]);
}

#[test]
fn every_command_gets_a_page() {
    let folder = TempFolder::new();
    let pages = Path::new(folder.path()).join("man1");
    joiner(&["man", pages.to_str().unwrap()])
        .exits(0)
        .prints(&["man1/joiner.1"]);
    for (page, word) in [
        ("joiner.1", "completions"),
        ("joiner-plan.1", "instance\\-types"),
        ("joiner-why-pod.1", "decision\\-log"),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(
            text.contains(".TH") && text.contains(word),
            "{page}: {text}"
        );
    }
    joiner(&["man", "/dev/null/x"]).fails_in_one_line(&["cannot make the folder /dev/null/x"]);
}

/// Runs the program under the name by which kubectl finds plugins.
fn plugin(args: &[&str]) -> (Option<i32>, String) {
    let folder = TempFolder::new();
    let program = Path::new(folder.path()).join("kubectl-joiner");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_joiner"), &program).expect("a link is made");
    let output = Command::new(&program).args(args).output();
    let output = output.expect("the plugin starts");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("text"))
}

#[test]
fn a_plugin_speaks_as_kubectl_does() {
    let (code, help) = plugin(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(help.contains("Usage: kubectl joiner <COMMAND>"), "{help}");
    let (_, help) = plugin(&["why", "--help"]);
    assert!(help.contains("Usage: kubectl joiner why"), "{help}");
    assert!(help.contains("\n  kubectl joiner why pod web-"), "{help}");
    assert!(!help.contains("\n  joiner "), "{help}");
    let (_, help) = plugin(&["plan", "--help"]);
    assert!(help.contains("| kubectl joiner plan -f -"), "{help}");
    let flags = [
        "--kubeconfig",
        "/nowhere/k",
        "-n",
        "shop",
        "why",
        "pod",
        "web",
    ];
    let (code, said) = plugin(&flags);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("cannot read the kubeconfig /nowhere/k"),
        "{said}"
    );
    let plain = joiner(&["why", "--help"])
        .exits(0)
        .prints(&["Usage: joiner why"]);
    assert!(!plain.stdout.contains("kubectl joiner"), "{plain:?}");
}

#[test]
fn names_that_cannot_be_are_refused_as_names() {
    for name in ["a/b/c", "", "../../x", "Web", "web/"] {
        // Nobody listens there, and nobody is asked.
        let url = "http://127.0.0.1:1";
        let said = format!("{name:?} cannot be the name of");
        joiner(&["why", "pod", name, "--controller", url]).fails_in_one_line(&[&said]);
        let said = said + " a node";
        joiner(&["why", "node", name, "--controller", url]).fails_in_one_line(&[&said]);
    }
    let odd = joiner(&["why", "pod", "web", "-n", "A/b"]);
    odd.fails_in_one_line(&["\"A/b\" cannot be the name of a namespace"]);
}

#[test]
fn errors_are_said_once() {
    for args in [
        &["why", "pod", "web", "--kubeconfig", "/nope"][..],
        &["run", "--cloud", "simulated", "--kubeconfig", "/nope"],
    ] {
        let run = joiner(args);
        run.fails_in_one_line(&["cannot read the kubeconfig /nope: No such file"]);
        assert_eq!(run.stderr.matches("/nope").count(), 1, "{run:?}");
        assert_eq!(run.stderr.matches("No such file").count(), 1, "{run:?}");
    }
}

#[test]
fn a_context_that_is_not_there_is_told() {
    let folder = TempFolder::new();
    folder.write(
        "k",
        "apiVersion: v1\nkind: Config\ncontexts: [{name: kind, context: {cluster: c, user: u}}]\n",
    );
    let file = format!("{}/k", folder.path());
    let run = joiner(&[
        "why",
        "pod",
        "web",
        "--kubeconfig",
        &file,
        "--context",
        "kint",
    ]);
    run.fails_in_one_line(&["no context \"kint\"", "did you mean kind?"]);
}
