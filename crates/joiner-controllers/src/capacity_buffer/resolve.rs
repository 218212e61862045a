//! Which pods a buffer keeps room for, and how many.

use std::sync::Arc;

use joiner_api::types::ResourceMap;
use joiner_model::{Name, ResourceName, Resources};
use joiner_state::live::{ClusterState, Kind, LiveBuffer, Snapshot};
use joiner_state::quantity::Quantity;
use serde_json::Value;

use super::pods::pod;

/// What a buffer comes to.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Metadata and spec of a pod.
    pub template: Arc<Value>,
    /// For how many of them there is to be room.
    pub replicas: i32,
    /// The generation of the PodTemplate, if it is one.
    pub template_generation: Option<i64>,
}

/// Why a buffer comes to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// There is no such PodTemplate.
    #[error("there is no PodTemplate {0}")]
    NoTemplate(Name),
    /// There is no such workload.
    #[error("there is no {0} {1}")]
    NoScalable(String, Name),
    /// The buffer, or its template, makes no sense.
    #[error("{0}")]
    Senseless(String),
}

impl Unresolved {
    /// In one word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoTemplate(_) => "PodTemplateNotFound",
            Self::NoScalable(..) => "ScalableRefNotFound",
            Self::Senseless(_) => "ResolutionFailed",
        }
    }
}

/// The object that a buffer takes its pods from.
pub(super) fn target(buffer: &LiveBuffer) -> Option<(Kind, Name)> {
    let spec = &buffer.buffer.spec;
    let within = |name: &str| Name::from(format!("{}/{name}", buffer.meta.namespace()));
    if let Some(template) = &spec.pod_template_ref {
        return Some((Kind::PodTemplate, within(&template.name)));
    }
    let scalable = spec.scalable_ref.as_ref()?;
    let group = scalable.api_group.as_deref().unwrap_or_default();
    let kind = match scalable.kind.as_str() {
        "Deployment" => Kind::Deployment,
        "StatefulSet" => Kind::StatefulSet,
        "ReplicaSet" => Kind::ReplicaSet,
        _ => return None,
    };
    matches!(group, "" | "apps").then(|| (kind, within(&scalable.name)))
}

/// Which pods a buffer keeps room for, and how many.
///
/// # Errors
/// When what it refers to is not there, or makes no sense.
pub fn resolve(now: &Snapshot, buffer: &LiveBuffer) -> Result<Resolved, Unresolved> {
    let spec = &buffer.buffer.spec;
    let Some((kind, name)) = target(buffer) else {
        return Err(Unresolved::Senseless(match &spec.scalable_ref {
            Some(named) => format!(
                "scalableRef cannot be a {} of group {:?}: name a Deployment, StatefulSet or \
                 ReplicaSet of apps",
                named.kind,
                named.api_group.as_deref().unwrap_or_default()
            ),
            None => "neither podTemplateRef nor scalableRef is set".to_owned(),
        }));
    };
    let (template, scale, template_generation) = if kind == Kind::PodTemplate {
        let Some(live) = now.template(&name) else {
            return Err(Unresolved::NoTemplate(name));
        };
        (&live.template, None, Some(live.meta.generation))
    } else {
        let Some(scalable) = now.scalable(kind, &name) else {
            return Err(Unresolved::NoScalable(kind.api().3.to_owned(), name));
        };
        (&scalable.template, Some(scalable.replicas), None)
    };
    let requests = requests(buffer, template).ok_or_else(|| {
        Unresolved::Senseless(format!("the pod template of {name} makes no sense"))
    })?;
    Ok(Resolved {
        template: Arc::clone(template),
        replicas: replicas(buffer, scale, &requests),
        template_generation,
    })
}

/// What one pod requests, by the rules for pods that exist.
fn requests(buffer: &LiveBuffer, template: &Value) -> Option<Resources> {
    let pod = pod(buffer, template, 1);
    let mut scratch = ClusterState::default();
    let change = scratch.apply(Kind::Pod, &pod)?;
    let read = scratch.snapshot();
    Some(read.pod(&change.name)?.requests().clone())
}

/// The larger of number and share, as far as the limits allow; with limits alone, all that they
/// allow.
fn replicas(buffer: &LiveBuffer, scale: Option<i64>, requests: &Resources) -> i32 {
    let spec = &buffer.buffer.spec;
    // Without a workload there is nothing to take a share of.
    let share = spec.percentage.zip(scale);
    let share = share.map(|(percentage, scale)| share_of(percentage, scale));
    let base = spec.replicas.max(share);
    let cap = spec
        .limits
        .as_ref()
        .and_then(|limits| cap(limits, requests));
    match (base, cap) {
        (Some(base), Some(cap)) => base.min(cap),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => 0,
    }
    .max(0)
}

/// Rounded up: something of anything is at least one.
fn share_of(percentage: i32, scale: i64) -> i32 {
    let product = i128::from(percentage.max(0)) * i128::from(scale.max(0));
    i32::try_from((product + 99) / 100).unwrap_or(i32::MAX)
}

/// How many pods the limits have room for; none when no limit is about something they request.
fn cap(limits: &ResourceMap, requests: &Resources) -> Option<i32> {
    let room = |(name, limit): (&String, &joiner_api::types::Quantity)| {
        let name = ResourceName::parse(name);
        let each = Some(requests.get(&name)).filter(|each| *each > 0)?;
        // A limit that cannot be read allows nothing.
        let limit = Quantity::parse(limit.as_str()).unwrap_or_default();
        Some(limit.units_down(&name) / each)
    };
    let least = limits.iter().filter_map(room).min()?;
    Some(i32::try_from(least).unwrap_or(i32::MAX))
}
