//! Overlays: corrections of what instance types cost or have, pool by pool.
//!
//! The heaviest overlay wins each offering's price and each resource. Two overlays of equal weight
//! that meet on either contradict each other: the second is left out everywhere.

use std::collections::BTreeMap;

use joiner_api::types;
use joiner_model::{
    InstanceType, Name, NanoDollars, Pool, Problem, Requirement, Requirements, ResourceName,
    Resources, TypeIx, keys,
};

use crate::documents::{Document, Header};
use crate::error::{Place, ReadError};
use crate::names::Names;
use crate::objects::Objects;
use crate::quantity::Quantity;
use crate::wire::pool::{NodeOverlay, NodeOverlaySpec};
use crate::wire::text;
use crate::{requests, selection};

const HUNDRED_PERCENT: i128 = 100 * 1_000_000_000;

/// What happens to a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriceChange {
    /// It becomes this many nano-dollars.
    Replace(i128),
    /// This many nano-dollars more, or less.
    Add(i128),
    /// This many thousand-millionths of a percent more, or less.
    Percent(i128),
}

/// An overlay of the input.
#[derive(Clone, Debug)]
pub(crate) struct OverlayRecord {
    name: Name,
    weight: i32,
    requirements: Requirements,
    price: Option<PriceChange>,
    capacity: Resources,
}

/// What overlays do to one instance type in one pool.
#[derive(Default)]
struct Changes {
    /// By offering: weight of the last overlay, and the change that counts.
    prices: BTreeMap<usize, (i32, PriceChange)>,
    /// Weight and resources of the last overlay.
    last_capacity: Option<(i32, Resources)>,
    capacity: Resources,
}

/// One instance type of one pool, and the offerings an overlay is about.
struct Hit {
    pool_ix: usize,
    type_ix: TypeIx,
    offerings: Vec<usize>,
}

impl Objects {
    pub(crate) fn take_overlay(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let value = self.admitted(header, document, place)?;
        let object: NodeOverlay<'_> = Document::Value(&value).parse(place)?;
        let meta = object.metadata.unwrap_or_default();
        let name = self.register("NodeOverlay", None, meta.name(), place)?;
        if meta.deleting() {
            return Ok(());
        }
        self.add_overlay(&name, &object.spec.unwrap_or_default());
        Ok(())
    }

    /// Adds an overlay that a server has admitted.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub(crate) fn add_admitted_overlay(
        &mut self,
        overlay: &types::NodeOverlay,
    ) -> Result<(), ReadError> {
        if !overlay.is_deleting() {
            let name = self.names.get(overlay.name());
            let object = NodeOverlay::of(overlay)?;
            self.add_overlay(&name, &object.spec.unwrap_or_default());
        }
        Ok(())
    }

    fn add_overlay(&mut self, name: &Name, spec: &NodeOverlaySpec<'_>) {
        match overlay(name, spec, &mut self.names) {
            Ok(overlay) => self.overlays.push(overlay),
            Err(why) => self.warnings.push(format!(
                "NodeOverlay {name} is not valid and is not applied: {why}"
            )),
        }
    }

    /// Gives each pool its own copies of the instance types that overlays change.
    pub(crate) fn apply_overlays(&mut self, problem: &mut Problem) {
        let judged = judged(std::mem::take(&mut self.overlays), problem);
        for conflict in &judged.conflicts {
            self.warnings.push(format!(
                "NodeOverlay {} is not applied: another overlay of weight {} already changes \
                 {} in pool {}",
                conflict.overlay, conflict.weight, conflict.instance_type, conflict.pool
            ));
        }
        for ((pool_ix, type_ix), changes) in judged.changes {
            let copy = changes.applied_to(&problem[type_ix]);
            let copy_ix = TypeIx(u32::try_from(problem.types.len()).unwrap_or(u32::MAX));
            problem.types.push(copy);
            let types = &mut problem.pools[pool_ix].types;
            types.retain(|ix| *ix != type_ix);
            types.push(copy_ix);
        }
    }

    /// Takes the overlays out: what is built from the rest is what they would change.
    pub(crate) fn without_overlays(mut self) -> (Self, Vec<OverlayRecord>) {
        let overlays = std::mem::take(&mut self.overlays);
        (self, overlays)
    }
}

/// What overlays come to, all together.
pub(crate) struct Judged {
    changes: BTreeMap<(usize, TypeIx), Changes>,
    pub(crate) conflicts: Vec<Conflict>,
}

