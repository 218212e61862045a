use super::*;

#[test]
fn hpa_29_idle_pods_leave_the_fewest() {
    let ran = Case::new(2, 6, 3).cpu(100, &[0; 3]).run();
    assert_eq!((ran.desired(), ran.limited()), (2, "TooFewReplicas"));
    let ran = Case::new(0, 6, 3)
        .cpu(100, &[0; 3])
        .object("Value", "1", 0)
        .run();
    assert_eq!((ran.desired(), ran.limited()), (0, "DesiredWithinRange"));
}

#[test]
fn hpa_30_zero_replicas_turn_scaling_off() {
    let case = Case::new(3, 6, 0).cpu(100, &[1000]);
    let scale = case.scale.clone().unwrap();
    assert!(!wants_readings(&case.hpa(), &scale, &case.settings));
    let ran = case.run();
    assert_eq!((ran.desired(), ran.able()), (0, "SucceededGetScale"));
    assert_eq!(ran.active(), "ScalingDisabled");
    assert!(ran.decision.proposals.is_empty());
}

#[test]
fn hpa_31_below_the_fewest_no_metric_is_needed() {
    let ran = Case::new(3, 6, 2).cpu(100, &[100]).run();
    assert_eq!((ran.desired(), ran.able()), (3, "SucceededRescale"));
    assert_eq!(ran.conclusion.status.conditions.iter().count(), 1);
    assert_eq!(
        ran.decision.reason,
        "Current number of replicas below Spec.MinReplicas"
    );
}

#[test]
fn hpa_32_nor_above_the_most() {
    let ran = Case::new(3, 5, 10).cpu(100, &[100]).run();
    assert_eq!((ran.desired(), ran.active()), (5, ""));
    assert_eq!(
        ran.conclusion.status.to_json()["currentMetrics"],
        Value::Null
    );
}

#[test]
fn hpa_33_very_much_usage_is_capped() {
    let ran = Case::new(1, 6, 3).cpu(50, &[20_000; 3]).run();
    assert_eq!((ran.desired(), ran.limited()), (6, "TooManyReplicas"));
}

#[test]
fn hpa_63_without_rules_sizes_at_most_double() {
    let ran = Case::new(1, 2000, 3).qps("1m", &[1000; 3]).run();
    assert_eq!((ran.desired(), ran.limited()), (6, "ScaleUpLimit"));
    let ran = Case::new(1, 21, 20).qps("1m", &[1000; 20]).run();
    assert_eq!((ran.desired(), ran.limited()), (21, "TooManyReplicas"));
}
