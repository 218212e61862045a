//! Objects of earlier releases as objects of today, and back.
//!
//! *Flow.* [`check`] holds an old object against the schema of its own version. [`to_v1`] turns one
//! object into its successors, and [`to_v1beta1`] goes back: that is all an API server needs, which
//! asks about one object at a time. [`convert_all`] is for manifests: it checks, converts, moves what
//! has moved from pools to node classes, writes out defaults that have changed, checks again, and
//! says what a reader should know.
//!
//! *Guarantees.* Between v1beta1 and v1 nothing is lost, in either direction: what the other version
//! has no field for travels in an annotation, and comes back unless it was overwritten meanwhile. What
//! [`convert_all`] returns is admitted as v1.
//!
//! *Refuses.* Old objects that never were valid; and to invent what only a person knows: for that there
//! are placeholders, and a [`Remark`] on each.

mod annotations;
mod aws_node_template;
mod check;
mod claim_life;
mod class_reference;
mod delta;
mod ec2_fields;
mod ec2_node_class;
mod fields;
mod kind;
mod kubelet;
mod kubelet_homes;
mod lossless;
mod machine;
mod manifests;
mod mentions;
mod metadata;
mod moved;
mod node_claim;
mod node_pool;
mod pool_remarks;
mod provisioner;
mod remark;
mod requirements;
mod selectors;
mod volume_size;

pub use check::check;
pub use kind::{OldKind, is_old};
pub use manifests::{Failure, Replacement, convert_all};
pub use mentions::{may_mention, mentions, with_pool_names};
pub use moved::{Moved, Movements, moved};
pub use remark::Remark;

use crate::schema::FieldError;
use serde_json::Value;

/// What one old object has become.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    /// The successor, and the node class that was part of the old object if there was one.
    pub objects: Vec<Value>,
    /// What changed its meaning, and what needs a hand.
    pub remarks: Vec<Remark>,
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The kind has no successor, or is no kind of ours.
    #[error("{subject}: {api_version} {kind} is no older kind; there is nothing to convert")]
    NotOld {
        /// `kind name` of the object.
        subject: String,
        /// Group and version that the object names.
        api_version: String,
        /// Kind that the object names.
        kind: String,
    },
    /// The object breaks the rules of its own version.
    #[error("{subject}: {}", listed(errors))]
    NeverValid {
        /// `kind name` of the object.
        subject: String,
        /// Every mistake, up to a bound.
        errors: Vec<FieldError>,
    },
    /// The object was valid, and v1 has no room for what it says.
    #[error("{subject}: as {kind} v1, {}", listed(errors))]
    NotAsV1 {
        /// `kind name` of the old object.
        subject: String,
        /// What it would become.
        kind: String,
        /// What v1 says of that.
        errors: Vec<FieldError>,
    },
}

impl Error {
    /// The mistakes, if the content was looked at.
    #[must_use]
    pub fn errors(&self) -> &[FieldError] {
        match self {
            Self::NeverValid { errors, .. } | Self::NotAsV1 { errors, .. } => errors,
            Self::NotOld { .. } => &[],
        }
    }
}

fn listed(errors: &[FieldError]) -> String {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    all.join("; ")
}

/// One object as v1, by itself: nothing is checked, and nothing of a v1beta1 object is lost.
///
/// # Errors
/// The kind is none of the old ones.
pub fn to_v1(object: &Value) -> Result<Converted, Error> {
    let Some(kind) = OldKind::of_object(object) else {
        return Err(not_old(object));
    };
    let mut remarks = Vec::new();
    let subject = fields::subject(object);
    let objects = match kind {
        OldKind::NodePool | OldKind::NodeClaim | OldKind::Ec2NodeClass => {
            vec![lossless::up(kind, object)]
        }
        OldKind::Provisioner => provisioner::convert(object, &subject, &mut remarks),
        OldKind::Machine => vec![machine::convert(object)],
        OldKind::AwsNodeTemplate => {
            vec![aws_node_template::convert(object, &subject, &mut remarks)]
        }
        OldKind::CapacityBuffer => {
            vec![fields::with_version(object, "autoscaling.x-k8s.io/v1beta1")]
        }
    };
    Ok(Converted { objects, remarks })
}

/// A v1 object as v1beta1: nothing is lost.
///
/// # Errors
/// The kind is not one that has a version v1beta1 besides v1.
pub fn to_v1beta1(object: &Value) -> Result<Value, Error> {
    match OldKind::of_v1(object) {
        Some(kind) => Ok(lossless::down(kind, object)),
        None => Err(not_old(object)),
    }
}

fn not_old(object: &Value) -> Error {
    Error::NotOld {
        subject: fields::subject(object),
        api_version: fields::text(object, "apiVersion").to_owned(),
        kind: fields::text(object, "kind").to_owned(),
    }
}
