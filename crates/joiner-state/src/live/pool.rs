//! NodePools and node classes.

use std::sync::Arc;

use joiner_api::types::{Condition, ConditionStatus, NodePool};
use joiner_model::{Name, none_ready};
use serde::Deserialize as _;
use serde_json::Value;

use super::claim::Conditions;
use super::kind::Kind;
use super::meta::{Meta, list};
use super::reading::{Live, Reading, accept};
use super::surge::asks_for_surge;
use crate::objects::Objects;
use crate::pools::NodeClassRef;

/// A NodePool of the cluster.
#[derive(Clone, Debug)]
pub struct LivePool {
    /// Metadata.
    pub meta: Meta,
    /// The object, without managed fields.
    pub pool: Arc<NodePool>,
    /// Its class.
    pub class: NodeClassRef,
    /// Whether Deployments get another pod before one on its nodes has to go; none when it says nothing.
    pub surge_on_move: Option<bool>,
}

impl Live for LivePool {
    const KINDS: &'static [Kind] = &[Kind::NodePool];
    const IS_GROUND: bool = true;

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let mut pool = NodePool::deserialize(object).map_err(|error| error.to_string())?;
        pool.metadata.managed_fields = Vec::new();
        let class = &pool.spec.template.spec.node_class_ref;
        let meta = reading.meta(object);
        Ok(Self {
            surge_on_move: asks_for_surge(&meta),
            meta,
            class: NodeClassRef {
                group: reading.text(&class.group),
                kind: reading.text(&class.kind),
                name: reading.text(&class.name),
            },
            pool: Arc::new(pool),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }

    fn add_to(&self, objects: &mut Objects) {
        // The server has admitted it; what is odd about it all the same is left out.
        let _ = objects.add_admitted_pool(&self.pool);
    }
}

impl LivePool {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.meta.name
    }

    /// Pods make it grow: it is not static.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.pool.spec.replicas.is_none()
    }

    /// Ready, and not on its way out.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.meta.deleting.is_none() && self.is_true("Ready")
    }

    /// Why no node can be bought for it, in a few words; None for one that is usable.
    #[must_use]
    pub fn why_unusable(&self) -> Option<String> {
        if self.meta.deleting.is_some() {
            return Some("it is being deleted".to_owned());
        }
        if self.is_usable() {
            return None;
        }
        let status = self.pool.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let conditions = conditions.unwrap_or_default();
        let failed = |kind: &str| {
            let mut all = conditions.iter();
            let own = all.find(|own| own.type_ == kind && own.status == ConditionStatus::False)?;
            let texts = [own.message.as_deref(), own.reason.as_deref()];
            let mut texts = texts.into_iter().flatten();
            texts.find(|text| !text.is_empty()).map(str::to_owned)
        };
        // The root only names the conditions that are in the way; those say why.
        let causes: Vec<String> = READY_NEEDS.iter().filter_map(|own| failed(own)).collect();
        Some(match causes.is_empty() {
            true => failed("Ready").unwrap_or_else(|| "its status says nothing yet".to_owned()),
            false => causes.join("; "),
        })
    }
}

/// What has to be True for a pool to be ready.
pub(crate) const READY_NEEDS: [&str; 2] = ["ValidationSucceeded", "NodeClassReady"];

/// Why no node can be bought for any pod, given all pools: None when one pool is usable. Nobody here
/// looks after pools whose class is not `known`.
#[must_use]
pub(crate) fn why_no_pool<'p>(
    pools: impl Iterator<Item = &'p LivePool>,
    known: impl Fn(&NodeClassRef) -> bool,
) -> Option<String> {
    let (mut unusable, mut n_static) = (Vec::new(), 0_usize);
    for pool in pools {
        if !pool.is_dynamic() {
            n_static += 1;
            continue;
        }
        let why = pool.why_unusable()?;
        let NodeClassRef { group, kind, .. } = &pool.class;
        let why = match known(&pool.class) || pool.meta.deleting.is_some() {
            true => why,
            false => format!("the cloud does not know its class, {kind} of {group}"),
        };
        unusable.push((pool.name().clone(), why));
    }
    if unusable.is_empty() && n_static > 0 {
        return Some("all NodePools have a fixed number of replicas".to_owned());
    }
    Some(none_ready(&unusable))
}

impl Conditions for LivePool {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.pool.status.as_ref()?.conditions.condition(kind)
    }
}

/// A node class of the cluster.
#[derive(Clone, Debug)]
pub struct LiveClass {
    /// Metadata; the name is the class's own.
    pub meta: Meta,
    /// What pools call it.
    pub reference: NodeClassRef,
    /// The object, without managed fields.
    pub object: Arc<Value>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

impl Live for LiveClass {
    const KINDS: &'static [Kind] = &[Kind::NodeClass];
    const IS_GROUND: bool = true;

    fn name_of(object: &Value) -> Name {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        format!("{}/{kind}/{name}", group(object)).into()
    }

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let meta = reading.meta(object);
        let conditions = list(&object["status"]["conditions"]);
        let conditions = conditions.filter_map(|own| Condition::deserialize(own).ok());
        let conditions = conditions.collect();
        let reference = NodeClassRef {
            group: reading.text(group(object)),
            kind: reading.text(object["kind"].as_str().unwrap_or_default()),
            name: meta.name.clone(),
        };
        let mut object = object.clone();
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
        Ok(Self {
            reference,
            conditions,
            meta,
            object: Arc::new(object),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }

    fn add_to(&self, objects: &mut Objects) {
        // The server has admitted it; what is odd about it all the same is left out.
        let _ = accept(objects, &self.object);
    }
}

/// The API group of an object.
fn group(object: &Value) -> &str {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

impl LiveClass {
    /// `group/Kind/name`, its key in snapshots.
    #[must_use]
    pub fn key(reference: &NodeClassRef) -> Name {
        format!("{}/{}/{}", reference.group, reference.kind, reference.name).into()
    }
}

impl Conditions for LiveClass {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.condition(kind)
    }
}
