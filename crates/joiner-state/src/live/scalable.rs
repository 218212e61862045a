//! Workloads that say how many pods they want.

use std::sync::Arc;

use joiner_model::Name;
use serde_json::Value;

use super::kind::Kind;
use super::meta::Meta;
use super::moves::{MOVES, MoveTally};
use super::reading::{Live, Reading};
use super::surge::{SURGE, Surge, asks_for_surge};

/// A Deployment, ReplicaSet or StatefulSet, or another object that says how many pods it wants.
#[derive(Clone, Debug)]
pub struct LiveScalable {
    /// Metadata.
    pub meta: Meta,
    /// `spec.replicas`, 1 when absent.
    pub replicas: i64,
    /// `status.replicas`, 0 when absent: pods that are there.
    pub status_replicas: i64,
    /// Which pods it selects, as a query has it; none when it selects nothing, or cannot be read.
    pub selector: Option<Name>,
    /// How far its surge has come; none without one, or when that cannot be read.
    pub surge: Option<Arc<Surge>>,
    /// Whether it asks for another pod before one has to go; none when it says nothing.
    pub surge_on_move: Option<bool>,
    /// How often its pods were moved for money.
    pub moves: MoveTally,
    /// `spec.template`: metadata and spec of a pod. Null unless templates are kept.
    pub template: Arc<Value>,
}

impl Live for LiveScalable {
    const KINDS: &'static [Kind] = Kind::WORKLOADS;

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let template = &object["spec"]["template"];
        // Templates are large, and kept only where they are needed.
        let template = reading.keeps_templates.then(|| template.clone());
        if selects(reading.kind(), object) {
            reading.choose(object)?;
        }
        let meta = reading.meta(object);
        Ok(Self {
            replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
            status_replicas: object["status"]["replicas"].as_i64().unwrap_or(0),
            selector: selector(object, reading),
            surge: meta.annotation(SURGE).and_then(Surge::parse).map(Arc::new),
            surge_on_move: asks_for_surge(&meta),
            moves: meta
                .annotation(MOVES)
                .map(MoveTally::parse)
                .unwrap_or_default(),
            meta,
            template: Arc::new(template.unwrap_or_default()),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }
}

/// Which pods it selects: kinds of others tell in their status, as text.
fn selector(object: &Value, reading: &mut Reading<'_>) -> Option<Name> {
    if let Some(text) = object["status"]["selector"].as_str() {
        return Some(reading.text(text));
    }
    let selector = &object["spec"]["selector"];
    let selector = Some(selector).filter(|found| found.is_object())?;
    let selector = reading.selector(selector).ok()??;
    Some(reading.text(&selector.to_string()))
}

/// True when it matters which pods it selects. Most ReplicaSets are old and have no pods; Deployments
/// leave selecting to their ReplicaSets.
fn selects(kind: Kind, object: &Value) -> bool {
    let n = |part: &str| object[part]["replicas"].as_i64();
    match kind {
        Kind::Deployment => false,
        Kind::ReplicaSet => n("spec") != Some(0) || n("status").unwrap_or(0) != 0,
        _ => true,
    }
}
