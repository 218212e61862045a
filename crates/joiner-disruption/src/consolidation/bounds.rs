//! What a node's going can save at most, and who could be emptied by size alone.
//!
//! Everything here looks at sizes and prices only and forgets every other rule. What is forgotten
//! can only make hosting dearer, so a bound on savings stays one; and it is cheap enough to be
//! computed for every node in every pass.

use std::collections::BTreeMap;

use joiner_model::{NanoDollars, NodeIx, PodIx, Problem, ResourceName, Resources};

use crate::candidates::is_no_destination;
use crate::fleet::{Fleet, Member};

/// Free room of nodes, needs of pods, and what room costs when it is bought.
pub(crate) struct Rooms {
    dims: Vec<ResourceName>,
    /// Where in `dims` cores and memory are.
    main: [usize; 2],
    /// For each shape an index into `needs`.
    of_shape: Vec<u32>,
    /// Distinct needs.
    needs: Vec<Need>,
    /// Free room by node.
    free: Vec<Vec<u64>>,
    /// Nodes that could take pods.
    open: Vec<bool>,
    /// For each resource the cheapest way to buy it, as a price for an amount.
    rates: Vec<Option<(u64, u64)>>,
}

/// A distinct need.
struct Need {
    amounts: Vec<u64>,
    /// Two nodes that have the room, as far as there are.
    homes: [Option<u32>; 2],
    /// The cheapest offering that has the room.
    cheapest: Option<u64>,
}

