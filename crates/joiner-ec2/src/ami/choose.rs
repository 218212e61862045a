//! From images that were found to those in a class's status, and to the one that a machine boots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_api::labels::ARCH;
use joiner_api::types::{Ami, Operator, Requirement};
use joiner_model::InstanceType;

use super::alias::Lookup;
use crate::answer::Image;

/// The images of a class: one for each distinct set of requirements, newest first.
#[must_use]
pub fn select(
    images: &[Image],
    lookups: &[Lookup],
    values: &BTreeMap<String, String>,
    now: Timestamp,
) -> Vec<Ami> {
    let mut best: BTreeMap<String, Candidate<'_>> = BTreeMap::new();
    for image in images.iter().filter(|image| image.state == "available") {
        for candidate in candidates(image, lookups, values, now) {
            let requirements = format!("{:?}", candidate.requirements);
            match best.get(&requirements) {
                Some(known) if known.rank() >= candidate.rank() => {}
                _ => _ = best.insert(requirements, candidate),
            }
        }
    }
    let mut chosen: Vec<Candidate<'_>> = best.into_values().collect();
    chosen.sort_by_key(|candidate| {
        let image = candidate.image;
        (
            Reverse(&image.creation_date),
            &image.image_id,
            candidate.place,
        )
    });
    chosen.into_iter().map(Candidate::into_ami).collect()
}

/// An image for one kind of machines.
struct Candidate<'i> {
    image: &'i Image,
    is_deprecated: bool,
    /// Which of the image's kinds of machines.
    place: usize,
    requirements: Vec<Requirement>,
}

impl Candidate<'_> {
    /// What is better is larger: not deprecated, then newer, then the later name.
    fn rank(&self) -> (bool, &str, &str) {
        let image = self.image;
        (!self.is_deprecated, &image.creation_date, &image.name)
    }

    fn into_ami(self) -> Ami {
        Ami {
            id: self.image.image_id.clone(),
            name: Some(self.image.name.clone()),
            deprecated: self.is_deprecated.then_some(true),
            requirements: self.requirements,
        }
    }
}

/// The kinds of machines that an image is for. An architecture that we do not know has none.
fn candidates<'i>(
    image: &'i Image,
    lookups: &[Lookup],
    values: &BTreeMap<String, String>,
    now: Timestamp,
) -> Vec<Candidate<'i>> {
    let arch = match image.architecture.as_str() {
        "x86_64" => "amd64",
        "arm64" => "arm64",
        _ => return Vec::new(),
    };
    let of_image = |lookup: &&Lookup| values.get(&lookup.parameter) == Some(&image.image_id);
    let variants = lookups
        .iter()
        .filter(of_image)
        .flat_map(|lookup| lookup.variants.iter().copied());
    let variants: BTreeSet<_> = variants.collect();
    let mut sets: Vec<Vec<Requirement>> = variants
        .into_iter()
        .map(|variant| variant.requirements())
        .collect();
    if sets.is_empty() {
        sets.push(Vec::new());
    }
    let is_deprecated = is_deprecated(image, now);
    let candidate = |(place, mut requirements): (usize, Vec<Requirement>)| {
        requirements.push(Requirement {
            key: ARCH.to_owned(),
            operator: Operator::In,
            values: vec![arch.to_owned()],
            min_values: None,
        });
        requirements.sort_by(|one, other| {
            let key = |requirement: &Requirement| (requirement.key.len(), requirement.key.clone());
            key(one).cmp(&key(other))
        });
        Candidate {
            image,
            is_deprecated,
            place,
            requirements,
        }
    };
    sets.into_iter().enumerate().map(candidate).collect()
}

fn is_deprecated(image: &Image, now: Timestamp) -> bool {
    let time = image.deprecation_time.as_deref();
    let time = time.and_then(|time| time.parse::<Timestamp>().ok());
    time.is_some_and(|time| time <= now)
}

/// Parameters whose remembered value must be forgotten: they are to name the newest image, and name a deprecated
/// one.
#[must_use]
pub fn stale(
    lookups: &[Lookup],
    values: &BTreeMap<String, String>,
    images: &[Image],
    now: Timestamp,
) -> Vec<String> {
    let is_stale = |lookup: &&Lookup| {
        let id = values.get(&lookup.parameter);
        let image = images.iter().find(|image| Some(&image.image_id) == id);
        lookup.is_mutable && image.is_some_and(|image| is_deprecated(image, now))
    };
    let stale = lookups.iter().filter(is_stale);
    stale.map(|lookup| lookup.parameter.clone()).collect()
}

/// The image for a type: the first whose requirements it meets.
#[must_use]
pub fn for_type<'a>(amis: &'a [Ami], ty: &InstanceType) -> Option<&'a Ami> {
    amis.iter().find(|ami| {
        ami.requirements
            .iter()
            .all(|requirement| meets(ty, requirement))
    })
}

/// Whether a type meets a requirement of an image.
fn meets(ty: &InstanceType, requirement: &Requirement) -> bool {
    let values = ty.labels.get(requirement.key.as_str());
    let any_in = || {
        let mut values = values.into_iter().flatten();
        values.any(|value| requirement.values.iter().any(|wanted| **wanted == **value))
    };
    match requirement.operator {
        Operator::Exists => values.is_some(),
        Operator::DoesNotExist => values.is_none(),
        Operator::In => any_in(),
        Operator::NotIn => !any_in(),
        // Images have no requirements that compare numbers.
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => false,
    }
}
