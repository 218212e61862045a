//! NodePools and node classes.

use std::sync::Arc;

use joiner_api::types::{Condition, ConditionStatus, NodePool};
use joiner_model::{Name, none_ready};
use serde::Deserialize as _;
use serde_json::Value;

use super::claim::Conditions;
use super::meta::Meta;
use crate::names::Names;
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
}

impl LivePool {
    pub(crate) fn read(object: &Value, names: &mut Names) -> Result<Self, serde_json::Error> {
        let mut pool = NodePool::deserialize(object)?;
        pool.metadata.managed_fields = Vec::new();
        let class = &pool.spec.template.spec.node_class_ref;
        Ok(Self {
            meta: Meta::read(object, names),
            class: NodeClassRef {
                group: names.get(&class.group),
                kind: names.get(&class.kind),
                name: names.get(&class.name),
            },
            pool: Arc::new(pool),
        })
    }

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

impl LiveClass {
    pub(crate) fn read(object: &Value, names: &mut Names) -> Self {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let meta = Meta::read(object, names);
        let conditions = object["status"]["conditions"].as_array();
        let conditions = conditions
            .into_iter()
            .flatten()
            .filter_map(|condition| Condition::deserialize(condition).ok());
        let mut object = object.clone();
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
        Self {
            reference: NodeClassRef {
                group: names.get(api_version.split_once('/').map_or("", |(group, _)| group)),
                kind: names.get(object["kind"].as_str().unwrap_or_default()),
                name: meta.name.clone(),
            },
            conditions: conditions.collect(),
            meta,
            object: Arc::new(object),
        }
    }

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
