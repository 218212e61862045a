//! What is for sale, as the packer sees it: the same for all attempts at a problem.

use std::collections::BTreeMap;
use std::sync::Arc;

use joiner_model::Name;
use joiner_pack as pack;

use crate::budgets::{Budget, budgets, spends};
use crate::ground::Ground;
use crate::groups::KindSets;
use crate::volumes::{VOLUMES_UNLIMITED, Volumes};

/// Kinds, budgets, and the sets of kinds that items may use.
pub(crate) struct Stock {
    /// Only what no legal placement can escape counts: for the bound.
    pub(crate) relaxed: bool,
    /// Volume drivers with a limit on some node.
    pub(crate) drivers: Vec<Name>,
    /// Volumes of pods and nodes.
    pub(crate) volumes: Volumes,
    /// Sets of kinds by what decides them; they are added as attempts ask for them.
    pub(crate) sets: KindSets,
    /// Pool limits and reservations.
    pub(crate) budgets: Vec<Budget>,
    /// What one node of a kind takes of which budget.
    pub(crate) spends: Vec<Vec<(u32, u64)>>,
    /// The packer's kinds.
    pub(crate) kinds: Arc<[pack::Kind]>,
}

impl Stock {
    /// What a problem can buy; `relaxed` for the bound.
    pub(crate) fn new(ground: &Ground<'_>, relaxed: bool) -> Self {
        let volumes = Volumes::new(ground);
        let drivers = volumes.drivers();
        let budgets = budgets(ground);
        let spends = spends(ground, &budgets);
        // How many kinds are sold by variant and domain: what could be launched there instead.
        let mut options: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for kind in &ground.kinds {
            *options.entry((kind.variant, kind.domain)).or_default() += 1;
        }
        let kinds = ground.kinds.iter().zip(&spends).map(|(kind, spend)| {
            let usable = match relaxed {
                true => ground.room_of(kind),
                false => ground.usable_of(kind),
            };
            let mut room = usable.to_vec();
            room.extend(drivers.iter().map(|_| VOLUMES_UNLIMITED));
            pack::Kind {
                room: room.into(),
                price: kind.price,
                spend: spend.clone(),
                options: options[&(kind.variant, kind.domain)],
            }
        });
        Self {
            relaxed,
            kinds: kinds.collect(),
            drivers,
            volumes,
            sets: KindSets::default(),
            budgets,
            spends,
        }
    }
}
