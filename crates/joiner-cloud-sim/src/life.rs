//! What happens to a machine next, and when.

use jiff::{SignedDuration, Timestamp};
use joiner_cluster::Digest;

use crate::delays::share;
use crate::faults::{Faults, Notice};
use crate::ids;
use crate::record::{Record, State};

/// What matters of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeSeen {
    /// Its uid.
    pub(crate) uid: String,
    /// Its machine.
    pub(crate) provider_id: String,
    /// Somebody has asked for its end.
    pub(crate) deleting: bool,
}

/// One thing that the cloud does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The machine joins as a Node.
    Joins,
    /// The machine gets a notice.
    IsNoticed(Notice),
    /// The machine is taken back.
    IsTaken,
    /// The machine is gone: what is remembered of it goes.
    IsGone,
    /// The Node that is the machine seems to have gone: that is to be made sure of.
    LostItsNode,
}

/// An event that is due, or the time to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Now.
    Due(Event),
    /// Then; never if nothing but a change matters.
    Look(Option<Timestamp>),
}

/// What chance depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance<'a> {
    /// What goes wrong.
    pub(crate) faults: &'a Faults,
    /// Since when.
    pub(crate) since: Timestamp,
    /// Seed of the run.
    pub(crate) seed: u64,
}

/// What happens next to a machine with this Node.
pub(crate) fn next(
    record: &Record,
    node: Option<&NodeSeen>,
    chance: Chance<'_>,
    now: Timestamp,
) -> Next {
    match record.state {
        State::Terminating => when(record.gone_at.unwrap_or(now), Event::IsGone, now),
        State::Pending => match record.joins_at {
            Some(at) => when(at, Event::Joins, now),
            None => Next::Look(None),
        },
        State::Running if record.is_its_node() && node.is_none() => Next::Due(Event::LostItsNode),
        State::Running => {
            if let Some(ends) = record.interruption.and_then(|upcoming| upcoming.ends) {
                return when(ends, Event::IsTaken, now);
            }
            let Some((at, notice)) = chance.notice(record) else {
                return Next::Look(None);
            };
            when(at, Event::IsNoticed(notice), now)
        }
    }
}

fn when(at: Timestamp, event: Event, now: Timestamp) -> Next {
    if at <= now {
        Next::Due(event)
    } else {
        Next::Look(Some(at))
    }
}

/// True for a Node whose machine is not remembered: it is gone, and the Node is to follow it.
pub(crate) fn is_left_over(node: &NodeSeen) -> bool {
    !node.deleting && ids::is_ours(&node.provider_id)
}

