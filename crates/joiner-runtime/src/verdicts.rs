//! The latest word on every node, and which of it is worth a line in the decision log.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::receipt::Kept;

/// Nodes in one record.
const WRITTEN_MAX: usize = 200;
/// The same node is written about this often at most, however often its reason changes.
const EVERY: SignedDuration = SignedDuration::from_mins(5);

/// The latest word on every node. As large as the cluster: each pass replaces all of it.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    now: BTreeMap<String, Arc<Kept>>,
    /// The reason that was written last, and when.
    written: BTreeMap<String, (String, Timestamp)>,
}

impl Verdicts {
    /// Takes in what one pass says of all nodes. Returns those whose reason is worth writing.
    pub(crate) fn replace(&mut self, all: Vec<Kept>, now: Timestamp) -> Vec<Arc<Kept>> {
        let before = std::mem::take(&mut self.now);
        for mut own in all {
            let earlier = before.get(&own.machine.node);
            let same = earlier.filter(|earlier| earlier.reason == own.reason);
            own.since = same.map_or(now, |earlier| earlier.since);
            self.now.insert(own.machine.node.clone(), Arc::new(own));
        }
        let now_there = &self.now;
        self.written.retain(|node, _| now_there.contains_key(node));
        let is_news = |(node, own): &(&String, &Arc<Kept>)| {
            let known = self.written.get(*node);
            !own.passing
                && known.is_none_or(|(reason, at)| {
                    *reason != own.reason && now.duration_since(*at) >= EVERY
                })
        };
        let news = self.now.iter().filter(is_news).take(WRITTEN_MAX);
        let news: Vec<Arc<Kept>> = news.map(|(_, own)| Arc::clone(own)).collect();
        for own in &news {
            let node = own.machine.node.clone();
            self.written.insert(node, (own.reason.clone(), now));
        }
        news
    }

    /// The latest word on a node, by its name or that of its claim.
    pub(crate) fn of(&self, name: &str) -> Option<Arc<Kept>> {
        let by_claim = || self.now.values().find(|own| own.machine.node_claim == name);
        self.now.get(name).or_else(by_claim).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::Machine;

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
        all.iter().map(|own| own.machine.node.as_str()).collect()
    }

    #[test]
    fn only_a_new_reason_is_written_and_not_all_the_time() {
        let mut all = Verdicts::default();
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
        let mut all = Verdicts::default();
        let mut waits = kept("a", "not its turn");
        waits.passing = true;
        assert!(all.replace(vec![waits], at(0)).is_empty());
        assert_eq!(all.of("a").unwrap().reason, "not its turn");
    }

    #[test]
    fn many_are_written_little_by_little() {
        let mut all = Verdicts::default();
        let many = || (0..450).map(|n| kept(&format!("n{n:03}"), "x")).collect();
        let counts: Vec<usize> = (0..4).map(|n| all.replace(many(), at(n)).len()).collect();
        assert_eq!(counts, [200, 200, 50, 0]);
    }
}
