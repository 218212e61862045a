//! Numbered behaviors of upstream's controller. Amounts of usage are in thousandths, pods request one core
//! each unless a test says otherwise.

mod behavior;
mod down;
mod failures;
mod groups;
mod limits;
mod missing;
mod objects;
mod tolerance;
mod up;
mod zero;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::condition::{Condition, Event, Truth};

/// The time of all tests.
pub(super) fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// So many seconds before [`now`].
pub(super) fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

/// A pod that has run and been ready for an hour.
pub(super) fn pod(name: &str) -> Pod {
    let requests = [("cpu", 1000), ("memory", 1000)];
    let requests = requests.map(|(resource, millis)| (resource.to_owned(), millis));
    Pod {
        name: name.to_owned(),
        labels: crate::selector::Labels::new(),
        phase: Phase::Running,
        deleting: false,
        ready: Some(Readiness {
            status: Truth::True,
            since: ago(3600),
        }),
        started: Some(ago(3600)),
        containers: vec![Container {
            name: "app".to_owned(),
            requests: requests.into_iter().collect(),
        }],
        requests: None,
    }
}

/// Not ready since it began ten minutes ago.
pub(super) fn unready(pod: &mut Pod) {
    pod.started = Some(ago(600));
    pod.ready = Some(Readiness {
        status: Truth::False,
        since: ago(600),
    });
}

/// Ready, but started so lately that its samples are those of its start.
pub(super) fn hot(pod: &mut Pod) {
    pod.started = Some(ago(20));
    pod.ready = Some(Readiness {
        status: Truth::True,
        since: ago(20),
    });
}

pub(super) fn usage(pod: usize, millis: i64) -> PodUsage {
    PodUsage {
        pod: format!("web-{pod}"),
        time: ago(5),
        window: SignedDuration::from_secs(30),
        containers: vec![(
            "app".to_owned(),
            [("cpu".to_owned(), millis), ("memory".to_owned(), millis)]
                .into_iter()
                .collect(),
        )],
    }
}

pub(super) fn cpu(percent: i32) -> Value {
    json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent},
    }})
}

pub(super) fn pods_metric(average: &str) -> Value {
    json!({"type": "Pods", "pods": {
        "metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": average},
    }})
}

pub(super) fn object_metric(kind: &str, amount: &str) -> Value {
    let field = if kind == "Value" {
        "value"
    } else {
        "averageValue"
    };
    json!({"type": "Object", "object": {
        "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "front"},
        "metric": {"name": "qps"}, "target": {"type": kind, field: amount},
    }})
}

pub(super) fn external_metric(kind: &str, amount: &str) -> Value {
    let field = if kind == "Value" {
        "value"
    } else {
        "averageValue"
    };
    json!({"type": "External", "external": {
        "metric": {"name": "depth"}, "target": {"type": kind, field: amount},
    }})
}

/// A situation of one HPA.
pub(super) struct Case {
    pub(super) spec: Value,
    pub(super) status: Value,
    pub(super) settings: Settings,
    pub(super) scale: Result<Scale, String>,
    pub(super) pods: Vec<Pod>,
    pub(super) readings: Vec<Result<Reading, String>>,
    pub(super) rivals: Vec<String>,
    pub(super) memory: Memory,
    pub(super) written: Written,
}

impl Case {
    /// So many replicas between these limits, one pod each, and nothing remembered that would hold the
    /// size up.
    pub(super) fn new(min: i32, max: i32, current: i32) -> Self {
        let pods = (0..current).map(|ix| pod(&format!("web-{ix}"))).collect();
        Self {
            spec: json!({
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": min,
                "maxReplicas": max,
                "metrics": [],
            }),
            status: json!({}),
            settings: Settings {
                cpu_initialization_period: SignedDuration::from_mins(2),
                initial_readiness_delay: SignedDuration::from_secs(10),
                ..Settings::default()
            },
            scale: Ok(Scale {
                replicas: current,
                status_replicas: current,
                selector: "app=web".to_owned(),
            }),
            pods,
            readings: Vec::new(),
            rivals: Vec::new(),
            memory: Memory {
                recommendations: Some(Vec::new()),
                ..Memory::default()
            },
            written: Written::Done,
        }
    }

    /// Looks at one more metric, and what its API answers.
    pub(super) fn metric(mut self, metric: Value, reading: Reading) -> Self {
        let metrics = self.spec["metrics"].as_array_mut().unwrap();
        metrics.push(metric);
        self.readings.push(Ok(reading));
        self
    }

