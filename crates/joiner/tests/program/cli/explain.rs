//! `plan --explain`.

use crate::cli::support::{any_pool, documents, plan_with, pod, small_pod};

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
    run.prints(&[
        "pod default/huge",
        "OFFERINGS LEFT",
        "no type large enough",
        "0 with room for cpu 500",
        "The cheapest change that would help:\n  request ",
    ]);
}

#[test]
fn a_pod_that_is_nearly_there_is_proposed() {
    let run = plan_with(cluster(), &["--explain", "wep"]);
    run.fails_in_one_line(&["no pod \"wep\"", "did you mean default/web?"]);
}

#[test]
fn an_unknown_pod_is_an_error() {
    for name in ["nope", "other/web", "a/b/c"] {
        let run = plan_with(cluster(), &["--explain", name]);
        run.fails_in_one_line(&[&format!("no pod \"{name}\""), "namespace/pod"]);
    }
}

#[test]
fn the_explanation_comes_as_a_document_too() {
    let placed = plan_with(cluster(), &["--explain", "web", "-o", "json"]).exits(0);
    let placed = placed.json();
    assert_eq!(placed["pod"], "default/web");
    assert_eq!(placed["outcome"], "NewNode");
    assert_eq!(placed["newNode"]["name"], "general-1");
    assert_eq!(placed["newNode"]["instanceTypes"][0], "small");
    let pool = &placed["funnel"][0];
    assert_eq!(pool["nodePool"], "general");
    assert_eq!(pool["steps"][0]["offeringsLeft"], 6);
    assert!(pool["steps"][0]["after"].is_string());
    assert!(placed.get("reasons").is_none());
    let left = plan_with(cluster(), &["--explain", "huge", "-o", "json"]).exits(2);
    let left = left.json();
    assert_eq!(left["outcome"], "Unschedulable");
    let reason = left["reasons"][0].as_str().unwrap();
    assert!(reason.contains("no type large enough"), "{reason}");
    assert!(left.get("newNode").is_none());
    assert_eq!(left["changes"][0]["kind"], "ShrinkRequest");
    assert!(left["changes"][0]["pricePerHour"].as_f64().unwrap() > 0.0);
    assert!(placed.get("changes").is_none());
    plan_with(cluster(), &["--explain", "web", "-o", "yaml"])
        .exits(0)
        .prints(&["pod: default/web", "funnel:", "offeringsLeft: 6"]);
}