impl Rooms {
    /// Measures the fleet.
    pub(crate) fn new(fleet: &Fleet<'_>) -> Self {
        let problem = fleet.problem;
        let dims = dims(problem);
        let amounts = |resources: &Resources| -> Vec<u64> {
            dims.iter().map(|name| resources.get(name)).collect()
        };
        let mut numbers: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
        let of_shape = (problem.shapes.iter())
            .map(|shape| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(amounts(&shape.requests)).or_insert(next)
            })
            .collect();
        let mut all: Vec<(u32, Vec<u64>)> = numbers.into_iter().map(|(a, n)| (n, a)).collect();
        all.sort();
        let mut rooms = Self {
            of_shape,
            needs: Vec::new(),
            free: (problem.nodes.iter())
                .map(|node| amounts(&node.allocatable))
                .collect(),
            open: problem.nodes.iter().map(|node| !node.closed).collect(),
            rates: vec![None; dims.len()],
            main: [ResourceName::Cpu, ResourceName::Memory]
                .map(|name| dims.iter().position(|own| *own == name).unwrap_or(0)),
            dims,
        };
        let barred = |m: &&Member| m.in_command || m.deleting || is_no_destination(fleet, m);
        for member in fleet.members.iter().filter(barred) {
            rooms.open[member.node.0 as usize] = false;
        }
        for pod in &problem.pods {
            if let Some(node) = pod.node {
                let need = &all[rooms.of_shape[pod.shape.0 as usize] as usize].1;
                subtract(&mut rooms.free[node.0 as usize], need);
            }
        }
        let sold = sold(problem, &rooms.dims);
        for (price, room) in &sold {
            for (rate, amount) in rooms.rates.iter_mut().zip(room) {
                let dearer = |(p, a): &(u64, u64)| {
                    u128::from(*price) * u128::from(*a) < u128::from(*p) * u128::from(*amount)
                };
                if *amount > 0 && rate.as_ref().is_none_or(dearer) {
                    *rate = Some((*price, *amount));
                }
            }
        }
        rooms.needs = (all.into_iter())
            .map(|(_, amounts)| rooms.need(amounts, &sold))
            .collect();
        rooms
    }

    fn need(&self, amounts: Vec<u64>, sold: &[(u64, Vec<u64>)]) -> Need {
        let has_room =
            |(n, free): &(u32, &Vec<u64>)| self.open[*n as usize] && fits(&amounts, free);
        let mut homes = (0u32..).zip(&self.free).filter(has_room).map(|(n, _)| n);
        let homes = [homes.next(), homes.next()];
        let cheapest = sold.iter().filter(|(_, room)| fits(&amounts, room));
        Need {
            homes,
            cheapest: cheapest.map(|(price, _)| *price).min(),
            amounts,
        }
    }

    fn need_of(&self, problem: &Problem, pod: PodIx) -> &Need {
        let shape = problem[pod].shape;
        &self.needs[self.of_shape[shape.0 as usize] as usize]
    }

    /// What a pod needs.
    pub(crate) fn amounts(&self, problem: &Problem, pod: PodIx) -> &[u64] {
        &self.need_of(problem, pod).amounts
    }

    /// Free room of a node.
    pub(crate) fn free(&self, node: NodeIx) -> &[u64] {
        &self.free[node.0 as usize]
    }

    /// Room in these terms.
    pub(crate) fn measured(&self, room: &Resources) -> Vec<u64> {
        self.dims.iter().map(|name| room.get(name)).collect()
    }

    /// Cores and memory of room in these terms.
    pub(crate) fn cores_and_memory(&self, room: &[u64]) -> [u64; 2] {
        self.main.map(|at| room[at])
    }

    /// No command about this member alone can save more an hour: its price, less what room for
    /// those of its pods that fit no hole elsewhere costs at least.
    pub(crate) fn bound(&self, fleet: &Fleet<'_>, member: &Member) -> NanoDollars {
        let Some(price) = member.price else {
            return NanoDollars::ZERO;
        };
        let own = member.node.0;
        let stuck = member.pods.iter().filter_map(|moved| {
            let need = self.need_of(fleet.problem, moved.pod);
            let elsewhere = need.homes.iter().flatten().any(|n| *n != own);
            (!elsewhere).then_some(need)
        });
        let least = self.price_of(stuck);
        NanoDollars::new(price.get().saturating_sub(least))
    }

    /// What the pods of a member are worth: new room for them costs no less.
    fn value(&self, fleet: &Fleet<'_>, member: &Member) -> u64 {
        let needs = member.pods.iter();
        self.price_of(needs.map(|moved| self.need_of(fleet.problem, moved.pod)))
    }

    /// New room for these needs costs no less; the maximum when none is on sale.
    fn price_of<'n>(&self, needs: impl Iterator<Item = &'n Need>) -> u64 {
        let mut total = vec![0u64; self.dims.len()];
        let mut least = 0;
        for need in needs {
            least = least.max(need.cheapest.unwrap_or(u64::MAX));
            for (sum, amount) in total.iter_mut().zip(&need.amounts) {
                *sum = sum.saturating_add(*amount);
            }
        }
        for (sum, rate) in total.into_iter().zip(&self.rates) {
            let price = match rate {
                _ if sum == 0 => 0,
                None => u64::MAX,
                Some((price, amount)) => {
                    let price = u128::from(sum) * u128::from(*price) / u128::from(*amount);
                    u64::try_from(price).unwrap_or(u64::MAX)
                }
            };
            least = least.max(price);
        }
        least
    }

    /// The hole elsewhere that comes closest to what a pod needs, if it fits none.
    pub(crate) fn largest_hole(&self, fleet: &Fleet<'_>, pod: PodIx) -> Option<Resources> {
        let own = fleet.problem[pod].node;
        let need = self.need_of(fleet.problem, pod);
        if need.homes.iter().flatten().any(|n| own != Some(NodeIx(*n))) {
            return None;
        }
        let share = |free: &Vec<u64>| {
            let wanted = free
                .iter()
                .zip(&need.amounts)
                .filter(|(_, need)| **need > 0);
            let shares = wanted.map(|(f, need)| u128::from(*f) * 1000 / u128::from(*need));
            shares.min().unwrap_or(0)
        };
        let others = (0u32..).zip(&self.free);
        let others = others.filter(|(n, _)| self.open[*n as usize] && own != Some(NodeIx(*n)));
        let (_, free) = others.max_by_key(|(n, free)| (share(free), std::cmp::Reverse(*n)))?;
        let named = self.dims.iter().cloned().zip(free.iter().copied());
        Some(
            named
                .filter(|(name, _)| *name != ResourceName::Pods)
                .collect(),
        )
    }

    /// Candidates whose pods would all fit the holes of nodes that stay, going by size alone: most
    /// wasteful first, each into the fullest nodes that have room.
    pub(crate) fn emptied(
        &self,
        fleet: &Fleet<'_>,
        candidates: &[usize],
        most: usize,
    ) -> Vec<usize> {
        let mut order: Vec<(u64, usize)> = (candidates.iter())
            .map(|m| {
                let member = &fleet.members[*m];
                let price = member.price.unwrap_or_default().get().max(1);
                let value = u128::from(self.value(fleet, member)) * 1_000_000;
                (
                    u64::try_from(value / u128::from(price)).unwrap_or(u64::MAX),
                    *m,
                )
            })
            .collect();
        order.sort_by(|a, b| {
            let name = |m: usize| &fleet.members[m].name;
            a.0.cmp(&b.0).then_with(|| name(a.1).cmp(name(b.1)))
        });
        let mut rank = vec![0usize; self.free.len()];
        for (at, (_, m)) in order.iter().enumerate() {
            rank[fleet.members[*m].node.0 as usize] = order.len() - at;
        }
        let mut homes: Vec<u32> = (0u32..).take(self.free.len()).collect();
        homes.retain(|n| self.open[*n as usize]);
        homes.sort_by_key(|n| (rank[*n as usize], *n));
        let mut trial = Trial {
            free: self.free.clone(),
            gone: vec![false; self.free.len()],
            used: vec![false; self.free.len()],
            homes,
        };
        let mut emptied = Vec::new();
        for (_, m) in order {
            if emptied.len() >= most {
                break;
            }
            let member = &fleet.members[m];
            let pods = member.pods.iter();
            let needs = pods.map(|moved| &self.need_of(fleet.problem, moved.pod).amounts);
            if trial.empty(member.node.0 as usize, needs.collect()) {
                emptied.push(m);
            }
        }
        emptied
    }
}

