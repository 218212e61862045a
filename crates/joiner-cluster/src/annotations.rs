//! Which annotations of pods and nodes cannot be read?
//!
//! Whoever reads one goes on without it; here it is told, once for each value, by a warning about the
//! object. [`told_in`] finds these warnings among actions, for those who keep a log.

use std::collections::BTreeMap;

use joiner_api::labels::ours::{
    BOOT_SECONDS, CPU_USAGE, EXIT_CODE, KUBELET, MEMORY_USAGE, RUN_SECONDS, START_SECONDS,
    STOP_SECONDS, UNREADABLE, unreadable,
};
use joiner_machinery::meta;
use serde_json::Value;

use crate::cache::Cache;
use crate::events::{EVENTS, Recorder};
use crate::metrics::is_usage;
use crate::scheduler::{NODES, PODS};
use crate::view::{Action, Controller, Resource, Step, View};

const NAME: &str = "annotations";

/// An annotation, and whether a value can be read.
type Rule = (&'static str, fn(&str) -> bool);

const OF_PODS: [Rule; 6] = [
    (CPU_USAGE, is_usage),
    (MEMORY_USAGE, is_usage),
    (START_SECONDS, is_seconds),
    (RUN_SECONDS, is_seconds),
    (STOP_SECONDS, is_seconds),
    (EXIT_CODE, is_number),
];

const OF_NODES: [Rule; 2] = [
    (BOOT_SECONDS, is_seconds),
    (KUBELET, |text| matches!(text, "true" | "false" | "stopped")),
];

fn is_number(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

fn is_seconds(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|seconds| seconds >= 0)
}

/// Annotations that cannot be read, with their values.
type Wrong = Vec<(&'static str, String)>;

fn wrong(object: &Value, rules: &[Rule]) -> Wrong {
    let wrong = rules.iter().filter_map(|(key, can_be_read)| {
        let value = meta::annotation(object, key)?;
        (!can_be_read(value)).then(|| (*key, value.to_owned()))
    });
    wrong.collect()
}

/// Tells of annotations that cannot be read.
#[derive(Default)]
pub struct Annotations {
    pods: Cache<Wrong>,
    nodes: Cache<Wrong>,
    /// What was told of objects that are there, by uid.
    told: BTreeMap<String, Wrong>,
}

impl Controller for Annotations {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reads(&self) -> &'static [Resource] {
        &[NODES, PODS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        let of_pods = |object: &Value| wrong(object, &OF_PODS);
        let of_nodes = |object: &Value| wrong(object, &OF_NODES);
        self.pods.refresh(view.objects(PODS), of_pods, |_| true);
        self.nodes.refresh(view.objects(NODES), of_nodes, |_| true);
        let mut recorder = Recorder::new(view, NAME);
        let mut told = BTreeMap::new();
        let mut step = Step::default();
        for (object, wrong) in self.nodes.pairs().chain(self.pods.pairs()) {
            let on = object["spec"]["nodeName"].as_str().unwrap_or("");
            if wrong.is_empty() || !on.is_empty() && view.get(NODES, "", on).is_none() {
                continue;
            }
            let before = self.told.remove(meta::uid(object)).unwrap_or_default();
            for own in wrong.iter().filter(|own| !before.contains(own)) {
                let message = unreadable(own.0, &own.1);
                let warning = recorder.warning(object, UNREADABLE, &message);
                step.actions.push(warning);
            }
            told.insert(meta::uid(object).to_owned(), Wrong::clone(wrong));
        }
        self.told = told;
        step
    }
}

/// The object and the words of a warning about an annotation; none for other actions.
#[must_use]
pub fn told_in(action: &Action) -> Option<(&Value, &str)> {
    let Action::Create(EVENTS, event) = action else {
        return None;
    };
    let told = (event["reason"] == UNREADABLE).then_some(event)?;
    Some((&told["involvedObject"], told["message"].as_str()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::view::Objects;

    /// Looks at a pod and a node with these annotations; what is told.
    fn look(own: &mut Annotations, pod: Value, node: Value, version: u64) -> Vec<String> {
        let object = |name: &str, annotations: Value| {
            let namespace = if name == "p" { "default" } else { "" };
            let object = json!({"metadata": {"name": name, "namespace": namespace,
                "uid": format!("uid-{name}"), "annotations": annotations,
                "resourceVersion": version.to_string()}});
            let key = (namespace.to_owned(), name.to_owned());
            Objects::from([(key, Arc::new(object))])
        };
        let kind = |(group, plural): Resource| (group.to_owned(), plural.to_owned());
        let kinds = BTreeMap::from([
            (kind(PODS), object("p", pod)),
            (kind(NODES), object("n", node)),
        ]);
        let view = View {
            kinds: &kinds,
            now: Timestamp::UNIX_EPOCH,
            seed: 0,
        };
        let step = own.step(&view);
        let told = step.actions.iter().filter_map(told_in);
        told.map(|(about, message)| {
            assert_eq!(about["uid"].as_str().unwrap().len(), 5);
            message.to_owned()
        })
        .collect()
    }

    #[test]
    fn each_key_is_told_of_when_its_value_cannot_be_read() {
        for (key, _) in OF_PODS {
            let told = look(
                &mut Annotations::default(),
                json!({key: "lots"}),
                json!({}),
                1,
            );
            assert_eq!(told.len(), 1, "{key}");
            assert!(
                told[0].contains(key) && told[0].contains("\"lots\""),
                "{told:?}"
            );
            assert!(told[0].contains("as it is, "), "{told:?}");
        }
        for (key, _) in OF_NODES {
            let told = look(&mut Annotations::default(), json!({}), json!({key: "-"}), 1);
            assert_eq!(told.len(), 1, "{key}");
        }
    }

    #[test]
    fn values_that_can_be_read_are_not_told() {
        let pod = json!({CPU_USAGE: "20%..90%/24h", MEMORY_USAGE: "1Gi", START_SECONDS: "0",
            RUN_SECONDS: "5", STOP_SECONDS: "3", EXIT_CODE: "-1", "example.com/x": "?"});
        let node = json!({BOOT_SECONDS: "30", KUBELET: "stopped"});
        assert_eq!(look(&mut Annotations::default(), pod, node, 1), [""; 0]);
    }

    #[test]
    fn a_value_is_told_once_and_another_again() {
        let own = &mut Annotations::default();
        let mut told = |value: &str, version: u64| {
            look(own, json!({CPU_USAGE: value}), json!({}), version).len()
        };
        assert_eq!(told("lots", 1), 1);
        assert_eq!(told("lots", 2), 0, "something else has changed");
        assert_eq!(told("more", 3), 1);
        assert_eq!(told("50%", 4), 0);
        assert_eq!(told("more", 5), 1);
    }
}
