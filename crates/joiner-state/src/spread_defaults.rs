//! Spread constraints for pods that declare none, as the cluster's scheduler applies them.
//!
//! The scheduler gives such pods its default constraints, and deduces which pods count from what
//! selects the pod: the Services of its namespace and its owner. Whoever buys nodes for it must do
//! the same, or buys them in the wrong places.

use std::collections::BTreeSet;

use joiner_api::names::key_error;
use joiner_model::{Labels, PodShape, Selector, SelectorExpr, SelectorOp, Spread, keys};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::choices::Choice;
use crate::error::{Place, ReadError};
use crate::topology::{is_hard, policy, positive};
use crate::wire::strict::object_only;
use crate::wording::{self, shown};
use crate::yaml;

const CONSTRAINTS: &str = "podTopologySpread.defaultConstraints";

/// Spread constraints for pods that declare none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadDefaults {
    /// As pods get them, but for the selector.
    spreads: Vec<Spread>,
}

#[derive(Default, Deserialize)]
#[serde(
    remote = "Self",
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with podTopologySpread"
)]
struct WireConfig {
    pod_topology_spread: Option<WireSpread>,
}

#[derive(Default, Deserialize)]
#[serde(
    remote = "Self",
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with defaultConstraints"
)]
struct WireSpread {
    default_constraints: Option<Vec<WireConstraint>>,
}

#[derive(Default, Deserialize)]
#[serde(
    remote = "Self",
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a spread constraint"
)]
struct WireConstraint {
    max_skew: Option<i32>,
    topology_key: Option<String>,
    when_unsatisfiable: Option<String>,
    label_selector: Option<IgnoredAny>,
    match_label_keys: Option<Vec<IgnoredAny>>,
    min_domains: Option<i32>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
}

object_only!(WireConfig);
object_only!(WireSpread);
object_only!(WireConstraint);

impl SpreadDefaults {
    /// Reads `podTopologySpread.defaultConstraints` from YAML or JSON. `source` is what messages
    /// call the text. Nothing in it means no defaults.
    ///
    /// # Errors
    /// The first field that cannot be used, and what to do about it.
    pub fn parse(source: &str, text: &str) -> Result<Self, ReadError> {
        let value = document(source, text)?;
        if value.is_null() {
            return Ok(Self::default());
        }
        Self::read(&value).map_err(|error| error.of(source))
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spreads.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn n(&self) -> usize {
        self.spreads.len()
    }

    fn read(value: &Value) -> Result<Self, ReadError> {
        let config: WireConfig =
            serde_path_to_error::deserialize(value).map_err(|error| refused(error, value))?;
        let given = config.pod_topology_spread.unwrap_or_default();
        let given = given.default_constraints.unwrap_or_default();
        let mut defaults = Self::default();
        for (ix, constraint) in given.iter().enumerate() {
            let path = format!("{CONSTRAINTS}[{ix}]");
            let spread = spread(constraint).map_err(|error| error.below(&path))?;
            let same = |own: &Spread| own.key == spread.key && own.hard == spread.hard;
            if let Some(first) = defaults.spreads.iter().position(same) {
                let problem = format!(
                    "has the topologyKey and whenUnsatisfiable of {CONSTRAINTS}[{first}]; remove \
                     one of them"
                );
                return Err(ReadError::new(problem).field(path));
            }
            defaults.spreads.push(spread);
        }
        Ok(defaults)
    }
}

fn document(source: &str, text: &str) -> Result<Value, ReadError> {
    let text = text.trim_start_matches('\u{feff}');
    yaml::parse(text).map_err(|error| {
        let wrong = ReadError::new(format!("malformed YAML: {}", error.message));
        let field = error.spot.map(|spot| spot.named().1);
        let wrong = wrong.at(Place {
            source: source.into(),
            line: error.line.unwrap_or(1),
            column: error.column,
        });
        match field {
            Some(field) => wrong.field(field),
            None => wrong,
        }
    })
}

/// What to say about something that has the wrong type or an unknown name.
fn refused(error: serde_path_to_error::Error<serde_json::Error>, value: &Value) -> ReadError {
    let path = wording::path(error.path().iter());
    let mut problem = wording::problem(error.inner()).replace('`', "");
    if value.get("profiles").is_some() || value["kind"] == "KubeSchedulerConfiguration" {
        problem += "; this is the configuration of a scheduler: put the defaultConstraints of its \
                    PodTopologySpread plugin below podTopologySpread";
    } else if problem.starts_with("unknown field") {
        problem += "; remove it, or correct its spelling";
    }
    let refused = ReadError::new(problem);
    match path.as_str() {
        "" => refused,
        path => refused.field(path),
    }
}

fn spread(given: &WireConstraint) -> Result<Spread, ReadError> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let key = text(&given.topology_key);
    if let Some(why) = key_error(&key) {
        let problem = match key.as_str() {
            "" => "there is no topologyKey; name the label whose values are to be even".to_owned(),
            key => format!("{:?} is not a label key: it {why}", shown(key)),
        };
        return Err(ReadError::new(problem).field("topologyKey"));
    }
    if given.label_selector.is_some() {
        return Err(ReadError::new(DEDUCED).field("labelSelector"));
    }
    let label_keys = given.match_label_keys.as_ref();
    if label_keys.is_some_and(|keys| !keys.is_empty()) {
        return Err(ReadError::new(DEDUCED).field("matchLabelKeys"));
    }
    let when = text(&given.when_unsatisfiable);
    if when.is_empty() {
        let problem = "there is no whenUnsatisfiable; it is DoNotSchedule or ScheduleAnyway";
        return Err(ReadError::new(problem).field("whenUnsatisfiable"));
    }
    Ok(Spread {
        key: keys::canonical(&key).into(),
        max_skew: positive(given.max_skew.unwrap_or(0), "maxSkew")?,
        hard: is_hard(&when)?,
        selector: None,
        min_domains: given
            .min_domains
            .map(|n| positive(n, "minDomains"))
            .transpose()?,
        honor_affinity: policy(
            &text(&given.node_affinity_policy),
            true,
            "nodeAffinityPolicy",
        )?,
        honor_taints: policy(&text(&given.node_taints_policy), false, "nodeTaintsPolicy")?,
    })
}

