//! What do pods and nodes use, as `metrics.k8s.io` tells it?
//!
//! A pod's annotation `joiner.dev/cpu-usage` or `joiner.dev/memory-usage` gives an amount (`250m`), a
//! share of the request (`80%`), or a wave between two of them (`20%..90%/24h`): low at the beginning
//! of the period, high in its middle. Without one, usage is a share of the request with some noise.

use jiff::{SignedDuration, Timestamp};
use joiner_api::labels::ours::{CPU_USAGE, MEMORY_USAGE};
use joiner_machinery::meta;
use joiner_machinery::quantity::Quantity;
use serde_json::{Value, json};

use crate::names::Digest;
use crate::scheduler::amounts::{Amounts, millis, pod_requests, units};
use crate::scheduler::labels::items;
use crate::scheduler::{NODES, PODS};
use crate::view::View;

/// Seconds between two readings: usage does not change in between.
const WINDOW_SECS: i64 = 15;
/// What a pod without requests uses.
const IDLE_CPU: i64 = 10;
const IDLE_MEMORY: i64 = 64 << 20;
/// Parts that a wave is computed in.
const WHOLE: i128 = 1_000_000;

/// How much of their requests pods use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Percent of the requested CPU.
    pub cpu_percent: i64,
    /// Percent of the requested memory.
    pub memory_percent: i64,
    /// Percent by which usage goes up and down.
    pub noise_percent: i64,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            cpu_percent: 50,
            memory_percent: 60,
            noise_percent: 10,
            seed: 0,
        }
    }
}

/// Millicores and bytes that a pod uses; nothing unless it runs.
#[must_use]
pub fn usage(pod: &Value, now: Timestamp, load: &Load) -> (i64, i64) {
    if pod["status"]["phase"] != "Running" {
        return (0, 0);
    }
    let Amounts { cpu, memory, .. } = pod_requests(&pod["spec"]);
    let noisy = |amount: i64, what: &str| {
        let window = now.as_second().div_euclid(WINDOW_SECS).unsigned_abs();
        let draw = Digest::default()
            .number(load.seed)
            .text(meta::uid(pod))
            .text(what);
        let draw = draw.number(window).finish() % 2001;
        // From minus to plus one thousand.
        let swing = i64::try_from(draw).unwrap_or(1000) - 1000;
        amount + share(amount, load.noise_percent * swing, 100_000)
    };
    let wave = |name: &str| Wave::parse(meta::annotation(pod, name)?);
    let cpu_used = match wave(CPU_USAGE) {
        Some(wave) => wave.at(now, cpu, Quantity::millis),
        None if cpu == 0 => noisy(IDLE_CPU, "cpu"),
        None => noisy(share(cpu, load.cpu_percent, 100), "cpu"),
    };
    let memory_used = match wave(MEMORY_USAGE) {
        Some(wave) => wave.at(now, memory, Quantity::units),
        None if memory == 0 => noisy(IDLE_MEMORY, "memory"),
        None => noisy(share(memory, load.memory_percent, 100), "memory"),
    };
    (cpu_used.max(0), memory_used.max(0))
}

/// Part of an amount.
fn share(amount: i64, parts: i64, whole: i64) -> i64 {
    let part = i128::from(amount) * i128::from(parts) / i128::from(whole.max(1));
    i64::try_from(part).unwrap_or(i64::MAX)
}

/// An end of a wave.
#[derive(Clone, Copy)]
enum Level {
    Amount(Quantity),
    Percent(i64),
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text.trim().strip_suffix('%') {
            Some(number) => number.trim().parse().ok().map(Self::Percent),
            None => Quantity::parse(text.trim()).ok().map(Self::Amount),
        }
    }

    fn of(self, request: i64, unit: fn(Quantity) -> i64) -> i64 {
        match self {
            Self::Amount(quantity) => unit(quantity),
            Self::Percent(percent) => share(request, percent, 100),
        }
    }
}

/// True when an annotation of usage can be read.
pub(crate) fn is_usage(text: &str) -> bool {
    Wave::parse(text).is_some()
}

