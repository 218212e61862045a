//! Whether a node is still what its pool asks for.

use jiff::{SignedDuration, Timestamp};
use joiner_api::conditions as condition;
use joiner_api::labels::{
    CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL_HASH, NODE_POOL_HASH_VERSION, ON_DEMAND, RESERVED,
};
use joiner_model::{InstanceType, Labels, Name, Offering, Requirements, keys};
use joiner_state::live::{Conditions as _, LiveClaim, LivePool};

use crate::requirements;

/// Why a node drifts whose type is no longer sold.
pub(crate) const TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";
/// A type that was found is not looked for again for this long.
const FOUND_FOR: SignedDuration = SignedDuration::from_secs(1800);
/// A young claim's type may not be known everywhere yet.
const YOUNG: SignedDuration = SignedDuration::from_secs(3600);

/// What says whether a claim has drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The pool: this is why, if it has.
    Settled(Option<&'static str>),
    /// The cloud, by its types first.
    TypesAndCloud,
    /// The cloud.
    Cloud,
}

/// What says whether a claim has drifted. What the pool says comes first; a claim that is not
/// launched cannot have drifted. `found` is when its type was last found.
pub(crate) fn question(
    claim: &LiveClaim,
    pool: &LivePool,
    found: Option<Timestamp>,
    now: Timestamp,
) -> Question {
    if !claim.is_true(&condition::LAUNCHED) {
        return Question::Settled(None);
    }
    match of_pool(claim, pool) {
        Some(reason) => Question::Settled(Some(reason)),
        None if type_is_due(claim, found, now) => Question::TypesAndCloud,
        None => Question::Cloud,
    }
}

/// Why a claim is not what its pool asks for, if so.
fn of_pool(claim: &LiveClaim, pool: &LivePool) -> Option<&'static str> {
    if is_template_changed(claim, pool) {
        return Some("NodePoolDrifted");
    }
    if !meets_requirements(claim, pool) {
        return Some("RequirementsDrifted");
    }
    None
}

/// The hash of the template is another one. Without hash and version on both sides, or with
/// different versions, nothing can be said.
fn is_template_changed(claim: &LiveClaim, pool: &LivePool) -> bool {
    let both = |key: &str| Some((claim.meta.annotation(key)?, pool.meta.annotation(key)?));
    let (Some(hash), Some(version)) = (both(NODE_POOL_HASH), both(NODE_POOL_HASH_VERSION)) else {
        return false;
    };
    version.0 == version.1 && hash.0 != hash.1
}

/// The claim's labels are what the pool's requirements allow; a key without a label is not.
fn meets_requirements(claim: &LiveClaim, pool: &LivePool) -> bool {
    let Ok(wanted) = requirements::read(&pool.pool.spec.template.spec.requirements) else {
        // That a pool cannot be read is said by its condition; its nodes stay.
        return true;
    };
    let labels = Requirements::from_labels(&current(&claim.meta.labels));
    labels.compatible(&wanted, |_| false, &[]).is_ok()
}

/// Labels with their keys in current spelling.
fn current(labels: &Labels) -> Labels {
    let pairs = labels.iter();
    pairs
        .map(|(key, value)| (Name::from(keys::canonical(key)), value.clone()))
        .collect()
}

/// True when it is time to look whether the claim's type still exists.
fn type_is_due(claim: &LiveClaim, found: Option<Timestamp>, now: Timestamp) -> bool {
    let lately = found.is_some_and(|at| now.duration_since(at) < FOUND_FOR);
    now.duration_since(claim.meta.created) >= YOUNG && !lately
}

/// The claim's type is no longer known, or is no longer sold where and how it was bought.
pub(crate) fn is_type_lost(claim: &LiveClaim, types: &[InstanceType]) -> bool {
    let Some(name) = claim.meta.label(INSTANCE_TYPE) else {
        return true;
    };
    let Some(known) = types.iter().find(|known| &*known.name == name) else {
        return true;
    };
    let labels = current(&claim.meta.labels);
    let mut offerings = known.offerings.iter();
    !offerings.any(|offering| is_sold(offering, &labels))
}

/// The offering, available or not, is what these labels say. What was reserved may be had on
/// demand, too, and its reservation does not count.
fn is_sold(offering: &Offering, labels: &Labels) -> bool {
    let reserved = labels
        .get(CAPACITY_TYPE)
        .is_some_and(|capacity_type| &**capacity_type == RESERVED);
    offering.labels.iter().all(|(key, value)| match &**key {
        CAPACITY_TYPE if reserved => [RESERVED, ON_DEMAND].contains(&&**value),
        key if reserved && is_about_reservation(key) => true,
        _ => labels.get(key).is_none_or(|label| label == value),
    })
}

/// Clouds have labels of their own for which reservation it is, and of what kind.
fn is_about_reservation(key: &str) -> bool {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    name.contains("reservation-")
}
