//! Metrics about the conditions of objects and about their ends, made from what is seen of them.
//!
//! *Flow*: a controller shows each object whenever it changes, and says when one is gone. What
//! changed between two looks is counted and handed back, so that events can be written about it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use crate::clock::Clock;
use crate::metric_names::{
    ANY_CONDITION_COUNT, ANY_CONDITION_CURRENT, ANY_CONDITION_TRANSITION,
    ANY_CONDITION_TRANSITIONS, ANY_TERMINATION_CURRENT, ANY_TERMINATION_DURATION,
    CONDITION_FAMILIES, ConditionFamilies,
};
use crate::metrics::{Metrics, Series, lock};

/// Objects remembered; of further ones changes are not noticed.
const OBJECTS_MAX: usize = 200_000;

/// A condition of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// An object as it is now.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Which metrics it belongs to.
    pub of: &'static ConditionFamilies,
    /// `namespace/name`, or the name alone.
    pub name: &'a str,
    /// Labels to show beside those of the table: pool, node class and the like, as keys of labels.
    pub labels: &'a [(&'a str, &'a str)],
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// When it was asked to go.
    pub deleting: Option<Timestamp>,
}

/// A condition that changed its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Type of the condition.
    pub kind: String,
    /// The status before; empty for a new condition.
    pub from: String,
    /// The status now.
    pub to: String,
    /// Why.
    pub reason: String,
}

/// What was last seen of an object.
struct Known {
    of: &'static ConditionFamilies,
    conditions: Vec<Condition>,
    labels: Vec<(String, String)>,
    deleting: Option<Timestamp>,
}

/// Objects by kind and name.
type Objects = BTreeMap<(&'static str, Box<str>), Known>;

/// Remembers objects and measures their conditions.
pub struct ConditionMetrics {
    metrics: Arc<Metrics>,
    known: Arc<Mutex<Objects>>,
}

impl std::fmt::Debug for ConditionMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConditionMetrics").finish_non_exhaustive()
    }
}

/// What a gauge shows of an object.
#[derive(Clone, Copy)]
enum Shown {
    Count,
    Current,
    Terminating,
}