/// A level, or two of them and the seconds from low to low.
struct Wave {
    low: Level,
    high: Level,
    period: i64,
}

impl Wave {
    fn parse(text: &str) -> Option<Self> {
        let Some((low, rest)) = text.split_once("..") else {
            let level = Level::parse(text)?;
            return Some(Self {
                low: level,
                high: level,
                period: 1,
            });
        };
        let (high, period) = rest.split_once('/').unwrap_or((rest, "24h"));
        let period: SignedDuration = period.trim().parse().ok()?;
        Some(Self {
            low: Level::parse(low)?,
            high: Level::parse(high)?,
            period: period.as_secs().max(1),
        })
    }

    fn at(&self, now: Timestamp, request: i64, unit: fn(Quantity) -> i64) -> i64 {
        let (low, high) = (self.low.of(request, unit), self.high.of(request, unit));
        let passed = i128::from(now.as_second().rem_euclid(self.period));
        let up = passed * 2 * WHOLE / i128::from(self.period);
        let x = if up > WHOLE { 2 * WHOLE - up } else { up };
        // A polynomial that is flat at both ends looks like a sine and is the same everywhere.
        let height = x * x * (3 * WHOLE - 2 * x) / (WHOLE * WHOLE);
        let rise = i128::from(high - low) * height / WHOLE;
        low + i64::try_from(rise).unwrap_or(0)
    }
}

/// The `PodMetrics` of a running pod.
#[must_use]
pub fn pod_metrics(pod: &Value, now: Timestamp, load: &Load) -> Option<Value> {
    if pod["status"]["phase"] != "Running" {
        return None;
    }
    let (cpu, memory) = usage(pod, now, load);
    let containers: Vec<&Value> = items(&pod["spec"]["containers"]).collect();
    let asked = |one: &Value, name: &str| {
        let amount = &one["resources"]["requests"][name];
        if name == "cpu" {
            millis(amount)
        } else {
            units(amount)
        }
    };
    let split = |used: i64, ix: usize, name: &str| {
        let total: i64 = containers.iter().map(|one| asked(one, name)).sum();
        let count = i64::try_from(containers.len()).unwrap_or(1);
        if total == 0 {
            return share(used, 1, count);
        }
        share(used, asked(containers[ix], name), total)
    };
    let render = |(ix, one): (usize, &&Value)| {
        json!({
            "name": one["name"],
            "usage": amounts(split(cpu, ix, "cpu"), split(memory, ix, "memory")),
        })
    };
    let rendered: Vec<Value> = containers.iter().enumerate().map(render).collect();
    let mut metrics = shell("PodMetrics", pod, now);
    metrics["metadata"]["namespace"] = pod["metadata"]["namespace"].clone();
    metrics["containers"] = Value::Array(rendered);
    Some(metrics)
}

/// The `NodeMetrics` of a node with these pods on it: theirs, and a little for the system.
#[must_use]
pub fn node_metrics<'p>(
    node: &Value,
    pods: impl Iterator<Item = &'p Value>,
    now: Timestamp,
    load: &Load,
) -> Value {
    let capacity = Amounts::read(&node["status"]["capacity"]);
    let mut used = (share(capacity.cpu, 2, 100), share(capacity.memory, 5, 100));
    for pod in pods {
        let (cpu, memory) = usage(pod, now, load);
        used = (used.0 + cpu, used.1 + memory);
    }
    let mut metrics = shell("NodeMetrics", node, now);
    metrics["usage"] = amounts(used.0, used.1);
    metrics
}

/// The `PodMetricsList` of all namespaces or one.
#[must_use]
pub fn pod_metrics_list(view: &View<'_>, namespace: Option<&str>, load: &Load) -> Value {
    let here = |pod: &&Value| namespace.is_none_or(|own| meta::namespace(pod) == own);
    let pods = view.all(PODS).map(AsRef::as_ref).filter(here);
    list(
        "PodMetricsList",
        pods.filter_map(|pod| pod_metrics(pod, view.now, load))
            .collect(),
    )
}

