//! Rules between nodes, in the packer's words: caps and tokens.
//!
//! A cap is "at most so many of these on one node", a token is "these may not meet those". Spreads
//! over nodes and anti-affinity of a group with itself become caps; other anti-affinity and host
//! ports become tokens.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{HostPort, Name, Protocol};

use crate::classes::{Class, Classes, Demand};
use crate::ground::Ground;

/// Caps and tokens of classes and hosts.
pub(crate) struct Marks {
    /// Caps by number.
    pub(crate) caps: Vec<u32>,
    /// Caps of a class.
    pub(crate) class_caps: Vec<Vec<u32>>,
    /// Caps of a class that are so far from binding that rows need not be told apart by them.
    pub(crate) class_slack: Vec<Vec<u32>>,
    /// Tokens that a class emits.
    pub(crate) class_emits: Vec<Vec<u32>>,
    /// Tokens that a class repels.
    pub(crate) class_repels: Vec<Vec<u32>>,
    /// What bound pods take of caps.
    pub(crate) host_caps: Vec<Vec<(u32, u32)>>,
    /// Tokens that bound pods emit.
    pub(crate) host_emits: Vec<Vec<u32>>,
    /// Tokens that bound pods repel.
    pub(crate) host_repels: Vec<Vec<u32>>,
}

/// A cap is slack when its members could be spread so many times over the nodes that must be.
const SLACK_FACTOR: u64 = 4;
/// With fewer nodes than this nothing is slack.
const SLACK_NODES_MIN: u64 = 64;

impl Marks {
    /// Caps and tokens of all rules and ports.
    pub(crate) fn new(ground: &Ground<'_>, classes: &Classes) -> Self {
        let n = classes.all.len();
        let hosts = ground.hosts.len();
        let mut marks = Self {
            caps: Vec::new(),
            class_caps: vec![Vec::new(); n],
            class_slack: vec![Vec::new(); n],
            class_emits: vec![Vec::new(); n],
            class_repels: vec![Vec::new(); n],
            host_caps: vec![Vec::new(); hosts],
            host_emits: vec![Vec::new(); hosts],
            host_repels: vec![Vec::new(); hosts],
        };
        let mut n_tokens = 0;
        marks.add_rules(classes, &mut n_tokens);
        marks.add_ports(ground, classes, &mut n_tokens);
        marks.find_slack(classes);
        marks
    }

    /// Finds caps that cannot bind: some other cap forces so many nodes that the members of this
    /// one would have to crowd on a small part of them.
    fn find_slack(&mut self, classes: &Classes) {
        let mut members = vec![0u64; self.caps.len()];
        for (class, caps) in classes.all.iter().zip(&self.class_caps) {
            caps.iter()
                .for_each(|g| members[*g as usize] += u64::from(class.count()));
        }
        let n_nodes = members
            .iter()
            .zip(&self.caps)
            .map(|(n, cap)| n / u64::from((*cap).max(1)));
        let n_nodes = n_nodes.max().unwrap_or(0);
        let taken: BTreeSet<u32> = self.host_caps.iter().flatten().map(|(g, _)| *g).collect();
        for caps in self.class_caps.iter_mut().zip(&mut self.class_slack) {
            let (caps, slack) = caps;
            caps.retain(|g| {
                let room = n_nodes * u64::from(self.caps[*g as usize]);
                let is_slack = n_nodes >= SLACK_NODES_MIN
                    && members[*g as usize] * SLACK_FACTOR <= room
                    && !taken.contains(g);
                if is_slack {
                    slack.push(*g);
                }
                !is_slack
            });
        }
    }

    /// All caps of a class, slack ones too.
    pub(crate) fn caps_of(&self, c: u32) -> impl Iterator<Item = u32> {
        let slack = self.class_slack[c as usize].iter();
        self.class_caps[c as usize].iter().chain(slack).copied()
    }

    fn new_cap(&mut self, most: u32) -> u32 {
        self.caps.push(most);
        u32::try_from(self.caps.len() - 1).unwrap_or(u32::MAX)
    }

