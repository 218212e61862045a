//! The latest word on every node, and which of it is worth a line in the decision log.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::decision::Decision;
use crate::details::{KEPT, Kept, KeptDetails};

/// Nodes in one record.
const WRITTEN_MAX: usize = 200;
/// The same node is written about this often at most, however often its reason changes.
const EVERY: SignedDuration = SignedDuration::from_mins(5);

/// The latest word on every node. As large as the cluster: each pass replaces all of it.
#[derive(Debug, Default)]
pub struct KeptNodes {
    now: BTreeMap<String, Arc<Kept>>,
    /// The reason that was written last, and when.
    written: BTreeMap<String, (String, Timestamp)>,
}

impl KeptNodes {
    /// Takes in what one pass says of all nodes. Returns those whose reason is worth writing.
    pub fn replace(&mut self, all: Vec<Kept>, now: Timestamp) -> Vec<Arc<Kept>> {
        let before = std::mem::take(&mut self.now);
        for mut kept in all {
            let earlier = before.get(&kept.machine.node);
            let same = earlier.filter(|earlier| earlier.reason == kept.reason);
            kept.since = same.map_or(now, |earlier| earlier.since);
            self.now.insert(kept.machine.node.clone(), Arc::new(kept));
        }
        let now_there = &self.now;
        self.written.retain(|node, _| now_there.contains_key(node));
        let is_news = |(node, kept): &(&String, &Arc<Kept>)| {
            let known = self.written.get(*node);
            !kept.passing
                && known.is_none_or(|(reason, at)| {
                    *reason != kept.reason && now.duration_since(*at) >= EVERY
                })
        };
        let news = self.now.iter().filter(is_news).take(WRITTEN_MAX);
        let news: Vec<Arc<Kept>> = news.map(|(_, kept)| Arc::clone(kept)).collect();
        for kept in &news {
            let node = kept.machine.node.clone();
            self.written.insert(node, (kept.reason.clone(), now));
        }
        news
    }

    /// The latest word on a node, by its name or that of its claim.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<Arc<Kept>> {
        let mut all = self.now.values();
        let by_claim = || all.find(|kept| kept.machine.node_claim == name);
        self.now.get(name).or_else(by_claim).cloned()
    }

    /// The record of nodes whose reason to stay is new.
    #[must_use]
    pub fn record(news: &[Arc<Kept>], generation: u64, now: Timestamp) -> Decision {
        let n = news.len();
        let names = news.iter().flat_map(|kept| {
            let machine = &kept.machine;
            [
                format!("node/{}", machine.node),
                format!("nodeclaim/{}", machine.node_claim),
            ]
        });
        let about = names.collect();
        let details = KeptDetails {
            nodes: news.iter().map(|kept| Kept::clone(kept)).collect(),
        };
        Decision {
            time: now,
            kind: KEPT.to_owned(),
            generation,
            outcome: format!("keep {n} node{}", if n == 1 { "" } else { "s" }),
            about,
            details: serde_json::to_value(details).unwrap_or_default(),
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::details::Machine;
    use crate::fate::{NodeFate, of_node};

    fn kept(node: &str, reason: &str) -> Kept {
        Kept {
            machine: Machine {
                node: node.to_owned(),
                node_claim: format!("claim-{node}"),
                ..Machine::default()
            },
            reason: reason.to_owned(),
            ..Kept::default()
        }
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    fn nodes(all: &[Arc<Kept>]) -> Vec<&str> {
        all.iter().map(|kept| kept.machine.node.as_str()).collect()
    }

    #[test]
    fn only_a_new_reason_is_written_and_not_all_the_time() {
        let mut all = KeptNodes::default();
        let first = all.replace(vec![kept("a", "x"), kept("b", "x")], at(0));
        assert_eq!(nodes(&first), ["a", "b"]);
        assert!(
            all.replace(vec![kept("a", "x"), kept("b", "x")], at(10))
                .is_empty()
        );
        assert_eq!(all.of("a").unwrap().since, at(0));
        // It changed, but a line about it was written a moment ago.
        assert!(
            all.replace(vec![kept("a", "y"), kept("b", "x")], at(20))
                .is_empty()
        );
        assert_eq!(all.of("claim-a").unwrap().since, at(20));
        let later = all.replace(vec![kept("a", "y"), kept("b", "x")], at(300));
        assert_eq!(nodes(&later), ["a"]);
        // There and back between two lines is no news.
        assert!(all.replace(vec![kept("a", "y")], at(900)).is_empty());
        assert!(all.of("b").is_none(), "it is gone");
    }

    #[test]
    fn what_passes_is_not_written() {
        let mut all = KeptNodes::default();
        let mut waits = kept("a", "not its turn");
        waits.passing = true;
        assert!(all.replace(vec![waits], at(0)).is_empty());
        assert_eq!(all.of("a").unwrap().reason, "not its turn");
    }

    #[test]
    fn many_are_written_little_by_little() {
        let mut all = KeptNodes::default();
        let many = || (0..450).map(|n| kept(&format!("n{n:03}"), "x")).collect();
        let counts: Vec<usize> = (0..4).map(|n| all.replace(many(), at(n)).len()).collect();
        assert_eq!(counts, [200, 200, 50, 0]);
    }

    #[test]
    fn a_record_names_the_nodes_and_reads_back() {
        let mut all = KeptNodes::default();
        let news = all.replace(vec![kept("a", "x"), kept("b", "y")], at(7));
        let record = KeptNodes::record(&news, 3, at(7));
        assert_eq!((record.generation, record.time), (3, at(7)));
        assert_eq!(record.outcome, "keep 2 nodes");
        assert_eq!(
            record.about,
            ["node/a", "nodeclaim/claim-a", "node/b", "nodeclaim/claim-b"]
        );
        assert_eq!(
            KeptNodes::record(&news[..1], 3, at(7)).outcome,
            "keep 1 node"
        );
        let receipt = of_node(&record, &["claim-b"]).unwrap();
        let NodeFate::Kept { why } = receipt.fate else {
            panic!("{receipt:?}");
        };
        assert_eq!((why.reason.as_str(), why.since), ("y", at(7)));
    }
}