/// Nodes being emptied into each other, on paper.
struct Trial {
    free: Vec<Vec<u64>>,
    gone: Vec<bool>,
    /// Something was moved there: it stays.
    used: Vec<bool>,
    /// Nodes in the order in which they are filled.
    homes: Vec<u32>,
}

impl Trial {
    /// Moves everything off a node, or nothing.
    fn empty(&mut self, node: usize, mut needs: Vec<&Vec<u64>>) -> bool {
        if self.used[node] {
            return false;
        }
        needs.sort_by(|a, b| b.cmp(a));
        self.gone[node] = true;
        let mut moved: Vec<(usize, &Vec<u64>)> = Vec::new();
        for need in needs {
            let mut homes = self.homes.iter().map(|n| *n as usize);
            let Some(home) = homes.find(|n| !self.gone[*n] && fits(need, &self.free[*n])) else {
                for (home, need) in moved {
                    for (free, amount) in self.free[home].iter_mut().zip(need) {
                        *free += amount;
                    }
                }
                self.gone[node] = false;
                return false;
            };
            subtract(&mut self.free[home], need);
            moved.push((home, need));
        }
        for (home, _) in moved {
            self.used[home] = true;
        }
        true
    }
}

pub(super) fn fits(need: &[u64], room: &[u64]) -> bool {
    need.iter().zip(room).all(|(need, room)| need <= room)
}

pub(super) fn subtract(room: &mut [u64], need: &[u64]) {
    for (room, need) in room.iter_mut().zip(need) {
        *room = room.saturating_sub(*need);
    }
}

/// Every resource that pods ask for.
fn dims(problem: &Problem) -> Vec<ResourceName> {
    let mut all = std::collections::BTreeSet::from([ResourceName::Cpu, ResourceName::Memory]);
    for shape in &problem.shapes {
        let asked = shape.requests.iter().filter(|(_, amount)| *amount > 0);
        for (name, _) in asked {
            if !all.contains(name) {
                all.insert(name.clone());
            }
        }
    }
    all.into_iter().collect()
}

/// Price and room of everything that some pool could buy.
fn sold(problem: &Problem, dims: &[ResourceName]) -> Vec<(u64, Vec<u64>)> {
    let mut all = Vec::new();
    for pool in problem.pools.iter().filter(|pool| pool.closed.is_none()) {
        for ty in &pool.types {
            let ty = &problem[*ty];
            let Ok(room) = ty.allocatable() else { continue };
            for offering in ty.offerings.iter().filter(|offering| offering.available) {
                let bought = pool.requirements.iter().all(|r| {
                    let value = offering.labels.get(r.key());
                    value.is_none_or(|value| r.has(value))
                });
                if !bought {
                    continue;
                }
                let mut room = room.clone();
                room.add(&offering.extra_capacity);
                let amounts = dims.iter().map(|name| room.get(name)).collect();
                all.push((offering.price.get(), amounts));
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