impl Chance<'_> {
    /// The next notice of a machine that has none, or one without consequences.
    fn notice(&self, record: &Record) -> Option<(Timestamp, Notice)> {
        let noticed = record.interruption.is_some();
        let orders = self.faults.interruptions.iter();
        let orders = orders
            .filter(|order| order.node == record.node_name)
            .filter(|order| !noticed || order.kind.ends_after().is_some())
            .map(|order| (order.at.unwrap_or(Timestamp::MIN), order.kind));
        orders.chain(self.by_rate(record)).min_by_key(|(at, _)| *at)
    }

    /// When a spot machine is taken back by chance: the wait has no memory.
    fn by_rate(&self, record: &Record) -> Option<(Timestamp, Notice)> {
        let rate = self.faults.interruptions_per_hour;
        if rate <= 0.0 || !record.is_spot() {
            return None;
        }
        let digest = Digest::default().number(self.seed).text(&record.claim_uid);
        let draw = share(digest.text("interruption").finish());
        let hours = -(1.0 - draw).ln() / rate;
        let wait = SignedDuration::try_from_secs_f64(hours * 3600.0).ok()?;
        let at = record.launched.max(self.since).checked_add(wait).ok()?;
        Some((at, Notice::SpotInterruption))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::InterruptionOrder;
    use crate::record::Upcoming;
    use crate::record::tests::record;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn node() -> NodeSeen {
        NodeSeen {
            uid: "1".to_owned(),
            provider_id: record().provider_id,
            deleting: false,
        }
    }

    fn look(record: &Record, node: Option<&NodeSeen>, faults: &Faults, second: i64) -> Next {
        let chance = Chance {
            faults,
            since: at(0),
            seed: 1,
        };
        next(record, node, chance, at(second))
    }

    #[test]
    fn a_machine_joins_when_it_has_booted() {
        let (record, none) = (record(), Faults::default());
        assert_eq!(look(&record, None, &none, 129), Next::Look(Some(at(130))));
        assert_eq!(look(&record, None, &none, 130), Next::Due(Event::Joins));
        let never = Record {
            joins_at: None,
            ..record
        };
        assert_eq!(look(&never, None, &none, 9999), Next::Look(None));
    }

    #[test]
    fn only_the_machine_of_a_kwok_class_goes_with_its_node() {
        let none = Faults::default();
        let mut record = record();
        record.state = State::Running;
        assert_eq!(
            look(&record, None, &none, 200),
            Next::Due(Event::LostItsNode)
        );
        assert_eq!(look(&record, Some(&node()), &none, 200), Next::Look(None));
        record.class_kind = "EC2NodeClass".to_owned();
        assert_eq!(look(&record, None, &none, 200), Next::Look(None));
    }

    #[test]
    fn a_noticed_machine_is_taken_and_then_gone() {
        let mut record = record();
        record.state = State::Running;
        let order = InterruptionOrder {
            node: record.node_name.clone(),
            kind: Notice::SpotInterruption,
            at: Some(at(300)),
        };
        let faults = Faults {
            interruptions: vec![order],
            ..Faults::default()
        };
        let seen = node();
        let look = |record: &Record, second| look(record, Some(&seen), &faults, second);
        assert_eq!(look(&record, 299), Next::Look(Some(at(300))));
        let noticed = Next::Due(Event::IsNoticed(Notice::SpotInterruption));
        assert_eq!(look(&record, 300), noticed);
        record.interruption = Some(Upcoming {
            notice: Notice::RebalanceRecommendation,
            noticed: at(250),
            ends: None,
        });
        assert_eq!(look(&record, 300), noticed, "a warning is not the end");
        record.interruption = Some(Upcoming {
            notice: Notice::SpotInterruption,
            noticed: at(300),
            ends: Some(at(420)),
        });
        assert_eq!(look(&record, 419), Next::Look(Some(at(420))));
        assert_eq!(look(&record, 420), Next::Due(Event::IsTaken));
        record.state = State::Terminating;
        record.gone_at = Some(at(430));
        assert_eq!(look(&record, 429), Next::Look(Some(at(430))));
        assert_eq!(look(&record, 430), Next::Due(Event::IsGone));
    }

    #[test]
    fn spot_machines_are_taken_at_the_rate_that_was_asked() {
        let faults = Faults {
            interruptions_per_hour: 2.0,
            ..Faults::default()
        };
        let mut waits: Vec<i64> = (0..999)
            .filter_map(|n| {
                let mut record = record();
                record.state = State::Running;
                record.claim_uid = format!("uid-{n}");
                match look(&record, Some(&node()), &faults, 100) {
                    Next::Look(at) => at.map(|at| at.as_second() - 100),
                    Next::Due(_) => Some(0),
                }
            })
            .collect();
        waits.sort_unstable();
        assert_eq!(waits.len(), 999);
        // Half of them wait less than ln 2 times half an hour.
        assert!((1150..1350).contains(&waits[499]), "{}", waits[499]);
        let mut on_demand = record();
        on_demand.state = State::Running;
        on_demand.labels.clear();
        assert_eq!(
            look(&on_demand, Some(&node()), &faults, 100),
            Next::Look(None)
        );
    }

    #[test]
    fn nodes_of_others_are_left_alone() {
        assert!(is_left_over(&node()));
        for (id, deleting) in [("aws:///a/i-1", false), ("kwok://x", true), ("", false)] {
            let node = NodeSeen {
                uid: "1".to_owned(),
                provider_id: id.to_owned(),
                deleting,
            };
            assert!(!is_left_over(&node), "{id}");
        }
    }
}