/// An overlay that contradicts a heavier or equal one, and where it does first.
pub(crate) struct Conflict {
    pub(crate) overlay: Name,
    weight: i32,
    instance_type: Name,
    pool: Name,
}

/// Goes through overlays by weight; one that conflicts anywhere changes nothing.
pub(crate) fn judged(mut overlays: Vec<OverlayRecord>, problem: &Problem) -> Judged {
    overlays.sort_by(|a, b| (b.weight, &b.name).cmp(&(a.weight, &a.name)));
    let mut changes: BTreeMap<(usize, TypeIx), Changes> = BTreeMap::new();
    let mut conflicts = Vec::new();
    for overlay in &overlays {
        let hits = hits(overlay, problem);
        if let Some(hit) = hits.iter().find(|hit| conflicts_at(overlay, hit, &changes)) {
            conflicts.push(Conflict {
                overlay: overlay.name.clone(),
                weight: overlay.weight,
                instance_type: problem[hit.type_ix].name.clone(),
                pool: problem.pools[hit.pool_ix].name.clone(),
            });
            continue;
        }
        for hit in hits {
            changes
                .entry((hit.pool_ix, hit.type_ix))
                .or_default()
                .record(overlay, &hit);
        }
    }
    Judged { changes, conflicts }
}

/// Why an overlay makes no sense by itself, if so.
pub(crate) fn fault(object: &types::NodeOverlay) -> Option<String> {
    match NodeOverlay::of(object) {
        Ok(object) => {
            let spec = object.spec.unwrap_or_default();
            overlay(&"".into(), &spec, &mut Names::default()).err()
        }
        Err(why) => Some(why.to_string()),
    }
}

impl Changes {
    fn record(&mut self, overlay: &OverlayRecord, hit: &Hit) {
        if let Some(change) = overlay.price {
            for offering in &hit.offerings {
                let (last, _) = self
                    .prices
                    .entry(*offering)
                    .or_insert((overlay.weight, change));
                *last = overlay.weight;
            }
        }
        if !overlay.capacity.is_empty() {
            for (name, amount) in overlay.capacity.iter() {
                if self.capacity.named(name).is_none() {
                    self.capacity.set(name.clone(), amount);
                }
            }
            self.last_capacity = Some((overlay.weight, overlay.capacity.clone()));
        }
    }

    fn applied_to(&self, original: &InstanceType) -> InstanceType {
        let mut changed = original.clone();
        for (name, amount) in self.capacity.iter() {
            changed.capacity.set(name.clone(), amount);
        }
        for (offering_ix, (_, change)) in &self.prices {
            if let Some(offering) = changed.offerings.get_mut(*offering_ix) {
                offering.price = change.applied_to(offering.price);
            }
        }
        changed
    }
}

impl PriceChange {
    fn applied_to(self, price: NanoDollars) -> NanoDollars {
        let price = i128::from(price.get());
        let changed = match self {
            Self::Replace(nanos) => nanos,
            Self::Add(nanos) => price.saturating_add(nanos),
            Self::Percent(percent) => {
                let factor = HUNDRED_PERCENT.saturating_add(percent).max(0);
                let product = price.saturating_mul(factor);
                product.saturating_add(HUNDRED_PERCENT / 2) / HUNDRED_PERCENT
            }
        };
        NanoDollars::new(u64::try_from(changed.max(0)).unwrap_or(u64::MAX))
    }
}

fn overlay(
    name: &Name,
    spec: &NodeOverlaySpec<'_>,
    names: &mut Names,
) -> Result<OverlayRecord, String> {
    let mut requirements = Requirements::new();
    for expression in spec.requirements.iter().flatten() {
        let needs_values = matches!(text(&expression.operator), "In" | "NotIn");
        if needs_values && expression.values.as_ref().is_none_or(Vec::is_empty) {
            return Err(format!("{:?} needs a value", text(&expression.key)));
        }
        requirements.add(selection::requirement(expression, names)?);
    }
    let capacity = requests::available(spec.capacity.as_ref());
    for (resource, _) in capacity.iter() {
        if !matches!(resource, ResourceName::Other(_)) {
            return Err(format!("capacity may not name {resource}"));
        }
    }
    let price = match (spec.price.as_deref(), spec.price_adjustment.as_deref()) {
        (Some(_), Some(_)) => return Err("it sets both price and priceAdjustment".to_owned()),
        (Some(price), None) => Some(PriceChange::Replace(decimal(price)?)),
        (None, Some(adjustment)) => Some(adjusted(adjustment)?),
        (None, None) => None,
    };
    Ok(OverlayRecord {
        name: name.clone(),
        weight: spec.weight.unwrap_or(0),
        requirements,
        price,
        capacity,
    })
}

