//! Which overlays of a snapshot are in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use joiner_model::{InstanceType, Name};

use super::LiveOverlay;
use super::snapshot::Snapshot;
use crate::error::ReadError;
use crate::overlay::{fault, judged};
use crate::pools::NodeClassRef;
use crate::problem::Catalog;

/// What becomes of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverlayVerdict {
    /// It is in force.
    Good,
    /// It makes no sense by itself: why.
    Invalid(String),
    /// It contradicts another of the same weight, and is in force nowhere.
    Conflict,
}

impl Snapshot {
    /// What becomes of each overlay, by the rules of [`Snapshot::problem`]. Pools whose class has
    /// no catalog say nothing.
    ///
    /// # Errors
    /// When the cluster cannot be made a problem.
    pub fn overlay_verdicts(
        &self,
        catalogs: &BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>>,
    ) -> Result<BTreeMap<Name, OverlayVerdict>, ReadError> {
        let (objects, overlays) = (*self.ground()).clone().without_overlays();
        let mut catalog = Catalog::default();
        for (class, types) in catalogs {
            catalog = catalog.with_class(class.clone(), Arc::clone(types));
        }
        let problem = objects.problem(catalog)?.problem;
        let judged = judged(overlays, &problem);
        let in_conflict: BTreeSet<&Name> =
            judged.conflicts.iter().map(|own| &own.overlay).collect();
        let verdict = |own: &LiveOverlay| match fault(&own.overlay) {
            Some(why) => OverlayVerdict::Invalid(why),
            None if in_conflict.contains(&own.meta.name) => OverlayVerdict::Conflict,
            None => OverlayVerdict::Good,
        };
        let verdicts = self.overlays();
        let verdicts = verdicts.map(|own| (own.meta.name.clone(), verdict(own)));
        Ok(verdicts.collect())
    }
}
