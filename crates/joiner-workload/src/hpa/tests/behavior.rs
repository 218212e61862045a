use super::*;

/// A size and a wanted size: the metric is in whole replicas.
fn wants(current: i32, wanted: i32, behavior: Value) -> Case {
    let millis = i64::from(wanted) * 1000;
    let case = Case::new(1, 1000, current).external("AverageValue", "1", &[millis]);
    case.behavior(behavior)
}

/// Rules without windows.
fn rules(up: Value, down: Value) -> Value {
    json!({
        "scaleUp": {"stabilizationWindowSeconds": 0, "policies": up},
        "scaleDown": {"stabilizationWindowSeconds": 0, "policies": down},
    })
}

fn pods(value: i32) -> Value {
    json!({"type": "Pods", "value": value, "periodSeconds": 60})
}

fn percent(value: i32) -> Value {
    json!({"type": "Percent", "value": value, "periodSeconds": 60})
}

fn up(policies: &[Value]) -> Value {
    rules(json!(policies), json!([percent(100)]))
}

fn down(policies: &[Value]) -> Value {
    rules(json!([percent(100)]), json!(policies))
}

#[test]
fn hpa_56_an_older_recommendation_holds_a_decrease_up() {
    let case = Case::new(1, 100, 5).qps("100", &[40_000; 5]);
    let ran = case.recommended(&[(10, 600), (4, 60)]).run();
    assert_eq!(ran.decision.recommendation, Some(2));
    assert_eq!((ran.desired(), ran.able()), (4, "SucceededRescale"));
    let case = Case::new(1, 100, 4).qps("100", &[40_000; 4]);
    let ran = case.recommended(&[(10, 600), (4, 60)]).run();
    assert_eq!((ran.desired(), ran.able()), (4, "ScaleDownStabilized"));
}

#[test]
fn hpa_57_recommendations_that_are_too_old_are_overwritten() {
    for (log, stable, length) in [
        (&[(4, 120), (5, 60)][..], 5, 3),
        (&[(1, 120), (2, 60)], 3, 3),
        (&[(10, 600), (9, 540)], 3, 2),
    ] {
        let case = Case::new(1, 100, 6).external("AverageValue", "1", &[3000]);
        let ran = case.recommended(log).run();
        let memory = ran.conclusion.memory.recommendations.as_ref().unwrap();
        assert_eq!((ran.desired(), memory.len()), (stable, length), "{log:?}");
    }
}

fn windows(up: i32, down: i32) -> Value {
    let all = percent(1000);
    json!({
        "scaleUp": {"stabilizationWindowSeconds": up, "policies": [all]},
        "scaleDown": {"stabilizationWindowSeconds": down, "policies": [all]},
    })
}

#[test]
fn hpa_58_the_window_downwards_keeps_the_largest() {
    let case = wants(100, 3, windows(0, 180));
    assert_eq!(case.recommended(&[(4, 120), (5, 60)]).run().desired(), 5);
}

#[test]
fn hpa_59_the_window_upwards_keeps_the_smallest() {
    let case = wants(1, 7, windows(300, 0));
    assert_eq!(case.recommended(&[(4, 120), (5, 60)]).run().desired(), 4);
}

#[test]
fn hpa_60_an_older_larger_one_does_not_raise_the_size() {
    let ran = wants(2, 1, windows(300, 300))
        .recommended(&[(3, 180)])
        .run();
    assert_eq!((ran.desired(), ran.able()), (2, "ScaleDownStabilized"));
}

#[test]
fn hpa_61_an_older_smaller_one_does_not_lower_it() {
    let ran = wants(2, 3, windows(300, 300))
        .recommended(&[(1, 180)])
        .run();
    assert_eq!((ran.desired(), ran.able()), (2, "ScaleUpStabilized"));
}

#[test]
fn hpa_62_what_is_older_than_both_windows_is_overwritten() {
    let case = wants(5, 5, windows(60, 120));
    let ran = case
        .recommended(&[(4, 300), (6, 200), (5, 90), (3, 30)])
        .run();
    let log = ran.conclusion.memory.recommendations.unwrap();
    let sizes: Vec<i32> = log.iter().map(|r| r.replicas).collect();
    assert_eq!(sizes, [4, 5, 5, 3]);
}

#[test]
fn hpa_64_by_default_sizes_double_or_grow_by_four() {
    assert_eq!(wants(10, 50, json!({})).run().desired(), 20);
    assert_eq!(wants(2, 50, json!({})).run().desired(), 6);
}

