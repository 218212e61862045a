use super::*;
use crate::condition::Conditions;

/// An object with these sizes.
fn sized(idle: Option<i32>, min: i32, change: impl FnOnce(&mut Value)) -> ScaledObject {
    object(&json!([redis("a"), redis("b")]), |object| {
        object["spec"]["idleReplicaCount"] = json!(idle);
        object["spec"]["minReplicaCount"] = json!(min);
        change(object);
    })
}

fn at(current: i32, last_active_ago: Option<i64>) -> Target {
    Target {
        current,
        last_active: last_active_ago.map(ago),
    }
}

fn run(object: &ScaledObject, figures: &[Option<f64>], target: Target) -> Execution {
    let pause = Pause::read(&object.annotations).unwrap();
    execute(object, &pause, &look(object, figures), target, now())
}

const QUIET: [Option<f64>; 2] = [Some(0.0), Some(0.0)];
const BUSY: [Option<f64>; 2] = [Some(0.0), Some(5.0)];

#[test]
fn keda_39_the_fewest_are_there_at_once() {
    let ran = run(&sized(None, 5, |_| {}), &QUIET, at(1, Some(1)));
    assert_eq!(ran.scale_to, Some(5));
    assert_eq!(
        said(&ran.conditions, "Active"),
        Some((Truth::False, "ScalerNotActive"))
    );
    assert_eq!(ran.events(Ok(())), None);
}

#[test]
fn keda_40_quiet_triggers_lead_to_zero_after_a_while() {
    let object = sized(None, 0, |_| {});
    let ran = run(&object, &QUIET, at(10, Some(301)));
    assert_eq!(ran.scale_to, Some(0));
    assert_eq!(
        ran.events(Ok(())).unwrap().reason,
        "KEDAScaleTargetDeactivated"
    );
    let failed = ran.events(Err("it is away")).unwrap();
    assert_eq!(
        (failed.reason, failed.warning),
        ("KEDAScaleTargetDeactivationFailed", true)
    );
    let waits = run(&object, &QUIET, at(10, Some(300)));
    assert_eq!(waits.scale_to, None);
    assert_eq!(
        said(&waits.conditions, "Active"),
        Some((Truth::False, "ScalerCooldown"))
    );
    assert_eq!(run(&object, &QUIET, at(10, None)).scale_to, Some(0));
    let young = sized(None, 0, |object| {
        object["spec"]["initialCooldownPeriod"] = json!(3600)
    });
    assert_eq!(run(&young, &QUIET, at(10, None)).scale_to, None);
}

#[test]
fn keda_41_44_an_active_trigger_leads_from_zero_and_is_named() {
    for (min, expected) in [(0, 1), (3, 3)] {
        let ran = run(&sized(None, min, |_| {}), &BUSY, at(0, None));
        assert_eq!((ran.scale_to, ran.was_active), (Some(expected), true));
        assert_eq!(
            said(&ran.conditions, "Active"),
            Some((Truth::True, "ScalerActive"))
        );
        let event = ran.events(Ok(())).unwrap();
        assert_eq!(event.reason, "KEDAScaleTargetActivated");
        let message = format!("scaled from 0 to {expected} replicas, triggered by s1-redis");
        assert_eq!(event.message, message);
    }
    let running = run(&sized(None, 0, |_| {}), &BUSY, at(4, None));
    assert_eq!((running.scale_to, running.was_active), (None, true));
}

#[test]
fn keda_42_idle_is_another_size_than_the_fewest() {
    let object = sized(Some(0), 5, |_| {});
    assert_eq!(run(&object, &QUIET, at(10, None)).scale_to, Some(0));
    assert_eq!(run(&object, &BUSY, at(0, None)).scale_to, Some(5));
    assert_eq!(run(&object, &QUIET, at(0, None)).scale_to, None);
}

fn annotated(entries: &[(&str, &str)]) -> ScaledObject {
    sized(None, 0, |object| {
        object["metadata"]["annotations"] = json!(annotations(entries))
    })
}

