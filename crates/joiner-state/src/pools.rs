//! Node pools and node classes.

use joiner_api::types;
use joiner_model::{Labels, Name, Pool, Requirements, keys};
use serde::Deserialize as _;

use crate::documents::{Document, Header};
use crate::error::{Place, ReadError};
use crate::live::READY_NEEDS;
use crate::names::Names;
use crate::objects::Objects;
use crate::wire::pool::{NodeClaimTemplate, NodePool, NodePoolSpec, Status};
use crate::wire::{Condition, Meta, text};
use crate::{nodes, pod, requests, selection};

/// Names a node class.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeClassRef {
    /// API group, for example `karpenter.k8s.aws`.
    pub group: Name,
    /// Kind, for example `EC2NodeClass`.
    pub kind: Name,
    /// Name.
    pub name: Name,
}

/// A node class of the input.
#[derive(Clone, Debug)]
pub struct NodeClass {
    /// What pools call it.
    pub reference: NodeClassRef,
    /// The object as it was read.
    pub object: serde_json::Value,
    /// Where it was read.
    pub place: Place,
    /// Why no node can be made with it, if so.
    pub(crate) not_ready: Option<String>,
}

/// A pool of the input; its instance types are not known yet.
#[derive(Clone, Debug)]
pub(crate) struct PoolRecord {
    pub(crate) pool: Pool,
    pub(crate) class: NodeClassRef,
}

impl Objects {
    pub(crate) fn take_pool(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let value = self.admitted(header, document, place)?;
        let object: NodePool<'_> = Document::Value(&value).parse(place)?;
        let given = object.metadata.as_ref().map_or("", Meta::name);
        let name = self.register("NodePool", None, given, place)?;
        let typed = types::NodePool::deserialize(&value).ok();
        let invalid = typed.as_ref().and_then(judged);
        let added = self.add_pool(name.clone(), &object, invalid);
        added.map_err(|e| e.of(format!("NodePool {name}")).at(place.clone()))
    }

    /// Adds a pool that a server has admitted.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub(crate) fn add_admitted_pool(&mut self, pool: &types::NodePool) -> Result<(), ReadError> {
        let name = self.names.get(pool.name());
        self.add_pool(name, &NodePool::of(pool)?, judged(pool))
    }

    /// Adds a pool; `invalid` is what the controller finds wrong with it.
    fn add_pool(
        &mut self,
        name: Name,
        object: &NodePool<'_>,
        invalid: Option<String>,
    ) -> Result<(), ReadError> {
        let (no_spec, no_node) = (NodePoolSpec::default(), NodeClaimTemplate::default());
        let spec = object.spec.as_ref().unwrap_or(&no_spec);
        let template = spec.template.as_ref();
        let node = template.and_then(|t| t.spec.as_ref()).unwrap_or(&no_node);
        let names = &mut self.names;
        let path = "spec.template.spec";
        let taints = selection::taints(node.taints.as_ref(), &format!("{path}.taints"), names)?;
        let startup = node.startup_taints.as_ref();
        let startup_taints = selection::taints(startup, &format!("{path}.startupTaints"), names)?;
        let labels = template.and_then(|t| t.metadata.as_ref());
        let labels = canonical_labels(labels.and_then(|m| m.labels.as_ref()), names);
        let (requirements, unreadable) = requirements(node, names);
        let invalid = invalid
            .or(unreadable)
            .or_else(|| contradiction(&labels, &requirements));
        let class = class_ref(node, names);
        let closed = if object.metadata.as_ref().is_some_and(Meta::deleting) {
            Some("it is being deleted".to_owned())
        } else {
            invalid.or_else(|| closed(spec, object.status.as_ref()))
        };
        let pool = Pool {
            weight: spec.weight.unwrap_or(0),
            requirements,
            labels: all_labels(labels, &name, &class, names),
            taints,
            startup_taints,
            limits: spec.limits.as_ref().map(|l| requests::available(Some(l))),
            types: Vec::new(),
            closed: closed.map(|why| names.get(&why)),
            name,
        };
        self.pools.push(PoolRecord { pool, class });
        Ok(())
    }

    pub(crate) fn take_node_class(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let known = joiner_api::admission::schema_of(&header.api_version, &header.kind).is_some();
        let object = if known {
            self.admitted(header, document, place)?
        } else {
            document.parse(place)?
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let name = self.register(&header.kind, None, name, place)?;
        let group = header.api_version.split('/').next().unwrap_or_default();
        let status = Status::deserialize(&object["status"]).unwrap_or_default();
        let deleting = !object["metadata"]["deletionTimestamp"].is_null();
        let not_ready = if deleting {
            Some("is being deleted".to_owned())
        } else {
            not_ready(status.conditions.as_deref()).map(|why| format!("is not ready{why}"))
        };
        self.node_classes.push(NodeClass {
            reference: NodeClassRef {
                group: self.names.get(group),
                kind: self.names.get(&header.kind),
                name,
            },
            not_ready,
            place: place.clone(),
            object,
        });
        Ok(())
    }
}

