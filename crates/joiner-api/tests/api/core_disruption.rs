//! Core behaviors 1 to 12: durations, policies and budgets of NodePools.

use crate::support::{accepted, node_pool, probe, refused, with};
use joiner_api::admit;
use serde_json::{Value, json};

const EXPIRE: &str = "spec.template.spec.expireAfter";
const AFTER: &str = "spec.disruption.consolidateAfter";
const POLICY: &str = "spec.disruption.consolidationPolicy";
const GRACE: &str = "spec.template.spec.terminationGracePeriod";

fn texts(values: &[&str]) -> Vec<Value> {
    values.iter().map(|value| json!(value)).collect()
}

fn pool_with_budgets(budgets: Value) -> Value {
    with(
        node_pool(),
        "/spec/disruption",
        json!({"consolidateAfter": "0s", "budgets": budgets}),
    )
}

#[test]
fn core_11_1_01_defaults() {
    let mut pool = node_pool();
    assert!(admit(&mut pool).is_ok());
    assert_eq!(
        pool["spec"]["disruption"],
        json!({
            "budgets": [{"nodes": "10%"}],
            "consolidateAfter": "0s",
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
        })
    );
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "720h");
    let mut pool = with(
        node_pool(),
        "/spec/disruption",
        json!({"consolidateAfter": "1m"}),
    );
    assert!(admit(&mut pool).is_ok());
    assert_eq!(
        pool["spec"]["disruption"]["budgets"],
        json!([{"nodes": "10%"}])
    );
    let mut pool = with(node_pool(), "/status", json!({}));
    assert!(admit(&mut pool).is_ok());
    assert_eq!(pool["status"]["nodes"], 0);
}

#[test]
fn core_11_1_01_null_is_as_absent() {
    let mut pool = node_pool();
    pool["spec"]["disruption"] = Value::Null;
    pool["spec"]["template"]["spec"]["taints"] = Value::Null;
    pool["metadata"]["creationTimestamp"] = Value::Null;
    assert!(admit(&mut pool).is_ok());
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "0s");
    assert!(pool["spec"]["template"]["spec"].get("taints").is_none());
}

#[test]
fn core_11_1_02_expire_after() {
    probe(node_pool(), "/spec/template/spec/expireAfter", EXPIRE)
        .accepts(texts(&["30s", "1h30m5s", "Never", "1m1h", "720h"]))
        .refuses(
            "duration",
            texts(&[
                "-1h", "30d", "FooNever", "NeverFoo", "never", "", "1h ", "1.5h",
            ]),
        )
        .refuses("must be a string", [json!(30)]);
}

#[test]
fn core_11_1_03_consolidate_after() {
    probe(node_pool(), "/spec/disruption/consolidateAfter", AFTER)
        .accepts(texts(&["30s", "1h30m5s", "Never", "0s"]))
        .refuses(
            "duration",
            texts(&["-1h", "30d", "FooNever", "NeverFoo", ""]),
        );
    let pool = with(
        node_pool(),
        "/spec/disruption",
        json!({"consolidationPolicy": "WhenEmpty"}),
    );
    refused(pool, AFTER, "is required");
}

#[test]
fn core_11_1_04_policy_and_after_are_independent() {
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        for after in ["Never", "0s", "30s"] {
            let disruption = json!({"consolidationPolicy": policy, "consolidateAfter": after});
            accepted(with(node_pool(), "/spec/disruption", disruption));
        }
    }
}

#[test]
fn core_11_1_05_consolidation_policy() {
    let base = with(
        node_pool(),
        "/spec/disruption",
        json!({"consolidateAfter": "0s"}),
    );
    probe(base, "/spec/disruption/consolidationPolicy", POLICY)
        .accepts(texts(&[
            "WhenEmpty",
            "WhenEmptyOrUnderutilized",
            "Balanced",
        ]))
        .refuses(
            "must be one of",
            texts(&["WhenUnderutilized", "balanced", "whenempty", ""]),
        )
        .refuses("must be a string", [json!(1)]);
}

#[test]
fn core_11_1_06_termination_grace_period() {
    probe(
        node_pool(),
        "/spec/template/spec/terminationGracePeriod",
        GRACE,
    )
    .accepts(texts(&["30s", "1h30m"]))
    .refuses(
        "duration",
        texts(&["-30s", "30d", "Never", "30sx", "x30s", ""]),
    );
}