#[test]
fn keda_43_paused_objects_stay() {
    for text in ["true", "what"] {
        let object = annotated(&[("paused", text)]);
        let ran = run(&object, &BUSY, at(0, None));
        assert_eq!(ran.scale_to, None);
        assert_eq!(
            said(&ran.conditions, "Paused"),
            Some((Truth::True, "ScaledObjectPaused"))
        );
    }
    assert_eq!(
        run(&annotated(&[("paused", "false")]), &BUSY, at(0, None)).scale_to,
        Some(1)
    );
    let at_four = Pause::read(&annotations(&[("paused-replicas", "4")])).unwrap();
    assert_eq!((at_four.whole, at_four.replicas), (true, Some(4)));
    let error = Pause::read(&annotations(&[("paused-replicas", "many")])).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("must be a whole number, not \"many\"")
    );
    let resumed = Pause::default().condition();
    assert_eq!(
        (resumed.status, resumed.reason),
        (Truth::False, "ScaledObjectUnpaused")
    );
}

#[test]
fn keda_45_one_way_can_be_paused() {
    let no_in = annotated(&[("paused-scale-in", "true")]);
    assert_eq!(run(&no_in, &QUIET, at(10, None)).scale_to, None);
    assert_eq!(run(&no_in, &BUSY, at(0, None)).scale_to, Some(1));
    let no_out = annotated(&[("paused-scale-out", "true")]);
    assert_eq!(run(&no_out, &BUSY, at(0, None)).scale_to, None);
    assert_eq!(run(&no_out, &QUIET, at(10, None)).scale_to, Some(0));
    let idle = sized(Some(0), 5, |object| {
        object["metadata"]["annotations"] = json!(annotations(&[("paused-scale-in", "true")]));
    });
    assert_eq!(run(&idle, &QUIET, at(10, None)).scale_to, None);
}

#[test]
fn keda_46_an_annotation_can_make_an_object_active() {
    let ran = run(
        &annotated(&[("force-activation", "true")]),
        &QUIET,
        at(0, None),
    );
    assert_eq!((ran.scale_to, ran.was_active), (Some(1), true));
    let message = ran.events(Ok(())).unwrap().message;
    assert!(message.ends_with("as the annotation autoscaling.keda.sh/force-activation says"));
}

#[test]
fn keda_47_the_health_of_the_hpa_is_repeated() {
    let hpa = |status, reason| {
        let mut conditions = Conditions::default();
        conditions.set(Said::new("ScalingActive", status, reason, ""), now());
        let said = hpa_active(Some(&conditions)).unwrap();
        (said.status, said.reason)
    };
    assert_eq!(hpa_active(None), None);
    assert_eq!(hpa_active(Some(&Conditions::default())), None);
    assert_eq!(
        hpa(Truth::True, "ValidMetricFound"),
        (Truth::True, "HPAActive")
    );
    assert_eq!(
        hpa(Truth::False, "FailedGetExternalMetric"),
        (Truth::False, "FailedGetExternalMetric")
    );
    assert_eq!(
        hpa(Truth::False, ""),
        (Truth::False, "HPAMetricsUnavailable")
    );
    assert_eq!(
        hpa(Truth::False, "ScalingDisabled"),
        (Truth::True, "ScalingDisabled")
    );
}

#[test]
fn keda_59_one_active_trigger_is_enough() {
    let object = sized(None, 0, |_| {});
    let half = look(&object, &[None, Some(5.0)]);
    assert!(half.is_active && half.errors.len() == 1);
    let ran = run(&object, &[None, Some(5.0)], at(2, None));
    assert_eq!(
        said(&ran.conditions, "Ready"),
        Some((Truth::Unknown, "PartialTriggerError"))
    );
    assert!(!ran.was_active);
    let all = run(&object, &[None, None], at(2, None));
    assert_eq!(
        said(&all.conditions, "Ready"),
        Some((Truth::False, "TriggerError"))
    );
    assert_eq!(all.scale_to, None);
}

#[test]
fn keda_64_usage_of_pods_makes_an_object_active_alone() {
    let only = object(&json!([cpu()]), |object| {
        object["spec"]["minReplicaCount"] = json!(1)
    });
    assert!(look(&only, &[]).is_active);
    let mixed = object(&json!([cpu(), redis("")]), |_| {});
    assert!(!look(&mixed, &[Some(0.0)]).is_active);
    assert!(look(&mixed, &[Some(1.0)]).is_active);
}

#[test]
fn a_target_that_cannot_be_read_is_told() {
    let said = unreadable("it is away");
    assert_eq!(
        (said.status, said.reason),
        (Truth::False, "ErrorGettingCurrentReplicas")
    );
}
