//! `plan --explain`.

use crate::support::{any_pool, documents, plan_with, pod, small_pod};

fn cluster() -> String {
    documents(&[
        &any_pool(),
        &small_pod("web"),
        &pod("huge", "{cpu: 500}", ""),
    ])
}

#[test]
fn a_placed_pod_has_a_funnel_and_a_place() {
    for name in ["web", "default/web"] {
        let run = plan_with(cluster(), &["--explain", name]);
        run.prints(&[
            "pod default/web",
            "OFFERINGS LEFT",
            "general",
            "goes to new node general-1",
        ]);
    }
}

#[test]
fn a_pod_left_over_has_a_reason() {
    let run = plan_with(cluster(), &["--explain", "huge"]).exits(2);
    run.prints(&["pod default/huge", "OFFERINGS LEFT", "no type large enough"]);
}

#[test]
fn an_unknown_pod_is_an_error() {
    for name in ["nope", "other/web", "a/b/c"] {
        let run = plan_with(cluster(), &["--explain", name]);
        run.fails_in_one_line(&[&format!("no pod \"{name}\""), "namespace/pod"]);
    }
}