impl ConditionMetrics {
    /// No object seen yet. What is known at a scrape is shown, with ages as of then.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>, clock: &Clock) -> Self {
        let known: Arc<Mutex<Objects>> = Arc::default();
        for of in CONDITION_FAMILIES {
            let families = [
                (of.count, ANY_CONDITION_COUNT, Shown::Count),
                (of.current, ANY_CONDITION_CURRENT, Shown::Current),
                (of.terminating, ANY_TERMINATION_CURRENT, Shown::Terminating),
            ];
            for (name, twin, shown) in families {
                let (now, objects) = (clock.clone(), Arc::clone(&known));
                metrics.source(name, move |series| {
                    let objects = lock(&objects);
                    let own = objects.iter().filter(|((kind, _), _)| *kind == of.kind);
                    own.for_each(|((_, name), known)| {
                        let extra = pairs(&known.labels);
                        known.show(name, &extra, shown, now.now(), series);
                    });
                });
                let (now, objects) = (clock.clone(), Arc::clone(&known));
                // The same for each kind: the last one stays.
                metrics.source(twin, move |series| {
                    let objects = lock(&objects);
                    let twins = objects.iter().filter(|(_, known)| known.of.twins);
                    twins.for_each(|((_, name), known)| {
                        let group = [("group", known.of.group), ("kind", known.of.kind)];
                        known.show(name, &group, shown, now.now(), series);
                    });
                });
            }
        }
        Self { metrics, known }
    }

    /// Takes note of an object; tells which conditions changed since the last look.
    pub fn seen(&self, object: Seen<'_>) -> Vec<Transition> {
        let labels = object.labels.iter();
        let labels = labels.map(|(key, value)| (label_of(key), (*value).to_owned()));
        let key = (object.of.kind, Box::from(object.name));
        let of = object.of;
        let state = Known {
            of,
            conditions: object.conditions,
            labels: labels.collect(),
            deleting: object.deleting,
        };
        let extra = state.labels.clone();
        let changes = {
            let mut known = lock(&self.known);
            let changes = transitions(known.get(&key), &state.conditions);
            if known.len() < OBJECTS_MAX || known.contains_key(&key) {
                known.insert(key, state);
            }
            changes
        };
        for (transition, secs) in &changes {
            self.count(of, &pairs(&extra), transition, *secs);
        }
        changes.into_iter().map(|(change, _)| change).collect()
    }

    /// Takes note that an object is gone.
    pub fn gone(&self, of: &'static ConditionFamilies, name: &str, now: Timestamp) {
        let known = lock(&self.known).remove(&(of.kind, Box::from(name)));
        let Some((known, deleting)) = known.and_then(|known| {
            let deleting = known.deleting?;
            Some((known, deleting))
        }) else {
            return;
        };
        let secs = seconds(deleting, now);
        let extra = pairs(&known.labels);
        self.metrics.observe(of.termination, &extra, secs);
        if of.twins {
            let labels = [("group", of.group), ("kind", of.kind)];
            self.metrics
                .observe(ANY_TERMINATION_DURATION, &labels, secs);
        }
    }

    fn count(
        &self,
        of: &ConditionFamilies,
        extra: &[(&str, &str)],
        change: &Transition,
        secs: Option<f64>,
    ) {
        let group = [("group", of.group), ("kind", of.kind)];
        let now = [
            ("type", change.kind.as_str()),
            ("status", change.to.as_str()),
            ("reason", change.reason.as_str()),
        ];
        let metrics = &self.metrics;
        metrics.count(of.transitions, &[&now, extra].concat(), 1.0);
        if of.twins {
            let labels = [&now[..], &group].concat();
            metrics.count(ANY_CONDITION_TRANSITIONS, &labels, 1.0);
        }
        let Some(secs) = secs else { return };
        let before = [("type", &*change.kind), ("status", &*change.from)];
        metrics.observe(of.transition, &[&before, extra].concat(), secs);
        if of.twins {
            let labels = [before, group].concat();
            metrics.observe(ANY_CONDITION_TRANSITION, &labels, secs);
        }
    }
}

impl Known {
    fn show(
        &self,
        name: &str,
        extra: &[(&str, &str)],
        shown: Shown,
        now: Timestamp,
        series: &mut Series<'_>,
    ) {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let id = [("namespace", namespace), ("name", name)];
        let value = match shown {
            Shown::Terminating => {
                if let Some(deleting) = self.deleting {
                    series.gauge(&[&id, extra].concat(), seconds(deleting, now));
                }
                return;
            }
            Shown::Count => |_: Timestamp, _: Timestamp| 1.0,
            Shown::Current => seconds,
        };
        for condition in &self.conditions {
            let labels = [
                id[0],
                id[1],
                ("type", condition.kind.as_str()),
                ("status", condition.status.as_str()),
                ("reason", condition.reason.as_str()),
            ];
            let value = value(condition.since, now);
            series.gauge(&[&labels, extra].concat(), value);
        }
    }
}

