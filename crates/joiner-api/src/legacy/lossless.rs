//! From v1beta1 to v1 and back, without losing anything.
//!
//! Each kind has a plain way up and a plain way down. What a plain way forgets is found by going it and
//! coming back, and travels in an annotation: fields of v1 in [`V1_FIELDS`], fields of v1beta1 in
//! [`V1BETA1_FIELDS`].

use super::annotations::{drop_if_empty, get, remove, set};
use super::kind::OldKind;
use super::{delta, ec2_node_class, node_claim, node_pool};
use crate::labels::ours::{V1_FIELDS, V1BETA1_FIELDS};
use serde_json::Value;

/// A v1beta1 object as v1.
pub(super) fn up(kind: OldKind, object: &Value) -> Value {
    let mut object = object.clone();
    let kept = take_record(&mut object, V1_FIELDS);
    let mut up = up_alone(kind, &object);
    delta::restore(&kept, &mut up);
    up
}

/// A v1 object as v1beta1.
pub(super) fn down(kind: OldKind, object: &Value) -> Value {
    let mut bare = object.clone();
    // What an earlier way down has left, and what is no map, is not to be in the way.
    remove(&mut bare, V1_FIELDS);
    drop_if_empty(&mut bare, "annotations");
    let kept = take_record(&mut bare, V1BETA1_FIELDS);
    let mut down = plain_down(kind, bare);
    delta::restore(&kept, &mut down);
    let lost = delta::record(&up_alone(kind, &down), object);
    if !lost.is_empty() {
        set(&mut down, V1_FIELDS, delta::written(lost));
    }
    down
}

/// A v1beta1 object that brings no fields of v1.
fn up_alone(kind: OldKind, object: &Value) -> Value {
    let mut up = plain_up(kind, object.clone());
    drop_if_empty(&mut up, "annotations");
    let lost = delta::record(&plain_down(kind, up.clone()), object);
    if !lost.is_empty() {
        set(&mut up, V1BETA1_FIELDS, delta::written(lost));
    }
    up
}

/// The record in an annotation; what is no record stays where it is.
fn take_record(object: &mut Value, key: &str) -> Vec<Value> {
    match get(object, key).and_then(delta::read) {
        Some(entries) => {
            remove(object, key);
            entries
        }
        None => Vec::new(),
    }
}

pub(super) fn plain_up(kind: OldKind, object: Value) -> Value {
    match kind {
        OldKind::NodePool => node_pool::up(object),
        OldKind::NodeClaim => node_claim::up(object),
        OldKind::Ec2NodeClass => ec2_node_class::up(object),
        OldKind::Provisioner
        | OldKind::Machine
        | OldKind::AwsNodeTemplate
        | OldKind::CapacityBuffer => object,
    }
}

fn plain_down(kind: OldKind, object: Value) -> Value {
    match kind {
        OldKind::NodePool => node_pool::down(object),
        OldKind::NodeClaim => node_claim::down(object),
        OldKind::Ec2NodeClass => ec2_node_class::down(object),
        OldKind::Provisioner
        | OldKind::Machine
        | OldKind::AwsNodeTemplate
        | OldKind::CapacityBuffer => object,
    }
}