#[test]
fn core_11_1_07_budget_schedule() {
    let at = |schedule: &str| {
        pool_with_budgets(json!([{"nodes": "1", "schedule": schedule, "duration": "1h"}]))
    };
    let path = "spec.disruption.budgets[0].schedule";
    for schedule in ["* * * * *", "0 9 * * mon-fri", "@daily", "*/15 0-6 1 1 0"] {
        accepted(at(schedule));
    }
    // The pattern is loose on purpose: what cannot be read later allows no disruption.
    accepted(at("@dailyish"));
    accepted(at("a b c d e f"));
    for schedule in ["* * * *", "every day", "", "@never", "*****"] {
        refused(at(schedule), path, "cron expression");
    }
    let budget = json!([{"nodes": "1", "schedule": "* * * * *", "duration": "-1h"}]);
    refused(
        pool_with_budgets(budget),
        "spec.disruption.budgets[0].duration",
        "hours and minutes",
    );
}

#[test]
fn core_11_1_08_budget_duration() {
    let base = pool_with_budgets(json!([{"nodes": "1", "schedule": "@daily", "duration": "1h"}]));
    probe(
        base,
        "/spec/disruption/budgets/0/duration",
        "spec.disruption.budgets[0].duration",
    )
    .accepts(texts(&["1h", "20m", "1h20m", "1h20m0s", "8h0s"]))
    .refuses(
        "hours and minutes",
        texts(&["30s", "1h30s", "20m1h", "", "1d"]),
    );
}

#[test]
fn core_11_1_09_budget_nodes() {
    let base = pool_with_budgets(json!([{"nodes": "1"}]));
    probe(
        base,
        "/spec/disruption/budgets/0/nodes",
        "spec.disruption.budgets[0].nodes",
    )
    .accepts(texts(&["0", "1", "1000", "0%", "5%", "99%", "100%"]))
    .refuses(
        "share",
        texts(&["-10", "-10%", "1000%", "101%", "", "10 %", "1.5"]),
    )
    .refuses("quote it: \"10\"", [json!(10)]);
    let mut pool = pool_with_budgets(json!([{"reasons": ["Empty"]}]));
    assert!(admit(&mut pool).is_ok());
    assert_eq!(pool["spec"]["disruption"]["budgets"][0]["nodes"], "10%");
}

#[test]
fn core_11_1_10_schedule_goes_with_duration() {
    let path = "spec.disruption.budgets[0]";
    accepted(pool_with_budgets(json!([{"nodes": "1"}])));
    for schedule in [
        "@annually",
        "@yearly",
        "@monthly",
        "@weekly",
        "@midnight",
        "@hourly",
    ] {
        let budget = json!([{"nodes": "1", "schedule": schedule, "duration": "1h"}]);
        accepted(pool_with_budgets(budget));
    }
    refused(
        pool_with_budgets(json!([{"nodes": "1", "schedule": "@daily"}])),
        path,
        "go together",
    );
    refused(
        pool_with_budgets(json!([{"nodes": "1", "duration": "1h"}])),
        path,
        "go together",
    );
}

#[test]
fn core_11_1_11_one_bad_budget_spoils_all() {
    let budgets = json!([{"nodes": "10"}, {"nodes": "10%"}, {"nodes": "lots"}]);
    refused(
        pool_with_budgets(budgets),
        "spec.disruption.budgets[2].nodes",
        "share",
    );
    let many: Vec<Value> = (0..50).map(|_| json!({"nodes": "1"})).collect();
    accepted(pool_with_budgets(json!(many)));
    let many: Vec<Value> = (0..51).map(|_| json!({"nodes": "1"})).collect();
    refused(
        pool_with_budgets(json!(many)),
        "spec.disruption.budgets",
        "at most 50 items",
    );
}

#[test]
fn core_11_1_12_budget_reasons() {
    let base = pool_with_budgets(json!([{"nodes": "1"}]));
    let pointer = "/spec/disruption/budgets/0/reasons";
    probe(
        base.clone(),
        pointer,
        "spec.disruption.budgets[0].reasons[0]",
    )
    .accepts([
        json!([]),
        json!(["Drifted"]),
        json!(["Underutilized"]),
        json!(["Empty"]),
        json!(["Drifted", "Underutilized", "Empty"]),
    ])
    .refuses(
        "must be one of",
        [json!(["Expired"]), json!([""]), json!(["invalid"])],
    );
    probe(base, pointer, "spec.disruption.budgets[0].reasons[1]")
        .refuses("repeats", [json!(["Empty", "Empty"])]);
}
