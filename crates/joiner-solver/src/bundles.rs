//! What must share a node: pods under host affinity become one item.
//!
//! A group that is drawn to itself opens one node and no second one, so all of it is one item, cut
//! down to what the largest node can hold. Followers of other pods are bundled with one of those
//! pods, and with another one when the node is full.

use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;

use crate::cells::{Hints, Item, need_of};
use crate::classes::{Classes, Demand};
use crate::ground::Ground;
use crate::select::Choices;

/// Items with their counts, and pods that no node can hold together.
pub(crate) struct Bundles {
    /// Items to admit.
    pub(crate) items: Vec<(Item, u32)>,
    /// Class and count of pods left over.
    pub(crate) refused: Vec<(u32, u32)>,
    /// Classes that join pods that run already.
    pub(crate) confined: BTreeSet<u32>,
}

/// Turns classes into items.
pub(crate) fn bundle(
    ground: &Ground<'_>,
    choices: &Choices,
    classes: &Classes,
    hints: &Hints,
) -> Bundles {
    let mut left: Vec<u32> = classes
        .all
        .iter()
        .map(super::classes::Class::count)
        .collect();
    let mut out = Bundles {
        items: Vec::new(),
        refused: Vec::new(),
        confined: BTreeSet::new(),
    };
    let mut groups = groups(classes);
    for (c, class) in (0u32..).zip(&classes.all) {
        if hints.without.contains(&(class.shape, class.level)) {
            groups.values_mut().for_each(|m| m.retain(|k| *k != c));
            out.refused.push((c, std::mem::take(&mut left[c as usize])));
        }
    }
    for (class, only_hosts) in bound_to_hosts(ground, classes) {
        let k = &classes.all[class as usize];
        out.confined.insert(class);
        let afresh = hints.afresh.get(&(k.shape, k.level)).copied();
        let afresh = afresh.unwrap_or(0).min(left[class as usize]);
        if afresh == 0 {
            for members in groups.values_mut() {
                members.retain(|c| *c != class);
            }
        }
        let count = left[class as usize] - afresh;
        left[class as usize] = afresh;
        let item = Item {
            members: vec![(class, 1)],
            only_hosts: Some(only_hosts),
        };
        if count > 0 {
            out.items.push((item, count));
        }
    }
    let maker = Maker {
        ground,
        choices,
        classes,
    };
    for members in groups.values() {
        maker.make(members, &mut left, &mut out);
    }
    for (c, count) in (0u32..).zip(left) {
        if count > 0 {
            out.items.push((
                Item {
                    members: vec![(c, 1)],
                    only_hosts: None,
                },
                count,
            ));
        }
    }
    out
}

/// Rules of host affinity that a class owns.
fn host_affinity(classes: &Classes, c: u32) -> impl Iterator<Item = u32> {
    classes.all[c as usize].owned.iter().copied().filter(|r| {
        let rule = &classes.book.rules[*r as usize];
        rule.is_host() && rule.demand == Demand::Affinity
    })
}

/// Classes whose host affinity is about pods that are bound already, with the nodes of those.
fn bound_to_hosts(ground: &Ground<'_>, classes: &Classes) -> Vec<(u32, FixedBitSet)> {
    let mut all = Vec::new();
    for c in (0u32..).take(classes.all.len()) {
        let mut hosts = FixedBitSet::with_capacity(ground.hosts.len());
        hosts.insert_range(..);
        let mut bound = false;
        for r in host_affinity(classes, c) {
            let on_host = &classes.book.bound[r as usize].on_host;
            if !on_host.is_empty() {
                bound = true;
                crate::ground::keep(&mut hosts, |n| {
                    u32::try_from(n).is_ok_and(|n| on_host.contains_key(&n))
                });
            }
        }
        if bound {
            all.push((c, hosts));
        }
    }
    all
}

