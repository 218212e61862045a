//! `catalog`.

use serde_json::Value;

use crate::cli::support::{any_pool, documents, joiner, plan_on, small_pod};

fn names(args: &[&str]) -> Vec<String> {
    let mut all = vec!["catalog", "-o", "json"];
    all.extend_from_slice(args);
    let types = joiner(&all).exits(0).json();
    let types = types.as_array().expect("a list of types");
    types
        .iter()
        .map(|kind| kind["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn families_sizes_and_patterns_choose_types() {
    let family = names(&["--family", "m7g", "--vcpu", "2..8"]);
    assert_eq!(family, ["m7g.large", "m7g.xlarge", "m7g.2xlarge"]);
    assert_eq!(names(&["--name", "m5.4x"]), ["m5.4xlarge"]);
    assert!(
        names(&["--name", "*.metal"])
            .iter()
            .all(|name| name.ends_with(".metal"))
    );
    assert!(
        names(&["--gpu", "h100"])
            .iter()
            .all(|name| name.starts_with("p5"))
    );
}

#[test]
fn prices_order_and_limit_the_list() {
    let price = |kind: &Value| {
        let offerings = kind["offerings"].as_array().expect("offerings");
        let prices = offerings
            .iter()
            .filter_map(|offering| offering["Price"].as_f64());
        prices.fold(f64::INFINITY, f64::min)
    };
    let args = [
        "catalog", "--sort", "price", "--limit", "10", "--vcpu", "4..", "-o", "json",
    ];
    let types = joiner(&args).exits(0).json();
    let prices: Vec<f64> = types.as_array().unwrap().iter().map(price).collect();
    assert_eq!(prices.len(), 10);
    assert!(prices.is_sorted(), "{prices:?}");
}

#[test]
fn zones_and_capacity_types_choose_offerings() {
    let args = [
        "--family",
        "m7g",
        "--zone",
        "us-east-1a",
        "--capacity-type",
        "spot",
    ];
    let mut all = vec!["catalog", "-o", "json"];
    all.extend_from_slice(&args);
    let text = joiner(&all).exits(0).stdout;
    assert!(text.contains("us-east-1a") && !text.contains("us-east-1b"));
    assert!(text.contains("\"spot\"") && !text.contains("\"on-demand\""));
}

#[test]
fn the_list_is_a_catalog_for_a_plan() {
    let args = [
        "catalog",
        "--family",
        "m7g",
        "--zone",
        "us-east-1a",
        "-o",
        "json",
    ];
    let types = joiner(&args).exits(0).stdout;
    let manifests = documents(&[&any_pool(), &small_pod("web")]);
    let plan = plan_on(&types, manifests, &["-o", "json"]).exits(0).json();
    let launch = &plan["newNodes"][0]["launch"];
    assert_eq!(launch["instanceType"], "m7g.medium");
    assert_eq!(launch["zone"], "us-east-1a");
}

#[test]
fn a_table_has_a_heading_and_says_when_it_is_empty() {
    joiner(&["catalog", "--family", "m7g"])
        .exits(0)
        .prints(&["TYPE", "VCPU", "m7g.large"]);
    joiner(&["catalog", "--family", "nope"])
        .exits(0)
        .prints(&["No instance type matches"]);
}

#[test]
fn bad_filters_are_errors() {
    joiner(&["catalog", "--vcpu", "16..4"]).fails_with(&["--vcpu", "is empty"]);
    joiner(&["catalog", "--vcpu", "x"]).fails_with(&["--vcpu", "write 4, 4..16"]);
    joiner(&["catalog", "--max-price", "nan"]).fails_with(&["--max-price", "not a price"]);
    joiner(&["catalog", "--zone", "mars"]).fails_with(&["unknown zone", "us-east-1a"]);
    joiner(&["catalog", "--arch", "x86"]).fails_with(&["amd64, arm64"]);
}
