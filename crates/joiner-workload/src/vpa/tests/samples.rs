use super::*;
use crate::vpa::container::Container;

/// A container, and what is known of its kind.
struct One {
    container: Container,
    aggregate: Aggregate,
}

impl One {
    fn new(interval_secs: i64) -> Self {
        let mut settings = Settings::default();
        settings.aggregation.interval = SignedDuration::from_secs(interval_secs);
        // Weights stay what they are.
        settings.memory.half_life = SignedDuration::from_hours(24 * 365 * 100);
        Self {
            container: Container::default(),
            aggregate: Aggregate::new(&settings, at(0)),
        }
    }

    fn cpu(&mut self, millis: i64, seconds: i64) -> bool {
        self.container
            .add_cpu(&mut self.aggregate, millis, at(seconds))
    }

    fn memory(&mut self, bytes: i64, seconds: i64) -> bool {
        self.container
            .add_memory(&mut self.aggregate, bytes, at(seconds))
    }

    fn oom(&mut self, bytes: i64, seconds: i64) -> bool {
        self.container
            .add_oom(&mut self.aggregate, bytes, at(seconds))
    }

    /// Whether these peaks of memory are known, and no others.
    fn has(&self, peaks: &[i64]) -> bool {
        let mut expected = vec![0; N_BUCKETS];
        for peak in peaks {
            expected[self.aggregate.memory.bucket(*peak as f64)] += 1;
        }
        let unit = self.aggregate.memory.total / peaks.len() as f64;
        let found = self.aggregate.memory.weights.iter();
        found
            .zip(&expected)
            .all(|(weight, n)| (weight / unit).round() == f64::from(*n))
    }
}

#[test]
fn vpa_19_samples_of_cpu_weigh_the_same() {
    let mut one = One::new(DAY);
    assert!(one.cpu(10, 1) && one.cpu(3000, 2));
    let histogram = &one.aggregate.cpu;
    let [low, high] = [0.01, 3.0].map(|cores| histogram.weights[histogram.bucket(cores)]);
    assert!((low / high - 1.0).abs() < 1e-4);
    assert_eq!(one.aggregate.n_samples, 2);
}

#[test]
fn vpa_20_old_and_repeated_samples_of_cpu_are_refused() {
    let mut one = One::new(DAY);
    assert!(one.cpu(10, 60));
    assert!(!one.cpu(10, 60) && !one.cpu(10, 30) && !one.cpu(-1, 90));
    assert_eq!(one.aggregate.n_samples, 1);
}

#[test]
fn vpa_21_a_higher_peak_takes_the_place_of_the_last_one() {
    let mut one = One::new(DAY);
    assert!(one.memory(500 * MB, 0) && one.memory(1000 * MB, 60));
    assert!(one.has(&[1000 * MB]));
    assert_eq!(one.container.window_end, Some(at(DAY)));
}

#[test]
fn vpa_22_a_lower_one_changes_nothing() {
    let mut one = One::new(DAY);
    assert!(one.memory(1000 * MB, 0) && one.memory(500 * MB, 60));
    assert!(one.has(&[1000 * MB]));
    assert!(!one.memory(2000 * MB, 30));
}

#[test]
fn vpa_23_the_next_window_has_its_peak() {
    let mut one = One::new(DAY);
    assert!(one.memory(1000 * MB, 0) && one.memory(500 * MB, DAY));
    assert!(one.has(&[1000 * MB, 500 * MB]));
    assert_eq!(one.container.window_end, Some(at(2 * DAY)));
}

#[test]
fn vpa_24_more_is_needed_where_memory_ran_out() {
    let mut one = One::new(DAY);
    assert!(one.oom(1000 * MB, 0));
    assert!(one.has(&[1200 * MB]));
    let mut small = One::new(DAY);
    assert!(small.oom(MB, 0));
    assert!(small.has(&[MB + 104_857_600]));
}

#[test]
fn vpa_25_running_out_again_does_not_drive_itself() {
    let mut one = One::new(DAY);
    for second in 0..3 {
        assert!(one.oom(1000 * MB - second, second));
    }
    assert!(one.has(&[1200 * MB]));
    assert!(one.oom(2000 * MB, 10));
    assert!(one.has(&[2400 * MB]));
}

#[test]
fn vpa_26_what_was_used_counts_where_it_is_more() {
    let mut one = One::new(DAY);
    assert!(one.memory(3000 * MB, 0) && one.oom(1000 * MB, 60));
    assert!(one.has(&[3600 * MB]));
}

#[test]
fn vpa_27_what_is_older_than_a_window_is_left_out() {
    let mut one = One::new(DAY);
    assert!(one.memory(1000 * MB, 2 * DAY));
    assert!(!one.oom(5000 * MB, 2 * DAY - 1));
    assert!(one.has(&[1000 * MB]));
}