/// Classes under host affinity that hang together, by the smallest class of each group.
fn groups(classes: &Classes) -> BTreeMap<u32, Vec<u32>> {
    let n = classes.all.len();
    let mut root: Vec<u32> = (0u32..).take(n).collect();
    fn find(root: &mut [u32], mut c: u32) -> u32 {
        while root[c as usize] != c {
            root[c as usize] = root[root[c as usize] as usize];
            c = root[c as usize];
        }
        c
    }
    let mut first_owner: BTreeMap<u32, u32> = BTreeMap::new();
    let owners: Vec<u32> = (0u32..)
        .take(n)
        .filter(|c| host_affinity(classes, *c).next().is_some())
        .collect();
    for c in &owners {
        for r in host_affinity(classes, *c) {
            let with = *first_owner.entry(r).or_insert(*c);
            let (a, b) = (find(&mut root, *c), find(&mut root, with));
            root[a.max(b) as usize] = a.min(b);
        }
    }
    // A follower of a class that has host affinity itself belongs to that group.
    for c in &owners {
        for r in host_affinity(classes, *c) {
            for target in owners
                .iter()
                .filter(|t| classes.all[**t as usize].is_counted(r))
            {
                let (a, b) = (find(&mut root, *c), find(&mut root, *target));
                root[a.max(b) as usize] = a.min(b);
            }
        }
    }
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for c in owners {
        groups.entry(find(&mut root, c)).or_default().push(c);
    }
    groups
}

struct Maker<'a, 'p> {
    ground: &'a Ground<'p>,
    choices: &'a Choices,
    classes: &'a Classes,
}

impl Maker<'_, '_> {
    /// Bundles one group of classes.
    fn make(&self, members: &[u32], left: &mut [u32], out: &mut Bundles) {
        let mut may_open = true;
        loop {
            let anchors = self.anchors(members, left, may_open);
            let Some(anchors) = anchors else { break };
            let mut item = Item {
                members: Vec::new(),
                only_hosts: None,
            };
            for a in &anchors {
                add(&mut item, *a, 1);
            }
            if !self.fits(&item) {
                break;
            }
            let taken = self.fill(&mut item, members, left);
            if taken == 0 {
                break;
            }
            for a in anchors {
                left[a as usize] -= 1;
            }
            out.items.push((item, 1));
            may_open = false;
        }
        for c in members {
            let count = std::mem::take(&mut left[*c as usize]);
            if count > 0 {
                out.refused.push((*c, count));
            }
        }
    }

    /// One pod for each rule that the group cannot satisfy by itself; `None` when there is none.
    /// A group that is drawn to itself may open one node, unless pods it is drawn to run already.
    fn anchors(&self, members: &[u32], left: &[u32], may_open: bool) -> Option<Vec<u32>> {
        let mut anchors: Vec<u32> = Vec::new();
        for c in members.iter().filter(|c| left[**c as usize] > 0) {
            for r in host_affinity(self.classes, *c) {
                let counted = |k: &u32| self.classes.all[*k as usize].is_counted(r);
                let owns = |k: &u32| self.classes.all[*k as usize].owned.contains(&r);
                let opens = may_open && self.classes.book.bound[r as usize].on_host.is_empty();
                let served =
                    |k: &u32| counted(k) && (opens || !owns(k)) && (opens || left[*k as usize] > 0);
                if members.iter().any(served) || anchors.iter().any(counted) {
                    continue;
                }
                let target = (0u32..)
                    .take(self.classes.all.len())
                    .filter(|k| counted(k) && !owns(k) && left[*k as usize] > 0)
                    .min_by_key(|k| self.wants(*k))?;
                anchors.push(target);
            }
        }
        Some(anchors)
    }

    /// How hard it is to please a pod that others are to join: whom it has to join itself, and how
    /// many rules it is under.
    fn wants(&self, c: u32) -> (usize, usize) {
        let class = &self.classes.all[c as usize];
        let follows = class.owned.iter().filter(|r| {
            let demand = &self.classes.book.rules[**r as usize].demand;
            *demand == Demand::Affinity && !class.is_counted(**r)
        });
        (follows.count(), class.owned.len())
    }