#[test]
fn hpa_65_the_policy_that_allows_the_most_counts() {
    for (policies, size) in [
        (vec![pods(100), percent(100)], 110),
        (vec![pods(2), percent(100)], 20),
        (vec![percent(200)], 30),
    ] {
        let ran = wants(10, 500, up(&policies)).run();
        assert_eq!((ran.desired(), ran.limited()), (size, "ScaleUpLimit"));
    }
}

#[test]
fn hpa_66_growth_in_percent_is_rounded_up() {
    assert_eq!(wants(3, 8, up(&[percent(1)])).run().desired(), 4);
}

#[test]
fn hpa_67_on_the_way_down_it_is_the_lowest_limit() {
    let ran = wants(100, 5, down(&[pods(20), percent(1)])).run();
    assert_eq!((ran.desired(), ran.limited()), (80, "ScaleDownLimit"));
    assert_eq!(
        wants(100, 5, down(&[pods(2), percent(1)])).run().desired(),
        98
    );
}

#[test]
fn hpa_68_what_is_within_the_limit_is_not_limited() {
    let ran = wants(10, 5, down(&[percent(50)])).run();
    assert_eq!((ran.desired(), ran.limited()), (5, "DesiredWithinRange"));
}

#[test]
fn hpa_69_growth_of_the_period_counts() {
    let case = |policy| wants(100, 500, up(&[policy])).changed(&[1, 5, 9], &[]);
    assert_eq!(case(pods(150)).run().desired(), 235);
    assert_eq!(case(percent(200)).run().desired(), 255);
    let ran = case(pods(5)).run();
    assert_eq!((ran.desired(), ran.limited()), (100, "ScaleUpLimit"));
}

#[test]
fn hpa_70_so_does_what_went_meanwhile() {
    let case = wants(6, 100, up(&[percent(300)])).changed(&[4], &[2]);
    assert_eq!(case.run().desired(), 16);
}

#[test]
fn hpa_71_likewise_on_the_way_down() {
    let case = |policy, wanted| wants(100, wanted, down(&[policy]));
    assert_eq!(
        case(percent(50), 5)
            .changed(&[], &[2, 4, 6])
            .run()
            .desired(),
        56
    );
    let ran = case(percent(10), 5).changed(&[], &[10, 10, 10]).run();
    assert_eq!((ran.desired(), ran.limited()), (100, "ScaleDownLimit"));
    assert_eq!(case(percent(1000), 5).changed(&[], &[2]).run().desired(), 5);
}

#[test]
fn hpa_72_what_came_meanwhile_counts_there() {
    let case = wants(10, 1, down(&[percent(50)])).changed(&[2], &[4]);
    assert_eq!(case.run().desired(), 6);
}

#[test]
fn hpa_73_the_policy_that_allows_the_least_can_count() {
    let rules = |current, wanted| {
        let mut behavior = rules(json!([pods(2), percent(50)]), json!([pods(2), percent(50)]));
        for direction in ["scaleUp", "scaleDown"] {
            behavior[direction]["selectPolicy"] = json!("Min");
        }
        wants(current, wanted, behavior).run().desired()
    };
    assert_eq!((rules(1, 100), rules(5, 1)), (2, 3));
}

#[test]
fn hpa_74_changes_are_remembered_as_long_as_a_policy_looks_back() {
    let without = Case::new(1, 100, 3)
        .external("AverageValue", "1", &[5000])
        .run();
    assert!(without.conclusion.memory.ups.is_empty());
    let event = |change, seconds| ScaleEvent {
        change,
        time: ago(seconds),
        outdated: false,
    };
    let after = |events: &[ScaleEvent]| {
        let case = wants(3, 5, up(&[pods(100)]));
        let ran = case.set(|case| case.memory.ups = events.to_vec()).run();
        let ups = ran.conclusion.memory.ups;
        ups.iter()
            .map(|e| (e.change, e.outdated))
            .collect::<Vec<_>>()
    };
    assert_eq!(after(&[event(1, 61)]), [(2, false)]);
    assert_eq!(after(&[event(1, 59)]), [(1, false), (2, false)]);
    assert_eq!(
        after(&[event(1, 90), event(2, 80), event(3, 10)]),
        [(1, true), (2, false), (3, false)]
    );
}
