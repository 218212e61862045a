use super::*;

const ZERO: &str = SCALED_TO_ZERO;

/// At zero, where metrics brought it or not.
fn at_zero(min: i32, by_metrics: bool, gate: bool) -> Case {
    let case = Case::new(min, 10, 0).object("Value", "15", 20_000);
    case.set(|case| {
        let status = if by_metrics { "True" } else { "False" };
        let condition = json!({"type": ZERO, "status": status, "reason": ZERO});
        case.status = json!({"conditions": [condition]});
        case.settings.gates.scale_to_zero = gate;
    })
}

#[test]
fn hpa_78_metrics_bring_pods_back_from_zero() {
    let ran = at_zero(0, true, true).run();
    assert_eq!(
        (ran.desired(), ran.condition(ZERO)),
        (2, Some((Truth::False, "NotScaledToZero")))
    );
}

#[test]
fn hpa_79_without_tolerance() {
    let case = Case::new(0, 10, 0)
        .object("Value", "20", 20_000)
        .set(|case| {
            case.status = json!({"conditions": [{"type": ZERO, "status": "True"}]});
            case.settings.gates.scale_to_zero = true;
        });
    assert_eq!(case.run().desired(), 1);
}

#[test]
fn hpa_80_not_where_zero_was_set_by_hand() {
    for gate in [true, false] {
        let ran = at_zero(0, false, gate).run();
        assert_eq!((ran.desired(), ran.active()), (0, "ScalingDisabled"));
    }
}

#[test]
fn hpa_81_the_fewest_are_raised_while_there_are_none() {
    let quiet = |gate| {
        let mut case = at_zero(2, true, gate);
        case.readings = vec![Ok(Reading::Object(vec![0]))];
        case
    };
    let ran = quiet(true).run();
    assert_eq!((ran.desired(), ran.limited()), (2, "TooFewReplicas"));
    assert_eq!(quiet(true).behavior(json!({})).run().desired(), 2);
    assert_eq!(quiet(false).run().active(), "ScalingDisabled");
}

#[test]
fn hpa_82_another_change_of_size_ends_the_condition() {
    let case = |gate| {
        Case::new(1, 10, 3).cpu(100, &[2000; 3]).set(|case| {
            case.status = json!({"conditions": [{"type": ZERO, "status": "True"}]});
            case.settings.gates.scale_to_zero = gate;
        })
    };
    assert_eq!(
        case(true).run().condition(ZERO),
        Some((Truth::False, "NotScaledToZero"))
    );
    assert_eq!(case(false).run().condition(ZERO), None);
}

#[test]
fn hpa_83_usage_of_pods_says_nothing_without_pods() {
    let case = Case::new(1, 10, 0).cpu(100, &[2000]).set(|case| {
        case.status = json!({"conditions": [{"type": ZERO, "status": "True"}]});
        case.settings.gates.scale_to_zero = true;
    });
    let mut hpa = case.hpa();
    hpa.spec.min_replicas = 0;
    let ran = case.run_as(&hpa);
    assert_eq!((ran.desired(), ran.active()), (0, "ScalingDisabled"));
}

#[test]
fn metrics_that_lead_to_zero_are_remembered() {
    let case = Case::new(0, 10, 2).object("Value", "15", 0);
    let ran = case
        .set(|case| case.settings.gates.scale_to_zero = true)
        .run();
    assert_eq!(
        (ran.desired(), ran.condition(ZERO)),
        (0, Some((Truth::True, ZERO)))
    );
}