    /// Adds as many pods of the group as one node can hold, small ones first when not all fit.
    fn fill(&self, item: &mut Item, members: &[u32], left: &mut [u32]) -> u32 {
        // Whom others want to be near comes first, or the others would be near nobody.
        let followed = |c: u32| {
            let wanted = members.iter().flat_map(|m| host_affinity(self.classes, *m));
            wanted
                .into_iter()
                .any(|r| self.classes.all[c as usize].is_counted(r))
        };
        let mut order: Vec<u32> = members.to_vec();
        order.sort_by_key(|c| (!followed(*c), &self.classes.all[*c as usize].need));
        let mut taken = 0;
        for c in order {
            // The largest number that still fits, by bisection: room only shrinks.
            let (mut fits, mut too_many) = (0u32, left[c as usize].saturating_add(1));
            while too_many - fits > 1 {
                let middle = fits + (too_many - fits) / 2;
                let mut bigger = item.clone();
                add(&mut bigger, c, middle);
                if self.fits(&bigger) {
                    fits = middle
                } else {
                    too_many = middle
                }
            }
            if fits > 0 {
                add(item, c, fits);
                left[c as usize] -= fits;
                taken += fits;
            }
        }
        taken
    }

    /// True when some node, new or existing, can hold the item.
    fn fits(&self, item: &Item) -> bool {
        let need = need_of(self.classes, item);
        let fits = |room: &[u64]| need.iter().zip(room).all(|(q, r)| q <= r);
        let choices: Vec<_> = item
            .members
            .iter()
            .map(|(c, _)| &self.choices.all[self.classes.all[*c as usize].choice as usize])
            .collect();
        if !self.gets_along(item) {
            return false;
        }
        self.ground.kinds.iter().any(|k| {
            fits(self.ground.room_of(k))
                && choices
                    .iter()
                    .all(|c| c.alternatives.iter().any(|sel| sel.has(k)))
        }) || self
            .ground
            .hosts
            .iter()
            .enumerate()
            .any(|(n, host)| fits(&host.room) && choices.iter().all(|c| c.hosts.contains(n)))
    }

    /// True when no rule and no port keeps members apart: whoever shares a node shares its domains.
    fn gets_along(&self, item: &Item) -> bool {
        let class = |c: u32| &self.classes.all[c as usize];
        let in_item = |r: u32| -> u32 {
            let counted = item.members.iter().filter(|(k, _)| class(*k).is_counted(r));
            counted.map(|(_, n)| *n).sum()
        };
        let before = |r: u32| n_before(self.classes, item, r);
        let rules_fine = item.members.iter().all(|(c, _)| {
            class(*c).owned.iter().all(|r| {
                let own = u32::from(class(*c).is_counted(*r));
                match self.classes.book.rules[*r as usize].demand {
                    Demand::Anti { .. } => in_item(*r) <= own,
                    Demand::Spread { max_skew, .. } => {
                        let one_domain = self.classes.book.domains[*r as usize].len() == 1;
                        own == 0 || one_domain || before(*r) <= max_skew
                    }
                    Demand::Affinity => true,
                }
            })
        });
        rules_fine && self.ports_apart(item)
    }

    /// True when no two members want the same port.
    fn ports_apart(&self, item: &Item) -> bool {
        let ports = |c: u32| {
            let shape = self.classes.all[c as usize].shape as usize;
            &self.ground.problem.shapes[shape].ports
        };
        item.members.iter().enumerate().all(|(i, (c, n))| {
            (*n == 1 || ports(*c).is_empty())
                && item.members[..i].iter().all(|(other, _)| {
                    ports(*c)
                        .iter()
                        .all(|p| ports(*other).iter().all(|q| !p.conflicts(q)))
                })
        })
    }
}

fn add(item: &mut Item, class: u32, count: u32) {
    match item.members.iter_mut().find(|(c, _)| *c == class) {
        Some((_, n)) => *n += count,
        None => item.members.push((class, count)),
    }
}

/// How many pods of an item a spread counts by the time the last of those under it is placed: who
/// follows others onto the node and is not under the spread comes after.
pub(crate) fn n_before(classes: &Classes, item: &Item, r: u32) -> u32 {
    let members = item.members.iter().filter(|(c, _)| {
        let class = &classes.all[*c as usize];
        let comes_after = !class.owned.contains(&r) && host_affinity(classes, *c).next().is_some();
        class.is_counted(r) && !comes_after
    });
    members.map(|(_, n)| *n).sum()
}