    /// Spread and anti-affinity between nodes.
    fn add_rules(&mut self, classes: &Classes, n_tokens: &mut u32) {
        let mut owners: Vec<Vec<u32>> = vec![Vec::new(); classes.book.rules.len()];
        let mut counted: Vec<Vec<u32>> = vec![Vec::new(); classes.book.rules.len()];
        for (c, class) in (0u32..).zip(&classes.all) {
            class.owned.iter().for_each(|r| owners[*r as usize].push(c));
            class
                .counted
                .iter()
                .for_each(|r| counted[*r as usize].push(c));
        }
        for (r, rule) in classes.book.rules.iter().enumerate() {
            if !rule.is_host() {
                continue;
            }
            let bound = &classes.book.bound[r];
            match rule.demand {
                Demand::Affinity => {}
                Demand::Spread { max_skew, .. } => {
                    let cap = self.new_cap(max_skew);
                    let mine = counted[r]
                        .iter()
                        .filter(|c| owners[r].contains(c) || precedes(classes, **c, &owners[r]));
                    mine.for_each(|c| self.class_caps[*c as usize].push(cap));
                    for (host, n) in &bound.on_host {
                        self.host_caps[*host as usize].push((cap, *n));
                    }
                }
                Demand::Anti { both: true } if owners[r] == counted[r] => {
                    let cap = self.new_cap(1);
                    owners[r]
                        .iter()
                        .for_each(|c| self.class_caps[*c as usize].push(cap));
                    let taken = bound.on_host.keys().chain(bound.owner_hosts.keys());
                    let taken: BTreeSet<&u32> = taken.collect();
                    taken
                        .into_iter()
                        .for_each(|h| self.host_caps[*h as usize].push((cap, 1)));
                }
                Demand::Anti { .. } => {
                    let token = *n_tokens;
                    *n_tokens += 1;
                    owners[r]
                        .iter()
                        .for_each(|c| self.class_repels[*c as usize].push(token));
                    counted[r]
                        .iter()
                        .for_each(|c| self.class_emits[*c as usize].push(token));
                    bound
                        .on_host
                        .keys()
                        .for_each(|h| self.host_emits[*h as usize].push(token));
                    bound
                        .owner_hosts
                        .keys()
                        .for_each(|h| self.host_repels[*h as usize].push(token));
                }
            }
        }
    }

    /// Ports on the node's address: one holder each, addresses told apart.
    fn add_ports(&mut self, ground: &Ground<'_>, classes: &Classes, n_tokens: &mut u32) {
        let shape = |c: &Class| &ground.problem.shapes[c.shape as usize].ports;
        let mut all: BTreeMap<(u16, Protocol), Vec<Name>> = BTreeMap::new();
        for class in &classes.all {
            for port in shape(class) {
                all.entry((port.port, port.protocol))
                    .or_default()
                    .push(port.ip.clone());
            }
        }
        for ((port, protocol), mut ips) in all {
            ips.sort();
            ips.dedup();
            let any = *n_tokens;
            *n_tokens += 1 + u32::try_from(ips.len()).unwrap_or(0);
            let same = |p: &&HostPort| p.port == port && p.protocol == protocol;
            let tokens = |p: &HostPort| {
                let wildcard = matches!(p.ip.as_ref(), "0.0.0.0" | "::" | "");
                let own = ips
                    .iter()
                    .position(|ip| *ip == p.ip)
                    .and_then(|i| u32::try_from(i).ok());
                let own = own.map(|i| any + 1 + i);
                let emits: Vec<u32> = own.into_iter().chain([any]).collect();
                let repels = if wildcard {
                    vec![any]
                } else {
                    own.into_iter().collect()
                };
                (emits, repels)
            };
            for (c, class) in classes.all.iter().enumerate() {
                for p in shape(class).iter().filter(same) {
                    let (emits, repels) = tokens(p);
                    self.class_emits[c].extend(emits);
                    self.class_repels[c].extend(repels);
                }
            }
            for (h, host) in ground.hosts.iter().enumerate() {
                for p in host.ports.iter().filter(same) {
                    let (emits, repels) = tokens(p);
                    self.host_emits[h].extend(emits);
                    self.host_repels[h].extend(repels);
                }
            }
        }
    }
}

/// Pods that a spread merely counts come after those under it. Not so where an owner has to join
/// them, or comes last for a spread of theirs, or theirs is over nodes too: then they count against
/// the cap as well.
fn precedes(classes: &Classes, c: u32, owners: &[u32]) -> bool {
    let class = &classes.all[c as usize];
    let demand = |r: &u32| &classes.book.rules[*r as usize].demand;
    class.in_order
        && owners.iter().any(|o| {
            let owner = &classes.all[*o as usize];
            let mut joined = owner
                .owned
                .iter()
                .filter(|r| *demand(r) == Demand::Affinity);
            let mut spreads = class
                .owned
                .iter()
                .filter(|r| matches!(demand(r), Demand::Spread { .. }));
            joined.any(|r| class.is_counted(*r))
                || spreads.any(|r| {
                    let of_theirs = owner.is_counted(*r) && !owner.owned.contains(r);
                    of_theirs && (owner.comes_last || classes.book.rules[*r as usize].is_host())
                })
        })
}
