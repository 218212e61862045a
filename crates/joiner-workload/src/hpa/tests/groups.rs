use super::*;
use crate::hpa::pods::{Groups, Sample, Samples};

/// Into which group a pod goes for a metric of a resource.
fn group(resource: &str, change: impl Fn(&mut Pod)) -> &'static str {
    let mut pod = pod("web-0");
    change(&mut pod);
    let sample = Sample {
        time: now(),
        window: SignedDuration::from_secs(30),
        value: 1,
    };
    let samples = Samples::from([("web-0".to_owned(), sample)]);
    let settings = Settings {
        cpu_initialization_period: SignedDuration::from_mins(2),
        initial_readiness_delay: SignedDuration::from_secs(10),
        ..Settings::default()
    };
    let groups = Groups::of(&[&pod], &samples, resource, &settings, now());
    match (groups.n_ready, groups.unready.len(), groups.ignored.len()) {
        (1, 0, 0) => "counted",
        (0, 1, 0) => "unready",
        (0, 0, 1) => "ignored",
        _ => "missing",
    }
}

fn since(pod: &mut Pod, status: Truth, started: i64, since: i64) {
    pod.started = Some(ago(started));
    let since = ago(since);
    pod.ready = Some(Readiness { status, since });
}

#[test]
fn hpa_84_samples_must_be_of_a_time_when_the_pod_was_ready() {
    assert_eq!(group("cpu", |pod| pod.ready = None), "unready");
    assert_eq!(group("memory", |pod| pod.ready = None), "counted");
    assert_eq!(
        group("cpu", |pod| since(pod, Truth::True, 60, 30)),
        "counted"
    );
    assert_eq!(
        group("cpu", |pod| since(pod, Truth::True, 60, 29)),
        "unready"
    );
}

#[test]
fn hpa_85_a_pod_that_was_ready_once_counts() {
    assert_eq!(
        group("cpu", |pod| since(pod, Truth::False, 600, 594)),
        "unready"
    );
    assert_eq!(
        group("cpu", |pod| since(pod, Truth::False, 600, 540)),
        "counted"
    );
    assert_eq!(
        group("cpu", |pod| since(pod, Truth::False, 600, 590)),
        "counted"
    );
    assert_eq!(
        group("cpu", |pod| since(pod, Truth::Unknown, 600, 594)),
        "counted"
    );
}

#[test]
fn pods_that_ended_well_count() {
    assert_eq!(group("", |pod| pod.phase = Phase::Succeeded), "counted");
    assert_eq!(group("", |pod| pod.phase = Phase::Pending), "unready");
}
