//! Workloads that say how many pods they want.

use std::sync::Arc;

use joiner_model::Name;
use serde_json::Value;

use super::kind::Kind;
use super::meta::Meta;
use super::reading::{Live, Reading};

/// A Deployment, ReplicaSet or StatefulSet.
#[derive(Clone, Debug)]
pub struct LiveScalable {
    /// Metadata.
    pub meta: Meta,
    /// `spec.replicas`, 1 when absent.
    pub replicas: i64,
    /// `spec.template`: metadata and spec of a pod. Null unless templates are kept.
    pub template: Arc<Value>,
}

impl Live for LiveScalable {
    const KINDS: &'static [Kind] = Kind::WORKLOADS;

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let template = &object["spec"]["template"];
        // Templates are large, and kept only for whoever needs them.
        let template = reading.keeps_templates.then(|| template.clone());
        if selects(reading.kind(), object) {
            reading.choose(object)?;
        }
        Ok(Self {
            meta: reading.meta(object),
            replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
            template: Arc::new(template.unwrap_or_default()),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }
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
