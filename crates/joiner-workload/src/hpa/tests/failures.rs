use super::*;

#[test]
fn hpa_45_an_answer_without_items_is_an_error() {
    let ran = Case::new(1, 6, 4).cpu(100, &[]).set(|case| {
        case.status = json!({"desiredReplicas": 4});
    });
    let ran = ran.run();
    assert_eq!(
        (ran.desired(), ran.active()),
        (4, "FailedGetResourceMetric")
    );
    assert_eq!(ran.decision.scale_to, None);
}

#[test]
fn hpa_46_a_container_without_a_request_is_an_error() {
    let case = Case::new(1, 6, 3).cpu(100, &[1000; 3]);
    let ran = case
        .with(&[1], |pod| pod.containers[0].requests.clear())
        .run();
    assert_eq!(ran.active(), "FailedGetResourceMetric");
    let error = ran.decision.error.unwrap();
    assert!(
        error.contains("container app of pod web-1 requests no cpu"),
        "{error}"
    );
}

#[test]
fn hpa_47_samples_of_other_pods_are_an_error() {
    let case = Case::new(1, 6, 3).set(|case| {
        for (ix, pod) in case.pods.iter_mut().enumerate() {
            pod.name = format!("api-{ix}");
        }
    });
    let ran = case.cpu(100, &[1000; 3]).run();
    let error = ran.decision.error.unwrap();
    assert!(
        error.contains("are those of pods that the selector chooses"),
        "{error}"
    );
}

/// A metric of a type that this version does not know, and one that works.
fn with_unknown(kind: &str, millis: &[i64]) -> Ran {
    let case = Case::new(1, 10, 3).cpu(100, millis);
    let mut hpa = case.hpa();
    let kind = kind.to_owned();
    hpa.spec.metrics.insert(0, Metric::Unknown { kind });
    hpa.status.desired_replicas = 3;
    let case = case.set(|case| {
        case.readings
            .insert(0, Err("nothing is known of it".to_owned()));
    });
    case.run_as(&hpa)
}

#[test]
fn hpa_48_an_unknown_metric_does_not_stop_an_increase() {
    let ran = with_unknown("Cloud", &[2000; 3]);
    assert_eq!((ran.desired(), ran.active()), (6, "ValidMetricFound"));
    assert!(
        ran.decision
            .error
            .unwrap()
            .contains("1 of 2 metrics failed")
    );
}

#[test]
fn hpa_49_but_a_decrease() {
    for kind in ["Cloud", ""] {
        let ran = with_unknown(kind, &[200; 3]);
        assert_eq!(
            (ran.desired(), ran.active()),
            (3, "InvalidMetricSourceType")
        );
        assert_eq!(ran.decision.scale_to, None);
    }
}

#[test]
fn hpa_50_when_all_metrics_fail_the_first_one_gives_the_reason() {
    let case = Case::new(1, 6, 3).qps("10", &[]).cpu(100, &[]);
    let ran = case.run();
    assert_eq!(
        ran.condition("ScalingActive"),
        Some((Truth::False, "FailedGetPodsMetric"))
    );
    assert_eq!(ran.able(), "SucceededGetScale");
    assert_eq!(
        ran.events(),
        [
            "FailedGetPodsMetric",
            "FailedGetResourceMetric",
            "FailedComputeMetricsReplicas"
        ]
    );
}

#[test]
fn hpa_51_a_selector_must_be_there_and_parse() {
    for (selector, event) in [
        ("", "SelectorRequired"),
        ("cant touch this", "InvalidSelector"),
    ] {
        let case = Case::new(1, 6, 3).cpu(100, &[1000; 3]).set(|case| {
            case.scale.as_mut().unwrap().selector = selector.to_owned();
        });
        let ran = case.run();
        assert_eq!(ran.active(), "InvalidSelector");
        assert_eq!(ran.events(), [event, "FailedComputeMetricsReplicas"]);
        assert!(ran.decision.proposals.is_empty());
    }
}

#[test]
fn hpa_52_pods_must_not_be_those_of_another_autoscaler() {
    let case = Case::new(1, 6, 3).cpu(100, &[2000; 3]);
    let ran = case
        .set(|case| case.rivals = vec!["shop/other".to_owned()])
        .run();
    assert_eq!(ran.active(), "AmbiguousSelector");
    let conditions = ran.conclusion.status.conditions;
    let message = &conditions.get("ScalingActive").unwrap().message;
    assert!(message.contains("shop/other"), "{message}");
}

#[test]
fn hpa_53_without_a_scale_only_that_is_said() {
    let case = Case::new(1, 6, 3).cpu(100, &[2000; 3]).set(|case| {
        case.scale = Err("it is away".to_owned());
        case.memory = Memory::default();
    });
    let ran = case.run();
    assert_eq!(
        ran.condition("AbleToScale"),
        Some((Truth::False, "FailedGetScale"))
    );
    assert_eq!(ran.conclusion.status.conditions.iter().count(), 1);
    assert_eq!(ran.conclusion.memory, Memory::default());
    assert_eq!(ran.events(), ["FailedGetScale"]);
}

#[test]
fn hpa_54_a_size_that_cannot_be_written_is_not_stored() {
    let case = Case::new(1, 10, 3).cpu(100, &[2000; 3]).set(|case| {
        case.written = Written::Failed("it is away".to_owned());
        case.status = json!({"desiredReplicas": 3});
    });
    let ran = case.behavior(json!({})).run();
    assert_eq!(ran.decision.scale_to, Some(6));
    assert_eq!((ran.desired(), ran.able()), (3, "FailedUpdateScale"));
    assert_eq!(ran.conclusion.status.last_scale_time, None);
    assert!(ran.conclusion.memory.ups.is_empty());
    assert_eq!(ran.events(), ["FailedRescale"]);
}

#[test]
fn hpa_88_a_recent_change_blocks_nothing() {
    let case = Case::new(1, 10, 3).cpu(100, &[2000; 3]).set(|case| {
        case.status = json!({"lastScaleTime": ago(1).to_string()});
    });
    assert_eq!(case.run().desired(), 6);
}

#[test]
fn hpa_89_the_status_is_the_same_when_nothing_changed() {
    let case = || Case::new(1, 10, 3).cpu(100, &[1000; 3]);
    let first = case().run().conclusion.status;
    let second = case().set(|case| case.status = first.to_json()).run();
    assert_eq!(second.conclusion.status, first);
}

#[test]
fn hpa_90_a_rescale_is_told_when_the_size_changed() {
    let ran = Case::new(1, 10, 3).cpu(100, &[2000; 3]).run();
    let [event] = ran.conclusion.events.as_slice() else {
        panic!("{:?}", ran.conclusion.events)
    };
    assert_eq!(
        event.message,
        "New size: 6; reason: cpu resource utilization (percentage of request) above target"
    );
    let same = Case::new(1, 10, 3).cpu(100, &[1000; 3]).run();
    assert!(same.events().is_empty());
}