const DEDUCED: &str = "must not be given here: which pods count follows from the Services and the \
                       owner of each pod; remove it";

/// The default constraints as a pod gets them: those it declares itself keep all of them away, and
/// so does a pod that nothing selects.
pub(crate) fn defaulted<'c>(
    defaults: &SpreadDefaults,
    shape: &PodShape,
    services: impl Iterator<Item = &'c Choice>,
    owner: Option<&Choice>,
) -> Vec<Spread> {
    if !shape.spreads.is_empty() || defaults.is_empty() {
        return Vec::new();
    }
    let Some(selector) = deduced(&shape.labels, services, owner) else {
        return Vec::new();
    };
    let spreads = defaults.spreads.iter().cloned();
    spreads
        .map(|spread| Spread {
            selector: Some(selector.clone()),
            ..spread
        })
        .collect()
}

/// The selector that kube-scheduler deduces for a pod: the labels that all matching Services ask
/// for together, and what its owner asks for.
fn deduced<'c>(
    labels: &Labels,
    services: impl Iterator<Item = &'c Choice>,
    owner: Option<&Choice>,
) -> Option<Selector> {
    let mut wanted = Labels::new();
    for service in services {
        if let Choice::Labels(asked) = service
            && asked
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
        {
            wanted.extend(asked.clone());
        }
    }
    let mut exprs = Vec::new();
    match owner {
        Some(Choice::Labels(asked)) => wanted.extend(asked.clone()),
        Some(Choice::Selector(selector)) => exprs.extend(selector.exprs().iter().cloned()),
        Some(Choice::Nothing) | None => {}
    }
    exprs.extend(wanted.into_iter().map(|(key, value)| SelectorExpr {
        key,
        op: SelectorOp::In,
        values: BTreeSet::from([value]),
    }));
    (!exprs.is_empty()).then(|| Selector::new(exprs))
}
