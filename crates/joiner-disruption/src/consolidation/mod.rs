//! Nodes whose pods are cheaper elsewhere: any number of them for any number of new ones.
//!
//! The objective is money: what is saved within the horizon, less what moving costs. A set of nodes
//! is judged by asking where its pods would go ([`propose`]); [`search`] says which sets to ask
//! about, [`bounds`] which nodes are worth a question, [`price`] which replacements are sure to be
//! cheaper, [`balanced`] what a cautious pool thinks of it.

pub(crate) mod balanced;
pub(crate) mod bounds;
mod forecast;
mod price;
mod search;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use joiner_model::{Launch, NanoDollars, Plan, PodIx, ShapeIx};

use crate::command::{Command, Method, Reason, pods_move};
use crate::cost;
use crate::fleet::Fleet;
use crate::whatif::{Answer, Effort, Purpose, WhatIf};
use crate::why::{Pin, Why};

pub use balanced::Judgement;
pub(crate) use search::{Pass, Report, decide};

/// What the pools that give nodes think of a consolidation; nothing for other commands.
#[must_use]
pub fn judgements(fleet: &Fleet<'_>, command: &Command) -> Vec<Judgement> {
    match command.method {
        Method::Multi | Method::Single => {
            let judged = balanced::judged(fleet, &command.members, command.savings());
            judged.into_iter().map(|(_, judgement)| judgement).collect()
        }
        Method::Empty | Method::StaticDrift | Method::Drift => Vec::new(),
    }
}

/// A set of nodes that could go, with all that follows.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The members that go, sorted.
    pub(crate) members: Vec<usize>,
    /// What takes their place.
    pub(crate) plan: Plan,
    /// What moving costs.
    pub(crate) move_cost: NanoDollars,
    /// Savings within the horizon, less what moving costs.
    pub(crate) net: u64,
    /// Members that only make room for one of their own kind.
    pub(crate) swaps: Vec<usize>,
}

/// Why a set of nodes stays.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The reason.
    pub(crate) why: Why,
    /// Members without whom it might go better.
    pub(crate) because_of: Vec<usize>,
}

/// Asks what would happen if these members went, and judges the answer.
pub(crate) fn propose(
    fleet: &Fleet<'_>,
    what_if: &mut WhatIf<'_>,
    members: &[usize],
    effort: Effort,
) -> Result<Offer, Refused> {
    let Answer { mut plan, stranded } = what_if.ask(members, Purpose::ToSave, effort);
    if let Some(pin) = pin(fleet, &stranded, None) {
        return Err(Refused {
            why: Why::Pinned(pin),
            because_of: owners(fleet, members, &stranded),
        });
    }
    let swaps = swaps(fleet, members, &plan.launches);
    let refused = |why: Why| Refused {
        why,
        because_of: swaps.clone(),
    };
    if plan.launches.len() > fleet.settings.launches_max() {
        return Err(refused(Why::TooManyNew(plan.launches.len())));
    }
    price::settle(fleet, members, &mut plan.launches).map_err(refused)?;
    let (before, after) = (
        fleet.price(members),
        plan.launches.iter().map(|launch| launch.price).sum(),
    );
    plan.cost.price = after;
    plan.cost.bound = plan.cost.bound.min(after);
    let savings = match before.get().checked_sub(after.get()) {
        Some(savings) if savings > 0 => NanoDollars::new(savings),
        _ => return Err(refused(Why::NotCheaper { before, after })),
    };
    let move_cost = cost::of_move(fleet, members, plan.launches.len());
    let net = worth(fleet, members, &plan, savings, move_cost).map_err(refused)?;
    balanced::check(fleet, members, savings).map_err(refused)?;
    Ok(Offer {
        members: members.to_vec(),
        plan,
        move_cost,
        net,
        swaps,
    })
}

/// The same with all effort.
pub(crate) fn propose_well(fleet: &Fleet<'_>, members: &[usize]) -> Result<Offer, Refused> {
    let what_if = &mut WhatIf::new(fleet);
    let full = propose(fleet, what_if, members, Effort::Full);
    better(full, propose(fleet, what_if, members, Effort::Explore))
}

/// The better of two answers: more effort seldom finds less, but it does.
fn better(full: Result<Offer, Refused>, quick: Result<Offer, Refused>) -> Result<Offer, Refused> {
    match (full, quick) {
        (Ok(full), Ok(quick)) if rank(&quick) > rank(&full) => Ok(quick),
        (Err(_), Ok(quick)) => Ok(quick),
        (full, _) => full,
    }
}

/// What makes one offer better than another: more money, then fewer nodes to move.
fn rank(offer: &Offer) -> (u64, Reverse<usize>) {
    (offer.net, Reverse(offer.members.len()))
}