/// Which conditions changed, and how long they had been as they were before.
///
/// An object seen for the first time has no changes: that would count all objects again at every
/// start of this program.
fn transitions(before: Option<&Known>, now: &[Condition]) -> Vec<(Transition, Option<f64>)> {
    let Some(before) = before else {
        return Vec::new();
    };
    let change = |now: &Condition| {
        let old = before.conditions.iter().find(|old| old.kind == now.kind);
        if old.is_some_and(|old| old.status == now.status) {
            return None;
        }
        let secs = old.map(|old| seconds(old.since, now.since));
        let transition = Transition {
            kind: now.kind.clone(),
            from: old.map(|old| old.status.clone()).unwrap_or_default(),
            to: now.status.clone(),
            reason: now.reason.clone(),
        };
        Some((transition, secs))
    };
    now.iter().filter_map(change).collect()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

/// The name of a metric's label for the key of an object's label.
fn label_of(key: &str) -> String {
    key.replace(['/', '.', '-'], "_")
}

fn pairs(labels: &[(String, String)]) -> Vec<(&str, &str)> {
    labels.iter().map(|(k, v)| (&**k, &**v)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metric_names::{NODE_CONDITIONS, NODECLAIM_CONDITIONS};
    use crate::metrics::Build;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    fn ready(status: &str, since: i64) -> Condition {
        Condition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            reason: format!("Is{status}"),
            since: at(since),
        }
    }

    fn claim(condition: Condition, deleting: Option<i64>) -> Seen<'static> {
        Seen {
            of: &NODECLAIM_CONDITIONS,
            name: "general-1",
            labels: &[("karpenter.sh/nodepool", "general")],
            conditions: vec![condition],
            deleting: deleting.map(at),
        }
    }

    fn started() -> (Clock, Arc<Metrics>, ConditionMetrics) {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
        let conditions = ConditionMetrics::new(Arc::clone(&metrics), &clock);
        (clock, metrics, conditions)
    }

    fn shows(text: &str, parts: &[&str]) -> bool {
        let mut lines = text.lines();
        lines.any(|line| parts.iter().all(|part| line.contains(part)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_changes() {
        let (clock, metrics, conditions) = started();
        assert_eq!(conditions.seen(claim(ready("Unknown", 0), None)), []);
        let changed = conditions.seen(claim(ready("True", 30), None));
        let expected = Transition {
            kind: "Ready".to_owned(),
            from: "Unknown".to_owned(),
            to: "True".to_owned(),
            reason: "IsTrue".to_owned(),
        };
        assert_eq!(changed, [expected]);
        assert_eq!(conditions.seen(claim(ready("True", 30), None)), []);

        clock.sleep(Duration::from_secs(40)).await;
        let text = metrics.render();
        let pool = "karpenter_sh_nodepool=\"general\"";
        let own = "operator_nodeclaim_status_condition";
        for parts in [
            [&format!("{own}_count{{"), "status=\"True\"", pool, "} 1"],
            [
                &format!("{own}_current_status_seconds{{"),
                "Ready",
                pool,
                "} 10",
            ],
            [&format!("{own}_transitions_total{{"), "IsTrue", pool, "} 1"],
            [
                &format!("{own}_transition_seconds_sum{{"),
                "Unknown",
                pool,
                "} 30",
            ],
            [
                "operator_status_condition_transitions_total{",
                "karpenter.sh",
                "NodeClaim",
                "} 1",
            ],
            [
                "operator_status_condition_count{",
                "karpenter.sh",
                "NodeClaim",
                "} 1",
            ],
        ] {
            assert!(shows(&text, &parts), "{parts:?}\n{text}");
        }
        let old = [&format!("{own}_count{{"), "Unknown"];
        assert!(!shows(&text, &old), "the status before is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_ends() {
        let (clock, metrics, conditions) = started();
        conditions.seen(claim(ready("True", 0), Some(100)));
        clock.sleep(Duration::from_secs(104)).await;
        let going = [
            "operator_nodeclaim_termination_current_time_seconds{",
            "general-1",
            "} 4",
        ];
        assert!(shows(&metrics.render(), &going));
        conditions.gone(&NODECLAIM_CONDITIONS, "general-1", at(110));
        let text = metrics.render();
        assert!(!text.contains("general-1"), "{text}");
        let own = [
            "operator_nodeclaim_termination_duration_seconds_sum{",
            "} 10",
        ];
        assert!(shows(&text, &own));
        assert!(shows(
            &text,
            &["operator_termination_duration_seconds_sum{", "} 10"]
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_have_no_twins() {
        let (_, metrics, conditions) = started();
        conditions.seen(Seen {
            of: &NODE_CONDITIONS,
            ..claim(ready("True", 0), None)
        });
        let text = metrics.render();
        assert!(text.contains("operator_node_status_condition_count{"));
        assert!(!text.contains("operator_status_condition_count{"));
    }
}
