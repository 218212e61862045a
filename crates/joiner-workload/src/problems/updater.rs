//! One round of the updater: which pods are worth an update, and what is done.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::part::{FieldError, Part};
use crate::quantity::Quantity;
use crate::selector::Selector;
use crate::vpa::{
    Action, LimitRanges, Pod, ResizeMemory, Resources, Round, Situation, UpdaterSettings, Vpa,
};

pub(super) fn answer(problem: &Part<'_>) -> Result<Value, FieldError> {
    let now = problem.field("now").some_time()?;
    let vpa = Vpa::read(problem.field("vpa").value()).map_err(|e| e.below("vpa"))?;
    let selector = problem.field("selector");
    let parsed = Selector::parse(selector.text()?.unwrap_or_default());
    let chosen = parsed.map_err(|error| selector.error(error.to_string()))?;
    let mut pods = Vec::new();
    for item in problem.field("pods").items()? {
        let pod = Pod::read(item.value()).map_err(|error| error.below(&item.path()))?;
        if chosen.matches(&pod.labels) {
            pods.push(pod);
        }
    }
    let mut configured = BTreeMap::new();
    for set in problem.field("replicaSets").items()? {
        let meta = set.field("metadata");
        let name = meta.field("name").some_text()?.to_owned();
        let replicas = set.field("spec").field("replicas").int64()?;
        configured.insert(("ReplicaSet".to_owned(), name), replicas.unwrap_or(0));
    }
    let ranges = problem.field("limitRanges");
    let ranges: Vec<&Value> = ranges.items()?.iter().map(Part::value).collect();
    let situation = Situation {
        vpa: &vpa,
        pods: &pods,
        configured,
        ranges: LimitRanges::read(ranges)?,
        settings: UpdaterSettings::read(&problem.field("flags"), &problem.field("featureGates"))?,
    };
    let mut round = Round::new(&situation, &ResizeMemory::default(), now);
    let order = round
        .order()
        .iter()
        .map(|accepted| json!(accepted.pod.name));
    let order: Vec<Value> = order.collect();
    let (mut evicted, mut resized) = (Vec::new(), Vec::new());
    while let Some(action) = round.next_action() {
        match action {
            Action::Evict { pod } => evicted.push(pod),
            Action::Resize { pod, containers } => {
                let shown = containers.iter().map(|(name, one)| {
                    let mut map = Map::new();
                    for (field, all) in [("requests", &one.requests), ("limits", &one.limits)] {
                        if !all.is_empty() {
                            map.insert(field.to_owned(), amounts(all));
                        }
                    }
                    (name.clone(), Value::Object(map))
                });
                let shown: Map<String, Value> = shown.collect();
                resized.push(json!({"pod": pod, "containers": shown}));
            }
        }
        round.report(true);
    }
    Ok(json!({
        "id": problem.field("id").some_text()?,
        "order": order,
        "evicted": evicted,
        "resized": resized,
    }))
}

fn amounts(all: &Resources<Quantity>) -> Value {
    let shown = all
        .iter()
        .map(|(resource, amount)| (resource.as_str().to_owned(), json!(amount.to_string())));
    Value::Object(shown.collect())
}