/// `+0.5`, `-0.5`, `+10%`, `-10%`.
fn adjusted(text: &str) -> Result<PriceChange, String> {
    let wrong = || format!("priceAdjustment {text:?} must look like +0.5, -0.5, +10% or -10%");
    let (sign, rest) = match text.as_bytes().first() {
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return Err(wrong()),
    };
    match rest.strip_suffix('%') {
        Some(percent) => {
            let percent = sign * decimal(percent).map_err(|_| wrong())?;
            if percent < -HUNDRED_PERCENT {
                return Err(wrong());
            }
            Ok(PriceChange::Percent(percent))
        }
        None => Ok(PriceChange::Add(sign * decimal(rest).map_err(|_| wrong())?)),
    }
}

/// A plain decimal number in thousand-millionths.
fn decimal(text: &str) -> Result<i128, String> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match Quantity::parse(text) {
        Ok(quantity) if plain => Ok(quantity.nanos()),
        _ => Err(format!("{text:?} is not a price")),
    }
}

/// Everything that an overlay is about.
fn hits(overlay: &OverlayRecord, problem: &Problem) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (pool_ix, pool) in problem.pools.iter().enumerate() {
        for type_ix in &pool.types {
            let instance_type = &problem[*type_ix];
            let offerings = matching(overlay, pool, instance_type);
            if !offerings.is_empty() {
                hits.push(Hit {
                    pool_ix,
                    type_ix: *type_ix,
                    offerings,
                });
            }
        }
    }
    hits
}

/// The offerings of a type in a pool that an overlay is about.
fn matching(overlay: &OverlayRecord, pool: &Pool, instance_type: &InstanceType) -> Vec<usize> {
    let mut known: Requirements = instance_type
        .labels
        .iter()
        .map(|(key, values)| Requirement::one_of(key, values.iter().cloned()))
        .collect();
    let mut offered: BTreeMap<&Name, Vec<Name>> = BTreeMap::new();
    for (key, value) in instance_type.offerings.iter().flat_map(|o| &o.labels) {
        offered.entry(key).or_default().push(value.clone());
    }
    for (key, values) in offered {
        known.add(Requirement::one_of(key, values));
    }
    for (key, value) in &pool.labels {
        if !matches!(&**key, keys::REGISTERED | keys::INITIALIZED) {
            known.add(Requirement::is(key, value.clone()));
        }
    }
    if known
        .compatible(&overlay.requirements, |_| false, &[])
        .is_err()
    {
        return Vec::new();
    }
    let fits = |requirement: &Requirement, labels: &joiner_model::Labels| {
        let value = labels.get(requirement.key());
        value.is_none_or(|value| requirement.has(value))
    };
    let offerings = instance_type.offerings.iter().enumerate();
    offerings
        .filter(|(_, offering)| {
            overlay
                .requirements
                .iter()
                .all(|r| fits(r, &offering.labels))
        })
        .map(|(ix, _)| ix)
        .collect()
}

fn conflicts_at(
    overlay: &OverlayRecord,
    hit: &Hit,
    changes: &BTreeMap<(usize, TypeIx), Changes>,
) -> bool {
    let Some(changes) = changes.get(&(hit.pool_ix, hit.type_ix)) else {
        return false;
    };
    let price = overlay.price.is_some()
        && hit.offerings.iter().any(|offering| {
            let last = changes.prices.get(offering);
            last.is_some_and(|(weight, _)| *weight == overlay.weight)
        });
    let capacity = changes
        .last_capacity
        .as_ref()
        .is_some_and(|(weight, last)| {
            let shared = |(name, _): (&ResourceName, u64)| last.named(name).is_some();
            *weight == overlay.weight && overlay.capacity.iter().any(shared)
        });
    price || capacity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_351_adjusted_prices() {
        let price = NanoDollars::new(100_000_000_000);
        for (text, expected) in [
            ("-10%", 90_000_000_000),
            ("+100%", 200_000_000_000),
            ("-2.5", 97_500_000_000),
            ("-200", 0),
            ("-100%", 0),
            ("+0.000000001", 100_000_000_001),
        ] {
            let change = adjusted(text).unwrap();
            assert_eq!(change.applied_to(price).get(), expected, "{text}");
        }
        for bad in ["", "10%", "+", "-101%", "+1k", "--1", "+1%%"] {
            assert!(adjusted(bad).is_err(), "{bad}");
        }
        assert_eq!(PriceChange::Replace(5).applied_to(price).get(), 5);
    }
}