    /// Looks at the CPU of its pods, of which the first ones have these samples.
    pub(super) fn cpu(self, percent: i32, millis: &[i64]) -> Self {
        let usage = millis.iter().enumerate().map(|(ix, m)| usage(ix, *m));
        self.metric(cpu(percent), Reading::Usage(usage.collect()))
    }

    /// Looks at a figure of its pods.
    pub(super) fn qps(self, average: &str, millis: &[i64]) -> Self {
        let value = |(ix, value): (usize, &i64)| PodValue {
            pod: format!("web-{ix}"),
            time: ago(5),
            window: None,
            value: *value,
        };
        let values = millis.iter().enumerate().map(value).collect();
        self.metric(pods_metric(average), Reading::Values(values))
    }

    pub(super) fn object(self, kind: &str, amount: &str, millis: i64) -> Self {
        self.metric(object_metric(kind, amount), Reading::Object(vec![millis]))
    }

    pub(super) fn external(self, kind: &str, amount: &str, millis: &[i64]) -> Self {
        let series = Reading::Series(millis.to_vec());
        self.metric(external_metric(kind, amount), series)
    }

    /// Changes some of the pods.
    pub(super) fn with(mut self, pods: &[usize], change: impl Fn(&mut Pod)) -> Self {
        for ix in pods {
            change(&mut self.pods[*ix]);
        }
        self
    }

    pub(super) fn set(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn behavior(mut self, behavior: Value) -> Self {
        self.spec["behavior"] = behavior;
        self
    }

    /// Was recommended so many seconds ago.
    pub(super) fn recommended(mut self, log: &[(i32, i64)]) -> Self {
        let recommendation = |(replicas, seconds): &(i32, i64)| Recommendation {
            replicas: *replicas,
            time: ago(*seconds),
        };
        self.memory.recommendations = Some(log.iter().map(recommendation).collect());
        self
    }

    /// Changed its size a minute ago or less: towards more, and towards fewer.
    pub(super) fn changed(mut self, ups: &[i32], downs: &[i32]) -> Self {
        let event = |change: &i32| ScaleEvent {
            change: *change,
            time: ago(30),
            outdated: false,
        };
        self.memory.ups = ups.iter().map(event).collect();
        self.memory.downs = downs.iter().map(event).collect();
        self
    }

    pub(super) fn hpa(&self) -> Hpa {
        let object = json!({
            "apiVersion": "autoscaling/v2",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": self.spec,
            "status": self.status,
        });
        Hpa::read_stored(&object, &self.settings.gates).unwrap()
    }

    pub(super) fn run(self) -> Ran {
        let hpa = self.hpa();
        self.run_as(&hpa)
    }

    pub(super) fn run_as(self, hpa: &Hpa) -> Ran {
        let world = World {
            settings: self.settings,
            scale: self.scale,
            pods: self.pods.iter().collect(),
            rivals: self.rivals,
            readings: self.readings,
        };
        let decision = decide(hpa, &world, &self.memory, now());
        let ran = decision.clone();
        let conclusion = decision.conclude(hpa, &self.written, &self.settings, now());
        Ran {
            decision: ran,
            conclusion,
        }
    }
}

/// What a decision came to.
pub(super) struct Ran {
    pub(super) decision: Decision,
    pub(super) conclusion: Conclusion,
}

impl Ran {
    pub(super) fn desired(&self) -> i32 {
        self.conclusion.status.desired_replicas
    }

    /// Status and reason of a condition.
    pub(super) fn condition(&self, kind: &str) -> Option<(Truth, &str)> {
        let condition: &Condition = self.conclusion.status.conditions.get(kind)?;
        Some((condition.status, condition.reason.as_str()))
    }

    pub(super) fn able(&self) -> &str {
        self.condition("AbleToScale").map_or("", |c| c.1)
    }

    pub(super) fn limited(&self) -> &str {
        self.condition("ScalingLimited").map_or("", |c| c.1)
    }

    pub(super) fn active(&self) -> &str {
        self.condition("ScalingActive").map_or("", |c| c.1)
    }

    pub(super) fn utilization(&self) -> Option<i32> {
        self.decision.proposals[0].as_ref().unwrap().utilization
    }

    pub(super) fn events(&self) -> Vec<&str> {
        let events = self.conclusion.events.iter();
        events.map(|event: &Event| event.reason).collect()
    }
}