#[test]
fn vpa_28_a_later_window_begins_with_what_was_used() {
    let mut one = One::new(DAY);
    assert!(one.memory(2000 * MB, 0) && one.oom(1000 * MB, 2 * DAY));
    assert!(one.has(&[2000 * MB, 2400 * MB]));
}

#[test]
fn vpa_29_windows_can_be_shorter() {
    let mut one = One::new(3600);
    assert!(one.memory(1000 * MB, 0) && one.memory(500 * MB, 7200));
    assert!(one.has(&[1000 * MB, 500 * MB]));
    let mut one = One::new(3600);
    assert!(one.memory(1000 * MB, 0) && one.memory(1500 * MB, 1800));
    assert!(one.has(&[1500 * MB]));
}

/// A pod whose container does this.
fn doing(state: Value, last: Value, restarts: i64) -> Pod {
    let object = json!({
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": "100M"}}}]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "app", "restartCount": restarts, "state": state, "lastState": last,
        }]},
    });
    Pod::read(&object).unwrap()
}

fn ended(reason: &str) -> Value {
    json!({"terminated": {"reason": reason, "finishedAt": at(60).to_string()}})
}

fn running() -> Value {
    json!({"running": {}})
}

/// How much was requested where memory ran out between two looks.
fn ran_out(old: &Pod, new: &Pod) -> Vec<i64> {
    new.ooms_since(old).iter().map(|oom| oom.bytes).collect()
}

#[test]
fn vpa_30_a_container_that_ended_counts_once() {
    let (old, new) = (
        doing(running(), json!({}), 0),
        doing(ended("OOMKilled"), json!({}), 0),
    );
    assert_eq!(ran_out(&old, &new), [100 * MB]);
    assert_eq!(new.ooms_since(&old)[0].time, at(60));
    assert_eq!(ran_out(&new, &new), [0; 0]);
    let mut resized = new.clone();
    let real = [("memory".to_owned(), q("300M"))].into_iter().collect();
    resized.statuses[0].requests = Some(real);
    assert_eq!(ran_out(&old, &resized), [300 * MB]);
    let mut without = new.clone();
    without.containers[0].requests.clear();
    assert_eq!(ran_out(&old, &without), [0]);
    let again = doing(ended("OOMKilled"), json!({}), 1);
    assert_eq!(ran_out(&new, &again), [100 * MB]);
}

#[test]
fn vpa_31_a_container_that_was_started_again_counts_with_what_it_had() {
    let mut old = doing(running(), json!({}), 0);
    old.containers[0]
        .requests
        .insert("memory".to_owned(), q("70M"));
    let new = doing(running(), ended("OOMKilled"), 1);
    assert_eq!(ran_out(&old, &new), [70 * MB]);
}

#[test]
fn vpa_32_other_changes_do_not_count() {
    let waiting = || json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let oom = || ended("OOMKilled");
    for (old, new) in [
        (doing(waiting(), oom(), 1), doing(running(), oom(), 2)),
        (doing(oom(), json!({}), 1), doing(oom(), json!({}), 1)),
        (
            doing(running(), json!({}), 0),
            doing(ended("Error"), json!({}), 0),
        ),
        (
            doing(running(), json!({}), 0),
            doing(running(), ended("Error"), 1),
        ),
        (doing(running(), oom(), 1), doing(running(), oom(), 1)),
    ] {
        assert_eq!(ran_out(&old, &new), [0; 0]);
    }
}

fn eviction(containers: &str, usage: &str, starved: &str) -> Vec<(String, i64)> {
    let event = json!({
        "reason": "Evicted",
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-0"},
        "metadata": {
            "creationTimestamp": at(60).to_string(),
            "annotations": {
                "offending_containers": containers,
                "offending_containers_usage": usage,
                "starved_resource": starved,
            },
        },
    });
    let found = of_eviction(&event);
    found
        .into_iter()
        .map(|oom| (oom.container, oom.bytes))
        .collect()
}

#[test]
fn vpa_33_evictions_must_say_what_starved() {
    assert_eq!(
        eviction("a,b", "10M,20M", "memory,memory"),
        [("a".to_owned(), 10 * MB), ("b".to_owned(), 20 * MB)]
    );
    assert_eq!(
        eviction("a,b", "10M,20M", "cpu,memory"),
        [("b".to_owned(), 20 * MB)]
    );
    assert_eq!(eviction("a,b", "10M", "memory,memory"), []);
    assert_eq!(eviction("a", "much", "memory"), []);
}

#[test]
fn a_window_that_was_opened_with_nothing_takes_no_peak() {
    let mut one = One::new(DAY);
    assert!(one.memory(0, 0) && one.memory(1000 * MB, 60));
    assert!(one.has(&[0]));
}
