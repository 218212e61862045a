//! A VPA through many passes of the recommender: what is recommended, and what is stored at the end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::condition::{Condition, Conditions};
use crate::durations::{after, before};
use crate::part::{FieldError, Part};
use crate::selector::Selector;
use crate::vpa::{
    Aggregate, Cluster, Id, Oom, Pod, Recommended, Settings, Usage, Vpa, conditions, of_eviction,
};

const BYTES_PER_KI: i64 = 1024;

pub(super) fn answer(problem: &Part<'_>) -> Result<Value, FieldError> {
    let mut replay = Replay::new(problem)?;
    let start = problem.field("start").some_time()?;
    let seconds = problem.field("intervalSeconds").int64()?.unwrap_or(60);
    let n_ticks = problem.field("ticks").int64()?.unwrap_or(0);
    let mut asked = BTreeSet::new();
    for tick in problem.field("answerAtTicks").items()? {
        asked.extend(tick.int64()?);
    }
    let event_list = problem.field("events");
    let mut events = event_list.items()?.into_iter().peekable();
    let mut ticks = Vec::new();
    let mut stored = BTreeMap::new();
    for tick in 1..=n_ticks {
        let now = after(
            start,
            SignedDuration::from_secs(seconds.saturating_mul(tick)),
        );
        while let Some(event) = events.peek() {
            if event.field("tick").int64()?.unwrap_or(0) > tick {
                break;
            }
            replay.follow(event)?;
            events.next();
        }
        let recommended = replay.pass(problem, tick, now)?;
        if asked.contains(&tick) {
            ticks.push(shown(tick, now, &recommended, &replay.conditions));
        }
        for (name, aggregate) in replay.cluster.to_store(&replay.id, now) {
            stored.insert(name, aggregate.to_checkpoint(now));
        }
        replay.checkpoints.clone_from(&stored);
        replay.cluster.forget(now);
    }
    let checkpoint =
        |(name, status): (&String, &Value)| json!({"containerName": name, "status": status});
    Ok(json!({
        "id": problem.field("id").some_text()?,
        "ticks": ticks,
        "checkpoints": stored.iter().map(checkpoint).collect::<Vec<_>>(),
    }))
}

/// A recommender on its way through the passes.
struct Replay {
    settings: Settings,
    vpa: Vpa,
    id: Id,
    selector: Selector,
    cluster: Cluster,
    /// Pods that the recommender sees.
    pods: BTreeMap<String, Pod>,
    ooms: Vec<Oom>,
    conditions: Conditions,
    /// What was stored in the last pass, by container.
    checkpoints: BTreeMap<String, Value>,
    /// Whether checkpoints are to be read.
    begins: bool,
}

impl Replay {
    fn new(problem: &Part<'_>) -> Result<Self, FieldError> {
        let mut settings = Settings::read(&problem.field("flags"))?;
        let gates = problem.field("featureGates");
        settings.per_vpa = gates.field("PerVPAConfig").boolean()? == Some(true);
        let vpa = Vpa::read(problem.field("vpa").value()).map_err(|e| e.below("vpa"))?;
        let selector = problem.field("selector");
        let parsed = Selector::parse(selector.text()?.unwrap_or_default());
        let selector = parsed.map_err(|error| selector.error(error.to_string()))?;
        Ok(Self {
            cluster: Cluster::new(settings.clone()),
            settings,
            id: (vpa.namespace.clone(), vpa.name.clone()),
            vpa,
            selector,
            pods: BTreeMap::new(),
            ooms: Vec::new(),
            conditions: Conditions::default(),
            checkpoints: BTreeMap::new(),
            begins: true,
        })
    }

    fn follow(&mut self, event: &Part<'_>) -> Result<(), FieldError> {
        let kind = event.field("type").some_text()?;
        let object = event.field("object");
        if kind == "RESTART" {
            self.cluster = Cluster::new(self.settings.clone());
            self.ooms.clear();
            self.begins = true;
            return Ok(());
        }
        match object.field("kind").text()? {
            Some("Event") => self.ooms.extend(of_eviction(object.value())),
            Some("VerticalPodAutoscaler") => {
                let vpa = Vpa::read(object.value());
                self.vpa = vpa.map_err(|error| error.below(&object.path()))?;
            }
            _ => self.follow_pod(kind, &object)?,
        }
        Ok(())
    }