fn canonical_labels(given: Option<&crate::wire::TextMap<'_>>, names: &mut Names) -> Labels {
    nodes::canonical(pod::labels(given, names))
}

/// The requirements that can be read, and what is wrong with the first that cannot.
fn requirements(node: &NodeClaimTemplate<'_>, names: &mut Names) -> (Requirements, Option<String>) {
    let (mut all, mut invalid) = (Requirements::new(), None);
    for expression in node.requirements.iter().flatten() {
        match selection::requirement(expression, names) {
            Ok(requirement) => all.add(requirement),
            Err(why) => {
                invalid.get_or_insert(format!("its requirements are not valid: {why}"));
            }
        }
    }
    (all, invalid)
}

/// What the controller would write into the pool's conditions.
fn judged(pool: &types::NodePool) -> Option<String> {
    let problems = joiner_api::validation::validate_node_pool(pool);
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// A label that the pool's own requirements do not allow: no node could have both.
fn contradiction(labels: &Labels, requirements: &Requirements) -> Option<String> {
    let refused =
        |(key, value): &(&Name, &Name)| requirements.get(key).is_some_and(|r| !r.has(value));
    let (key, value) = labels.iter().find(refused)?;
    Some(format!(
        "its label {key}={value} contradicts its own requirements"
    ))
}

fn closed(spec: &NodePoolSpec<'_>, status: Option<&Status<'_>>) -> Option<String> {
    if spec.replicas.is_some() {
        return Some("it is static (spec.replicas), and pods do not make it grow".to_owned());
    }
    let why = not_ready(status.and_then(|s| s.conditions.as_deref()))?;
    Some(format!("it is not ready{why}"))
}

/// Why a pool is not ready, when its condition Ready says no.
fn not_ready(conditions: Option<&[Condition<'_>]>) -> Option<String> {
    let failed = |kind: &str| {
        let mut all = conditions?.iter();
        all.find(|own| text(&own.kind) == kind && text(&own.status) == "False")
    };
    let ready = failed("Ready")?;
    // The root only names the conditions that are in the way; those say why.
    let cause = READY_NEEDS.iter().find_map(|own| failed(own));
    let cause = cause.filter(|own| !text(&own.message).is_empty());
    let ready = cause.unwrap_or(ready);
    Some(match (text(&ready.reason), text(&ready.message)) {
        ("", "") => String::new(),
        (reason, "") => format!(": {reason}"),
        (_, message) => format!(": {message}"),
    })
}

fn class_ref(node: &NodeClaimTemplate<'_>, names: &mut Names) -> NodeClassRef {
    match &node.node_class_ref {
        Some(class) => NodeClassRef {
            group: names.get(text(&class.group)),
            kind: names.get(text(&class.kind)),
            name: names.get(text(&class.name)),
        },
        None => NodeClassRef::default(),
    }
}

/// Labels of a node that is up: the template's, and those that come by themselves.
fn all_labels(mut labels: Labels, pool: &Name, class: &NodeClassRef, names: &mut Names) -> Labels {
    labels.insert(names.get(keys::NODE_POOL), pool.clone());
    if !class.kind.is_empty() {
        let key = format!("{}/{}", class.group, class.kind.to_lowercase());
        labels.insert(names.get(&key), class.name.clone());
    }
    for key in [keys::REGISTERED, keys::INITIALIZED] {
        labels.insert(names.get(key), names.get("true"));
    }
    labels
}