/// What is left of the savings within the horizon after paying for the move, if it is worth it.
fn worth(
    fleet: &Fleet<'_>,
    members: &[usize],
    plan: &Plan,
    savings: NanoDollars,
    move_cost: NanoDollars,
) -> Result<u64, Why> {
    let settings = &fleet.settings;
    let gain = cost::over_horizon(settings, savings).get();
    let share = u128::from(savings.get()) * 1_000_000;
    let n_new = plan.launches.len();
    let is_enough = |ppm: u64| {
        let threshold = u128::from(fleet.price(members).get()) * u128::from(ppm);
        share > threshold
    };
    // What upstream would do, too, is done for any saving, be it one node after the other; several
    // new nodes for pods that are mixed anew have to be well worth it.
    let enough = match n_new {
        0 | 1 => n_new < members.len() || is_enough(settings.threshold_ppm),
        _ if is_one_by_one(fleet, members, &plan.launches) => is_enough(settings.threshold_ppm),
        _ => {
            let moves = move_cost.get().saturating_mul(settings.several_factor);
            gain >= moves && is_enough(settings.threshold_several_ppm)
        }
    };
    match gain.checked_sub(move_cost.get()) {
        Some(net) if net > 0 && enough => Ok(net),
        _ => Err(Why::NotWorthIt { savings, move_cost }),
    }
}

/// Each new node takes just what one of the members holds, or pods alike: the same could be done for
/// one member at a time.
fn is_one_by_one(fleet: &Fleet<'_>, members: &[usize], launches: &[Launch]) -> bool {
    let shapes = |pods: &mut dyn Iterator<Item = PodIx>| -> Vec<ShapeIx> {
        let mut all: Vec<ShapeIx> = pods.map(|pod| fleet.problem[pod].shape).collect();
        all.sort_unstable();
        all
    };
    let held = |m: &usize| shapes(&mut fleet.members[*m].pods.iter().map(|moved| moved.pod));
    let mut holdings: BTreeMap<Vec<ShapeIx>, usize> = BTreeMap::new();
    for held in members.iter().map(held) {
        *holdings.entry(held).or_default() += 1;
    }
    launches.iter().all(|launch| {
        let taken = shapes(&mut launch.pods.iter().copied());
        let left = holdings.get_mut(&taken).filter(|left| **left > 0);
        left.is_some_and(|left| {
            *left -= 1;
            true
        })
    })
}

/// Members for which a node of the same kind would be launched, at no better price: of those alike,
/// the ones that are dearest to move.
fn swaps(fleet: &Fleet<'_>, members: &[usize], launches: &[Launch]) -> Vec<usize> {
    let mut left: Vec<usize> = members.to_vec();
    left.sort_by_key(|m| std::cmp::Reverse(cost::disruption(&fleet.members[*m])));
    let mut swapped = Vec::new();
    for launch in launches {
        let name = &fleet.problem[launch.offering.0].name;
        let same = left.iter().position(|m| {
            let member = &fleet.members[*m];
            member.type_name == *name && member.price.is_some_and(|price| launch.price >= price)
        });
        swapped.extend(same.map(|at| left.remove(at)));
    }
    swapped
}

/// Members whose pods have no place.
fn owners(fleet: &Fleet<'_>, members: &[usize], stranded: &[(PodIx, String)]) -> Vec<usize> {
    let mut homeless: Vec<PodIx> = stranded.iter().map(|(pod, _)| *pod).collect();
    homeless.sort_unstable();
    let of = |m: &usize| {
        let mut pods = fleet.members[*m].pods.iter();
        pods.any(|moved| homeless.binary_search(&moved.pod).is_ok())
    };
    members.iter().copied().filter(of).collect()
}

/// The pod that keeps nodes, of those without a place the first by name.
pub(crate) fn pin(
    fleet: &Fleet<'_>,
    stranded: &[(PodIx, String)],
    rooms: Option<&bounds::Rooms>,
) -> Option<Pin> {
    let name = |pod: PodIx| &fleet.problem[pod].name;
    let (pod, because) = stranded.iter().min_by_key(|(pod, _)| name(*pod))?;
    let hole = rooms.and_then(|rooms| rooms.largest_hole(fleet, *pod));
    Some(Pin {
        pod: name(*pod).clone(),
        needs: fleet.problem.shape(*pod).requests.to_string(),
        because: because.clone(),
        largest_hole: hole.map(|hole| hole.to_string()),
        n_more: stranded.len() - 1,
    })
}

impl Offer {
    /// The command that carries it out.
    pub(crate) fn command(self, fleet: &Fleet<'_>, rooms: &bounds::Rooms) -> Command {
        let price_before = fleet.price(&self.members);
        let price_after = self.plan.cost.price;
        let (claims, group_nodes) = fleet.leavers(&self.members);
        let n_pods: usize = (self.members.iter())
            .map(|m| fleet.members[*m].pods.len())
            .sum();
        let (n, m) = (self.members.len(), self.plan.launches.len());
        let fate = match (n, m) {
            (1, 0) => "1 node is not needed: its pods fit elsewhere".to_owned(),
            (n, 0) => format!("{n} nodes are not needed: their pods fit elsewhere"),
            (1, m) => format!("1 node becomes {m}"),
            (n, m) => format!("{n} nodes become {m}"),
        };
        let method = if n == 1 {
            Method::Single
        } else {
            Method::Multi
        };
        Command {
            reason: Reason::Underutilized,
            method,
            claims,
            group_nodes,
            why: format!(
                "{fate}; ${price_before} an hour before, ${price_after} after; \
                 {} for ${}",
                pods_move(n_pods),
                self.move_cost
            ),
            is_tight: !fleet.settings.upstream
                && forecast::is_tight(fleet, rooms, &self.members, &self.plan),
            members: self.members,
            plan: self.plan,
            from_template: 0,
            price_before,
            price_after,
            move_cost: self.move_cost,
        }
    }
}
