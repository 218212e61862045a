//! Nodes that are up come before nodes that are coming: a pod starts sooner there.
//!
//! The packer knows no order among nodes there are. So what it put on nodes that are still coming
//! moves to nodes that are up, as far as they have room; nothing else changes.

use std::collections::BTreeMap;

use joiner_pack as pack;

use crate::ledger::Ledger;
use crate::rows::RowMaker;

impl Ledger {
    /// Moves items from nodes that are coming to nodes that are up.
    pub(crate) fn prefer_finished(&mut self, maker: &mut RowMaker<'_, '_>) {
        let nodes = &maker.ground.problem.nodes;
        let is_up = |host: u32| nodes[host as usize].initialized;
        if self.on_hosts.iter().all(|(host, _, _)| is_up(*host)) {
            return;
        }
        maker.set_on_hosts(&self.on_hosts);
        let mut bins: BTreeMap<u32, pack::Bin> = BTreeMap::new();
        let mut settled = Vec::new();
        for (host, p, n) in std::mem::take(&mut self.on_hosts) {
            let mut left = n;
            let mut targets: Vec<u32> = Vec::new();
            if !is_up(host) {
                targets = maker.hosts_of(&maker.parts[p as usize]);
                targets.retain(|target| is_up(*target));
                targets.sort_by_key(|target| maker.ground.host_place[*target as usize]);
            }
            for target in targets {
                let place = maker.ground.host_place[target as usize] as usize;
                let bin = bins
                    .entry(target)
                    .or_insert_with(|| maker.pack_bin(place, &[]));
                let before = left;
                while left > 0 && maker.admits(bin, p) {
                    maker.load(bin, p, 1);
                    left -= 1;
                }
                settled.push((target, p, before - left));
            }
            settled.push((host, p, left));
        }
        settled.retain(|(_, _, n)| *n > 0);
        self.on_hosts = settled;
    }
}