/// The `NodeMetricsList` of all nodes.
#[must_use]
pub fn node_metrics_list(view: &View<'_>, load: &Load) -> Value {
    let mut by_node: std::collections::BTreeMap<&str, Vec<&Value>> = Default::default();
    for pod in view.all(PODS) {
        by_node
            .entry(pod["spec"]["nodeName"].as_str().unwrap_or(""))
            .or_default()
            .push(pod);
    }
    let nodes = view.all(NODES).map(|node| {
        let pods = by_node.get(meta::name(node)).into_iter().flatten().copied();
        node_metrics(node, pods, view.now, load)
    });
    list("NodeMetricsList", nodes.collect())
}

fn list(kind: &str, items: Vec<Value>) -> Value {
    json!({"kind": kind, "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items})
}

fn shell(kind: &str, object: &Value, now: Timestamp) -> Value {
    let seconds = now.as_second().div_euclid(WINDOW_SECS) * WINDOW_SECS;
    let at = Timestamp::from_second(seconds).unwrap_or(now);
    let mut metadata = json!({"name": meta::name(object), "creationTimestamp": meta::time(now)});
    if object["metadata"]["labels"].is_object() {
        metadata["labels"] = object["metadata"]["labels"].clone();
    }
    json!({
        "kind": kind,
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": metadata,
        "timestamp": meta::time(at),
        "window": format!("{WINDOW_SECS}s"),
    })
}

fn amounts(cpu: i64, memory: i64) -> Value {
    json!({"cpu": format!("{cpu}m"), "memory": format!("{}Ki", memory / 1024)})
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn pod(annotations: Value) -> Value {
        json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "annotations": annotations},
            "spec": {"nodeName": "one", "containers": [
                {"name": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                {"name": "y", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
            ]},
            "status": {"phase": "Running"},
        })
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn annotations_set_the_usage() {
        let cases = [
            ("250m", 0, 250),
            ("80%", 0, 3200),
            ("20%..90%/24h", 0, 800),
            ("20%..90%/24h", DAY / 4, 2200),
            ("20%..90%/24h", DAY / 2, 3600),
            ("100m..2/1h", 1800, 2000),
            ("100m..2/1h", 3600, 100),
        ];
        for (text, seconds, expected) in cases {
            let pod = pod(json!({CPU_USAGE: text}));
            assert_eq!(
                usage(&pod, at(seconds), &Load::default()).0,
                expected,
                "{text}, {seconds} s"
            );
        }
    }

    #[test]
    fn without_annotation_it_is_a_noisy_share() {
        let (pod, load) = (pod(json!({})), Load::default());
        let seen: Vec<i64> = (0..100)
            .map(|ix| usage(&pod, at(ix * WINDOW_SECS), &load).0)
            .collect();
        assert!(
            seen.iter().all(|cpu| (1800..=2200).contains(cpu)),
            "{seen:?}"
        );
        assert!(seen.iter().any(|cpu| *cpu != seen[0]));
        assert_eq!(
            usage(&pod, at(7), &load),
            usage(&pod, at(14), &load),
            "the same window"
        );
        let mut pending = pod;
        pending["status"]["phase"] = json!("Pending");
        assert_eq!(usage(&pending, at(0), &load), (0, 0));
    }

    #[test]
    fn containers_share_by_request_and_nodes_add_up() {
        let annotations = json!({CPU_USAGE: "2", MEMORY_USAGE: "1Gi"});
        let (pod, load) = (pod(annotations), Load::default());
        let metrics = pod_metrics(&pod, at(100), &load).unwrap();
        assert_eq!(
            metrics["containers"][0]["usage"],
            json!({"cpu": "500m", "memory": "524288Ki"})
        );
        assert_eq!(metrics["containers"][1]["usage"]["cpu"], "1500m");
        assert_eq!(metrics["timestamp"], "1970-01-01T00:01:30Z");
        let node = json!({
            "metadata": {"name": "one"},
            "status": {"capacity": {"cpu": "10", "memory": "20Gi"}},
        });
        let metrics = node_metrics(&node, [&pod].into_iter(), at(100), &load);
        assert_eq!(
            metrics["usage"],
            json!({"cpu": "2200m", "memory": "2097152Ki"})
        );
    }
}