    fn follow_pod(&mut self, kind: &str, object: &Part<'_>) -> Result<(), FieldError> {
        let name = object.field("metadata");
        let name = name.field("name").some_text()?.to_owned();
        let old = self.pods.remove(&name);
        if kind == "DELETED" {
            return Ok(());
        }
        let pod = Pod::read(object.value()).map_err(|error| error.below(&object.path()))?;
        if pod.phase == "Pending" {
            return Ok(());
        }
        if let Some(old) = old {
            self.ooms.extend(pod.ooms_since(&old));
        }
        self.pods.insert(name, pod);
        Ok(())
    }

    /// One pass, as far as the recommendation.
    fn pass(
        &mut self,
        problem: &Part<'_>,
        tick: i64,
        now: Timestamp,
    ) -> Result<Recommended, FieldError> {
        let is_mine = self.vpa.is_for(&self.settings.name);
        let vpas = || is_mine.then(|| (self.vpa.clone(), self.selector.clone()));
        self.cluster.set_vpas(vpas().into_iter().collect());
        if self.begins {
            for (name, status) in &self.checkpoints {
                let aggregate = Aggregate::of_checkpoint(status, &self.settings, now)?;
                self.cluster.set_initial(&self.id, name, aggregate);
            }
            self.begins = false;
            self.cluster
                .set_vpas(vec![(self.vpa.clone(), self.selector.clone())]);
        }
        self.cluster.set_pods(self.pods.values(), now);
        let default_age = problem.field("sampleAgeSeconds");
        let default_age = default_age.duration()?.unwrap_or_default();
        for metric in problem.field("metrics").items()? {
            self.measure(&metric, tick, (now, default_age))?;
        }
        for oom in std::mem::take(&mut self.ooms) {
            self.cluster.add_oom(&oom, now);
        }
        let recommended = self.cluster.recommend(&self.id, now);
        if let Some(recommended) = &recommended {
            conditions(&mut self.conditions, recommended, now);
        }
        Ok(recommended.unwrap_or_default())
    }

    fn measure(
        &mut self,
        metric: &Part<'_>,
        tick: i64,
        (now, default_age): (Timestamp, SignedDuration),
    ) -> Result<(), FieldError> {
        let first = metric.field("firstTick").int64()?.unwrap_or(1);
        let Ok(ix) = usize::try_from(tick - first) else {
            return Ok(());
        };
        let age = metric.field("ageSeconds");
        let age = age.value().get(ix).and_then(Value::as_f64);
        let age = age.and_then(|age| SignedDuration::try_from_secs_f64(age).ok());
        let time = before(now, age.unwrap_or(default_age));
        let pod = (
            self.id.0.clone(),
            metric.field("pod").some_text()?.to_owned(),
        );
        for (container, lists) in metric.field("containers").entries()? {
            let amount = |list: &str| lists.value()[list].get(ix).and_then(Value::as_i64);
            let (cpu, memory) = (amount("cpuMilli"), amount("memoryKi"));
            if cpu.is_none() && memory.is_none() {
                continue;
            }
            let usage = Usage {
                container: container.to_owned(),
                cpu_millis: cpu.unwrap_or(0),
                memory_bytes: memory.unwrap_or(0).saturating_mul(BYTES_PER_KI),
                time,
            };
            self.cluster.add_usage(&pod, &usage, now);
        }
        Ok(())
    }
}

fn shown(tick: i64, now: Timestamp, recommended: &Recommended, conditions: &Conditions) -> Value {
    let containers = recommended.containers.iter().map(|one| one.to_json());
    let condition = |condition: &Condition| {
        json!({
            "type": condition.kind,
            "status": condition.status.as_str(),
            "reason": condition.reason,
        })
    };
    json!({
        "tick": tick,
        "time": now.to_string(),
        "containerRecommendations": containers.collect::<Vec<_>>(),
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
    })
}
