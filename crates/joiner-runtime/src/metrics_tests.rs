//! What Prometheus would read.

use std::collections::BTreeMap;

use super::*;
use crate::metric_names::{self as names, OBJECT_SERIES_MAX, SERIES_MAX};

fn metrics() -> (Metrics, Clock) {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    let build = Build {
        version: "1.2.3".to_owned(),
        commit: "abc".to_owned(),
    };
    (Metrics::new(clock.clone(), &build), clock)
}

/// A line of the text: name, labels, value.
#[derive(Debug, PartialEq)]
struct Line {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Reads the labels between braces, as the format has it; what is left comes after the brace.
fn labels(mut text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return (labels, rest);
        }
        let (name, rest) = text.split_once("=\"").expect("a label");
        assert!(
            crate::metric_text::is_label(name) || name == "le" || name == "quantile",
            "{name}"
        );
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect("an escaped character").1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("\\{c} is no escape"),
                },
                (_, c) => value.push(c),
            }
        };
        assert!(
            labels.insert(name.to_owned(), value).is_none(),
            "{name} twice"
        );
        text = rest[end + 1..].trim_start_matches(',');
    }
}

/// Reads the whole text and fails on anything that is not of the format.
fn parse(text: &str) -> Vec<Line> {
    assert!(text.ends_with('\n'));
    let mut lines = Vec::new();
    let mut family = String::new();
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            rest.split_once(' ')
                .expect("a help text")
                .0
                .clone_into(&mut family);
            assert!(seen.insert(family.clone()), "{family} twice");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, measure) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family);
            assert!(["counter", "gauge", "histogram", "summary"].contains(&measure));
            continue;
        }
        let at = line.find(['{', ' ']).expect("a value");
        let (name, rest) = line.split_at(at);
        assert!(name.starts_with(&family), "{name} is not of {family}");
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest),
            None => (BTreeMap::new(), rest),
        };
        let value = match rest.strip_prefix(' ').expect("a space") {
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            text => text.parse().expect("a number"),
        };
        lines.push(Line {
            name: name.to_owned(),
            labels,
            value,
        });
    }
    lines
}

fn find<'a>(lines: &'a [Line], name: &str, labels: &[(&str, &str)]) -> Option<&'a Line> {
    let has = |line: &Line| {
        let mut labels = labels.iter();
        labels.all(|(k, v)| line.labels.get(*k).is_some_and(|value| value == v))
    };
    lines.iter().find(|line| line.name == name && has(line))
}

fn value(lines: &[Line], name: &str, labels: &[(&str, &str)]) -> f64 {
    let line = find(lines, name, labels);
    line.unwrap_or_else(|| panic!("no {name} {labels:?}")).value
}

