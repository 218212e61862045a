//! All objects of some manifests together: what one says can concern another.

use super::check::checked;
use super::fields::{at, subject, text};
use super::kind::OldKind;
use super::kubelet_homes::give_kubelets;
use super::remark::{Remark, Remarks};
use super::{Error, claim_life, ec2_fields, fields, metadata, pool_remarks, to_v1};
use crate::admission::{Rejection, admit, schema_of};
use crate::schema::FieldError;
use serde_json::Value;
use std::collections::BTreeMap;

/// What takes the place of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replacement {
    /// Its successor first, and then what came with it.
    pub objects: Vec<Value>,
    /// What changed its meaning, and what needs a hand.
    pub remarks: Vec<Remark>,
}

/// The object that cannot be converted, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// Its place among the objects.
    pub ix: usize,
    /// What is wrong.
    pub error: Error,
}

/// An object while it is converted.
#[derive(Debug)]
pub(super) struct Draft {
    /// `kind name` of the object as it came.
    pub(super) subject: String,
    /// The old kind; none for an object of today.
    pub(super) old: Option<OldKind>,
    /// What it is now: all of today.
    pub(super) objects: Vec<Value>,
    pub(super) remarks: Vec<Remark>,
    /// Whether it is not what it was.
    pub(super) is_changed: bool,
}

/// Converts the old ones among some objects. The others have a say, too: a NodePool of today may use
/// the class of an old one. Objects that stay as they are have no replacement.
///
/// # Errors
/// The first object that never was valid, that v1 has no room for, or that would be there twice.
pub fn convert_all(objects: &[Value]) -> Result<Vec<Option<Replacement>>, Failure> {
    let mut drafts = Vec::with_capacity(objects.len());
    for (ix, object) in objects.iter().enumerate() {
        drafts.push(draft(object).map_err(|error| Failure { ix, error })?);
    }
    let twice = |(ix, error)| Failure { ix, error };
    check_names(&drafts).map_err(twice)?;
    give_kubelets(&mut drafts);
    give_lives(&mut drafts);
    for (ix, draft) in drafts.iter_mut().enumerate() {
        if draft.is_changed {
            as_v1(draft).map_err(|error| Failure { ix, error })?;
        }
    }
    let replacement = |draft: Draft| {
        draft.is_changed.then_some(Replacement {
            objects: draft.objects,
            remarks: draft.remarks,
        })
    };
    Ok(drafts.into_iter().map(replacement).collect())
}

fn draft(object: &Value) -> Result<Draft, Error> {
    let subject = subject(object);
    let Some(old) = OldKind::of_object(object) else {
        return Ok(Draft {
            subject,
            old: None,
            objects: vec![object.clone()],
            remarks: Vec::new(),
            is_changed: false,
        });
    };
    let (mut object, mut list) = checked(object)?;
    let mut remarks = Remarks {
        subject: &subject,
        list: &mut list,
    };
    metadata::forget_version(&mut object);
    match old {
        OldKind::NodePool => pool_remarks::of_node_pool(&object, &mut remarks),
        OldKind::NodeClaim => {
            pool_remarks::reference(&object, &["spec", "nodeClassRef"], &mut remarks)
        }
        OldKind::Ec2NodeClass => ec2_fields::complete(&mut object, &mut remarks),
        OldKind::Provisioner
        | OldKind::Machine
        | OldKind::AwsNodeTemplate
        | OldKind::CapacityBuffer => {}
    }
    let mut converted = to_v1(&object)?;
    list.append(&mut converted.remarks);
    converted
        .objects
        .iter_mut()
        .for_each(ec2_fields::without_leftovers);
    Ok(Draft {
        subject,
        old: Some(old),
        objects: converted.objects,
        remarks: list,
        is_changed: true,
    })
}

/// Fails when an object would be there twice.
fn check_names(drafts: &[Draft]) -> Result<(), (usize, Error)> {
    let mut seen: BTreeMap<(&str, &str), (usize, &Draft)> = BTreeMap::new();
    let named = |object| at(object, &["metadata", "name"]).and_then(Value::as_str);
    for (ix, draft) in drafts.iter().enumerate() {
        for object in &draft.objects {
            let (kind, Some(name)) = (text(object, "kind"), named(object)) else {
                continue;
            };
            let Some((_, first)) = seen.insert((kind, name), (ix, draft)) else {
                continue;
            };
            if !draft.is_changed && !first.is_changed {
                continue;
            }
            let message = format!(
                "{kind} {name} would be there twice, from {} and from {}; remove or rename one of \
                 them",
                first.said(),
                draft.said()
            );
            let errors = vec![FieldError {
                path: "metadata.name".to_owned(),
                message,
                value: None,
            }];
            let subject = draft.subject.clone();
            return Err((ix, Error::NeverValid { subject, errors }));
        }
    }
    Ok(())
}

impl Draft {
    /// The object as it came, for people.
    fn said(&self) -> String {
        match self.old {
            Some(old) => {
                let (api_version, _) = old.header();
                let version = api_version.rsplit('/').next().unwrap_or_default();
                format!("{} ({version})", self.subject)
            }
            None => format!("{} (v1)", self.subject),
        }
    }
}

/// How long converted claims live is up to their pools.
fn give_lives(drafts: &mut [Draft]) {
    let mut lives = claim_life::Lives::new();
    for object in drafts.iter().flat_map(|draft| &draft.objects) {
        if text(object, "kind") == "NodePool" {
            claim_life::of_pool(object, &mut lives);
        }
    }
    for draft in drafts {
        if matches!(draft.old, Some(OldKind::NodeClaim | OldKind::Machine)) {
            let mut remarks = Remarks {
                subject: &draft.subject,
                list: &mut draft.remarks,
            };
            for claim in &mut draft.objects {
                claim_life::of_claim(claim, &lives, &mut remarks);
            }
        }
    }
}

/// Admits what an object has become, and leaves out what would have no effect.
fn as_v1(draft: &mut Draft) -> Result<(), Error> {
    for object in &mut draft.objects {
        fields::drop_nulls(object);
        let mut complete = object.clone();
        match admit(&mut complete) {
            Ok(admitted) => {
                let mut remarks = Remarks {
                    subject: &draft.subject,
                    list: &mut draft.remarks,
                };
                for warning in admitted.warnings {
                    remarks.note(warning.path, format!("{}; it is left out", warning.message));
                }
                let header = (
                    text(object, "apiVersion").to_owned(),
                    text(object, "kind").to_owned(),
                );
                if let Some(schema) = schema_of(&header.0, &header.1) {
                    schema.prune(object);
                }
            }
            Err(rejection) => {
                let errors = match &rejection {
                    Rejection::Invalid { errors, .. } => errors.clone(),
                    Rejection::NotAnObject { .. }
                    | Rejection::UnknownKind { .. }
                    | Rejection::OlderApi { .. } => vec![FieldError {
                        path: "kind".to_owned(),
                        message: rejection.to_string(),
                        value: None,
                    }],
                };
                return Err(Error::NotAsV1 {
                    subject: draft.subject.clone(),
                    kind: text(object, "kind").to_owned(),
                    errors,
                });
            }
        }
    }
    Ok(())
}