#[tokio::test(start_paused = true)]
async fn starts_with_what_upstream_starts_with() {
    let (metrics, _) = metrics();
    let lines = parse(&metrics.render());
    let build = find(&lines, "karpenter_build_info", &[]).unwrap();
    assert_eq!(build.labels["version"], "1.2.3");
    assert_eq!(build.labels["commit"], "abc");
    let timeouts = "karpenter_voluntary_disruption_consolidation_timeouts_total";
    for kind in ["multi", "single"] {
        assert_eq!(
            value(&lines, timeouts, &[("consolidation_type", kind)]),
            0.0
        );
    }
    if cfg!(target_os = "linux") {
        assert!(value(&lines, "process_resident_memory_bytes", &[]) > 1e6);
        assert!(value(&lines, "process_cpu_seconds_total", &[]) >= 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn every_row_of_the_table_can_be_measured() {
    let (metrics, _) = metrics();
    for family in names::all() {
        let labels: Vec<_> = family.labels.iter().map(|name| (*name, "x")).collect();
        match family.measure {
            Measure::Counter => metrics.count(family.name, &labels, 1.0),
            Measure::Gauge => metrics.gauge(family.name, &labels, 1.0),
            Measure::Histogram(_) | Measure::Summary => metrics.observe(family.name, &labels, 1.0),
        }
    }
    let lines = parse(&metrics.render());
    for family in names::all() {
        let name = match family.measure {
            Measure::Counter | Measure::Gauge => family.name.to_owned(),
            Measure::Histogram(_) | Measure::Summary => format!("{}_count", family.name),
        };
        assert!(find(&lines, &name, &[]).is_some(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn counters_add_and_gauges_replace() {
    let (metrics, _) = metrics();
    let labels = [("nodepool", "a"), ("zone", "z")];
    metrics.count(names::NODES_CREATED, &labels, 1.0);
    // The order in which labels are given does not matter.
    metrics.count(names::NODES_CREATED, &[labels[1], labels[0]], 2.0);
    metrics.gauge(names::CLUSTER_STATE_SYNCED, &[], 1.0);
    metrics.gauge(names::CLUSTER_STATE_SYNCED, &[], 0.0);
    let lines = parse(&metrics.render());
    assert_eq!(value(&lines, names::NODES_CREATED, &labels), 3.0);
    assert_eq!(value(&lines, names::CLUSTER_STATE_SYNCED, &[]), 0.0);
    let missing = find(&lines, names::NODES_CREATED, &[]).unwrap();
    assert_eq!(missing.labels.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn labels_are_escaped() {
    let (metrics, _) = metrics();
    for odd in ["a\"b", "a\\b", "a\nb", "ä,b=\"c\"", ""] {
        let labels = [("nodepool", odd)];
        metrics.count(names::NODES_DRAINED, &labels, 1.0);
        let lines = parse(&metrics.render());
        assert_eq!(value(&lines, names::NODES_DRAINED, &labels), 1.0, "{odd:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn histograms_count_up_to_each_bound() {
    let (metrics, _) = metrics();
    let labels = [("nodepool", "a")];
    for seconds in [0.5, 1.0, 1.5, 2048.0, 5000.0] {
        metrics.observe(names::NODECLAIMS_TERMINATION_DURATION, &labels, seconds);
    }
    let text = metrics.render();
    let lines = parse(&text);
    let bucket = format!("{}_bucket", names::NODECLAIMS_TERMINATION_DURATION);
    for (le, n) in [
        ("1", 2.0),
        ("2", 3.0),
        ("1024", 3.0),
        ("2048", 4.0),
        ("+Inf", 5.0),
    ] {
        assert_eq!(value(&lines, &bucket, &[("le", le)]), n, "{le}");
    }
    assert_eq!(lines.iter().filter(|line| line.name == bucket).count(), 13);
    let sum = format!("{}_sum", names::NODECLAIMS_TERMINATION_DURATION);
    assert_eq!(value(&lines, &sum, &labels), 7051.0);
    let count = format!("{}_count", names::NODECLAIMS_TERMINATION_DURATION);
    assert_eq!(value(&lines, &count, &labels), 5.0);
}

#[tokio::test(start_paused = true)]
async fn summaries_forget_after_ten_minutes() {
    let (metrics, clock) = metrics();
    let name = names::PODS_STARTUP_DURATION;
    metrics.observe(name, &[], 1000.0);
    clock.sleep(Duration::from_secs(590)).await;
    for n in 1..=100 {
        metrics.observe(name, &[], f64::from(n));
    }
    let lines = parse(&metrics.render());
    assert_eq!(value(&lines, name, &[("quantile", "1")]), 1000.0);
    clock.sleep(Duration::from_secs(20)).await;
    let lines = parse(&metrics.render());
    for (quantile, expected) in [
        ("0", 1.0),
        ("0.5", 50.0),
        ("0.9", 90.0),
        ("0.99", 99.0),
        ("1", 100.0),
    ] {
        assert_eq!(
            value(&lines, name, &[("quantile", quantile)]),
            expected,
            "{quantile}"
        );
    }
    clock.sleep(Duration::from_secs(601)).await;
    let lines = parse(&metrics.render());
    assert!(value(&lines, name, &[("quantile", "0.5")]).is_nan());
    assert_eq!(value(&lines, &format!("{name}_count"), &[]), 101.0);
    assert_eq!(value(&lines, &format!("{name}_sum"), &[]), 6050.0);
}

#[tokio::test(start_paused = true)]
async fn a_summary_keeps_so_many_samples() {
    let (metrics, _) = metrics();
    for n in 0..10_000 {
        metrics.observe(names::PODS_STARTUP_DURATION, &[], f64::from(n));
    }
    let lines = parse(&metrics.render());
    let least = value(&lines, names::PODS_STARTUP_DURATION, &[("quantile", "0")]);
    assert_eq!(least, 10_000.0 - SUMMARY_SAMPLES_MAX as f64);
}

#[tokio::test(start_paused = true)]
async fn a_family_has_only_so_many_series() {
    let (metrics, _) = metrics();
    for n in 0..SERIES_MAX + 10 {
        metrics.count(names::NODES_DRAINED, &[("nodepool", &n.to_string())], 1.0);
    }
    // One that is there goes on counting.
    metrics.count(names::NODES_DRAINED, &[("nodepool", "0")], 1.0);
    let lines = parse(&metrics.render());
    let shown = lines
        .iter()
        .filter(|line| line.name == names::NODES_DRAINED);
    assert_eq!(shown.count(), SERIES_MAX);
    assert_eq!(
        value(&lines, names::NODES_DRAINED, &[("nodepool", "0")]),
        2.0
    );
    let dropped = [("metric", names::NODES_DRAINED), ("why", "too_many_series")];
    assert_eq!(value(&lines, names::METRICS_REJECTED, &dropped), 10.0);
}

#[tokio::test(start_paused = true)]
async fn replacing_and_forgetting_leave_no_old_series() {
    let (metrics, _) = metrics();
    let pod = |name: &str| {
        let labels = [("name", name), ("namespace", "default")];
        labels.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec()
    };
    let name = names::PODS_UNBOUND_TIME;
    metrics.replace(name, vec![(pod("a"), 1.0), (pod("b"), 2.0)]);
    metrics.replace(name, vec![(pod("b"), 3.0), (pod("c"), 4.0)]);
    let lines = parse(&metrics.render());
    assert!(find(&lines, name, &[("name", "a")]).is_none());
    assert_eq!(value(&lines, name, &[("name", "b")]), 3.0);

    metrics.gauge(name, &[("name", "x"), ("namespace", "other")], 1.0);
    metrics.gauge(name, &[("name", "x,name=\"b"), ("namespace", "n")], 1.0);
    metrics.forget(name, &[("name", "b")]);
    let lines = parse(&metrics.render());
    assert!(find(&lines, name, &[("name", "b")]).is_none());
    metrics.forget(name, &[("namespace", "default")]);
    let lines = parse(&metrics.render());
    let left = lines.iter().filter(|line| line.name == name);
    assert_eq!(left.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_source_is_asked_at_each_scrape() {
    let (metrics, clock) = metrics();
    let name = names::NODES_CURRENT_LIFETIME;
    let started = clock.now();
    let now = clock.clone();
    metrics.source(name, move |series| {
        let age = now.now().duration_since(started).as_secs_f64();
        // Labels of the cloud are not in the table.
        series.gauge(&[("node_name", "a"), ("instance_type", "m5.large")], age);
    });
    clock.sleep(Duration::from_secs(5)).await;
    let lines = parse(&metrics.render());
    let age = value(
        &lines,
        name,
        &[("node_name", "a"), ("instance_type", "m5.large")],
    );
    assert!((age - 5.0).abs() < 0.01, "{age}");

    metrics.source(names::PODS_STATE, |series| {
        for n in 0..OBJECT_SERIES_MAX + 1 {
            series.gauge(&[("name", &n.to_string())], 1.0);
        }
    });
    let text = metrics.render();
    let shown = text
        .lines()
        .filter(|line| line.starts_with("karpenter_pods_state{"));
    assert_eq!(shown.count(), OBJECT_SERIES_MAX);
    assert!(text.contains("joiner_metrics_rejected_total{metric=\"karpenter_pods_state\""));
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    for (value, text) in [
        (0.0, "0"),
        (1.0, "1"),
        (0.005, "0.005"),
        (1e-8, "1e-08"),
        (2.5e-5, "2.5e-05"),
        (2_592_000.0, "2592000"),
        (1e21, "1e+21"),
        (f64::INFINITY, "+Inf"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(number(value), text);
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "wrong_labels")]
async fn a_label_that_is_not_in_the_table_stops_a_debug_build() {
    let (metrics, _) = metrics();
    metrics.count(names::NODES_DRAINED, &[("pool", "a")], 1.0);
}
