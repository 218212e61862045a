//! When to stop collecting pods and plan for them.
//!
//! By default a lone pod is answered at once and a burst when it stops growing; with a fixed idle
//! time it is as upstream has it: that long without a new pod, or the longest time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use joiner_model::Name;

use crate::settings::Batching;

/// A lone pod waits this long for company.
const QUIET_MIN: Duration = Duration::from_millis(40);
/// No burst is waited for longer than this after its last pod.
const QUIET_MAX: Duration = Duration::from_secs(1);
/// A scheduler that keeps up has fewer pods than this before it at any moment.
const BACKLOG_MIN: usize = 3;
/// A plan that failed is made anew after this long at the earliest.
const FORGIVEN_AFTER: Duration = Duration::from_secs(1);
/// While pods find a place, nobody is planned for again before this long after the last one did.
const PLACED_WITHIN: Duration = Duration::from_secs(2);
/// But whoever was planned for this long ago may ask in any case.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long it is remembered that somebody was planned for.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// The same pod asks again after this long at the earliest.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Who asked for a plan, and when.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    opened: Option<Timestamp>,
    /// When the burst began that the batch is part of: a burst may outlast several batches.
    burst: Timestamp,
    grown: Timestamp,
    /// The scheduler has many pods before it.
    backlog: bool,
    asked: BTreeSet<Name>,
    /// When it was last looked who waits.
    looked: Timestamp,
    /// How many pods wait.
    n_waiting: usize,
    /// When somebody last found a place.
    placed: Timestamp,
    /// Who was planned for.
    answered: BTreeMap<Name, Answer>,
}

/// What is remembered of somebody who was planned for.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// When that was, last.
    at: Timestamp,
    /// When they may ask again.
    again: Timestamp,
    /// How often they were planned for of late.
    n: u32,
}

impl Batch {
    /// Somebody waits for a plan, as of this look: the uid of a pod, or the name of anything else. Those
    /// that were planned for a moment ago have to wait.
    pub(crate) fn ask(&mut self, who: &Name) {
        let now = self.looked;
        let answered = self.answered.get(who);
        if answered.is_some_and(|own| now < self.again(own)) {
            return;
        }
        if self.asked.insert(who.clone()) {
            self.opened.get_or_insert(now);
            if self.grown.checked_add(QUIET_MAX).is_ok_and(|end| end < now) {
                self.burst = now;
            }
            self.grown = now;
        }
    }

    /// A look at who waits begins: so many pods, planned for or not. As long as they become fewer, the
    /// scheduler is at work on what was planned, and a plan for those that are left would be another one.
    pub(crate) fn look(&mut self, n: usize, now: Timestamp) {
        self.looked = now;
        if n < self.n_waiting {
            self.placed = now;
        }
        self.n_waiting = n;
    }

    /// When somebody who was planned for may ask again.
    fn again(&self, own: &Answer) -> Timestamp {
        let after = |at: Timestamp, pause| at.checked_add(pause).unwrap_or(Timestamp::MAX);
        let still = after(self.placed, PLACED_WITHIN).min(after(own.at, PATIENCE));
        own.again.max(still)
    }

    /// So many pods are there that the scheduler has not come to yet, and so many of them have asked
    /// all the same. While they are many it has a backlog, and the burst goes on even if nobody was
    /// turned down for a moment; with the rest of them known, it ends when no more are created.
    pub(crate) fn expect(&mut self, n_fresh: usize, n_asked: usize) {
        let many = BACKLOG_MIN.max(self.asked.len() / 20);
        self.backlog = n_fresh > many;
        if self.opened.is_some() && n_fresh - n_asked > many {
            self.grown = self.looked;
        }
    }

    /// When the batch is to be planned, if anybody asked.
    pub(crate) fn closes(&self, batching: Batching) -> Option<Timestamp> {
        let opened = self.opened?;
        let quiet = batching.idle.unwrap_or_else(|| {
            // The longer it grows, the longer the pauses in it may be: whoever creates a thousand
            // pods creates the first few slowly, and a plan for those alone buys small nodes.
            let age = self.grown.duration_since(self.burst).unsigned_abs();
            match self.backlog {
                true => QUIET_MAX,
                false => (age / 4).clamp(QUIET_MIN, QUIET_MAX),
            }
        });
        let idle = self.grown.checked_add(quiet).unwrap_or(Timestamp::MAX);
        let latest = opened.checked_add(batching.max).unwrap_or(Timestamp::MAX);
        Some(idle.min(latest))
    }

    /// The batch is planned.
    pub(crate) fn close(&mut self, now: Timestamp) {
        let age = |own: &Answer| now.duration_since(own.at).unsigned_abs();
        self.answered.retain(|_, own| age(own) < REMEMBERED_FOR);
        let again = now.checked_add(AGAIN_AFTER).unwrap_or(Timestamp::MAX);
        for who in std::mem::take(&mut self.asked) {
            let n = self.answered.get(&who).map_or(0, |own| own.n) + 1;
            self.answered.insert(who, Answer { at: now, again, n });
        }
        self.opened = None;
    }

    /// Something that was planned came to nothing: everybody may ask again a second after the plan.
    pub(crate) fn forgive(&mut self) {
        for own in self.answered.values_mut() {
            let sooner = own.at.checked_add(FORGIVEN_AFTER).unwrap_or(Timestamp::MAX);
            own.again = sooner.min(own.again);
        }
    }

    /// The nodes that were planned are up. The scheduler may pack in another way than the plan did, so
    /// whoever was planned for once, and finds no place a second from now, may ask again.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        for own in self.answered.values_mut().filter(|own| own.n == 1) {
            let sooner = now.checked_add(FORGIVEN_AFTER).unwrap_or(Timestamp::MAX);
            own.again = sooner.min(own.again);
        }
    }

    /// The plan came to nothing: who asked may ask again at once.
    pub(crate) fn forget(&mut self) {
        self.answered.clear();
    }

    /// When the first of those may ask again who could not at the last look, for they had been planned for:
    /// those who could, and did not, are not waited for. That may be over by now, but it counts: nobody has
    /// heard them yet, and where nothing else happens nobody ever would.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let times = self.answered.values().map(|own| self.again(own));
        times.filter(|again| *again > self.looked).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    /// Somebody asks at this moment; as many wait as before.
    fn ask(batch: &mut Batch, who: &str, millis: i64) {
        batch.look(batch.n_waiting, ms(millis));
        batch.ask(&who.into());
    }

    fn expect(batch: &mut Batch, n_fresh: usize, n_asked: usize, millis: i64) {
        batch.look(batch.n_waiting, ms(millis));
        batch.expect(n_fresh, n_asked);
    }

    fn adaptive() -> Batching {
        Batching::default()
    }

    #[test]
    fn a_lone_pod_is_answered_within_100_ms() {
        let mut batch = Batch::default();
        assert_eq!(batch.closes(adaptive()), None);
        ask(&mut batch, "a", 0);
        assert!(batch.closes(adaptive()).unwrap() <= ms(100));
    }

    #[test]
    fn a_burst_is_answered_when_it_stops_growing() {
        let mut batch = Batch::default();
        for n in 0..100i64 {
            let now = ms(n * 30);
            assert!(batch.closes(adaptive()).is_none_or(|at| at > now), "at {n}");
            ask(&mut batch, &n.to_string(), n * 30);
        }
        let closes = batch.closes(adaptive()).unwrap();
        assert!(closes > ms(2_970 + 500) && closes <= ms(2_970 + 1_000));
        // However long it grows, there is an end to it.
        for n in 100..2_000i64 {
            ask(&mut batch, &n.to_string(), n * 30);
        }
        assert_eq!(batch.closes(adaptive()), Some(ms(10_000)));
    }

    #[test]
    fn a_burst_goes_on_while_the_scheduler_has_a_backlog() {
        let mut batch = Batch::default();
        expect(&mut batch, 100, 0, 0);
        assert_eq!(batch.closes(adaptive()), None, "nobody asked");
        ask(&mut batch, "a", 0);
        for n in 1..20i64 {
            expect(&mut batch, 50, 0, n * 100);
            assert!(batch.closes(adaptive()) > Some(ms(n * 100)), "at {n}");
        }
        // A few are there at any time, and the backlog of a scheduler that hangs is not waited for.
        expect(&mut batch, 3, 0, 2_800);
        assert!(batch.closes(adaptive()) <= Some(ms(2_900)));
        for n in 20..200i64 {
            expect(&mut batch, 50, 0, n * 100);
        }
        assert_eq!(batch.closes(adaptive()), Some(ms(10_000)));
    }

    #[test]
    fn a_backlog_that_is_known_is_planned_for_when_it_stops_growing() {
        let mut batch = Batch::default();
        for n in 0..40i64 {
            ask(&mut batch, &n.to_string(), n);
        }
        expect(&mut batch, 30, 30, 40);
        assert_eq!(batch.closes(adaptive()), Some(ms(1_039)), "more may come");
        expect(&mut batch, 2, 2, 60);
        assert!(
            batch.closes(adaptive()) <= Some(ms(100)),
            "the scheduler is done"
        );
    }

    #[test]
    fn a_burst_goes_on_after_a_plan() {
        let mut batch = Batch::default();
        let mut plans = 0;
        // Pauses of up to 300 ms, now and then: only the first ones end a batch.
        let mut now = 0i64;
        for n in 0..200i64 {
            now += if n % 20 == 10 { 300 } else { 20 };
            while batch.closes(adaptive()).is_some_and(|at| at <= ms(now)) {
                batch.close(ms(now));
                plans += 1;
            }
            ask(&mut batch, &n.to_string(), now);
        }
        assert!((1..=3).contains(&plans), "{plans}");
        // A second of silence, and the next pod is a lone one.
        batch.close(ms(now));
        ask(&mut batch, "late", now + 1_100);
        assert!(batch.closes(adaptive()).unwrap() <= ms(now + 1_200));
    }

    #[test]
    fn core_104_one_plan_when_no_new_pod_has_come_for_the_idle_time() {
        let fixed = Batching {
            idle: Some(Duration::from_secs(1)),
            max: Duration::from_secs(10),
        };
        let mut batch = Batch::default();
        ask(&mut batch, "a", 0);
        assert_eq!(batch.closes(fixed), Some(ms(1_000)));
        // The same pod again does not extend the window; another one does.
        ask(&mut batch, "a", 500);
        assert_eq!(batch.closes(fixed), Some(ms(1_000)));
        ask(&mut batch, "b", 600);
        assert_eq!(batch.closes(fixed), Some(ms(1_600)));
        batch.close(ms(1_600));
        assert_eq!(batch.closes(fixed), None, "one plan for both");
        ask(&mut batch, "a", 1_700);
        ask(&mut batch, "b", 1_700);
        assert_eq!(batch.closes(fixed), None, "they have been planned for");
        // New pods all the time extend it up to the longest time, and no further.
        for n in 0..30i64 {
            ask(&mut batch, &format!("c{n}"), 2_000 + n * 500);
        }
        assert_eq!(batch.closes(fixed), Some(ms(12_000)));
    }

    #[test]
    fn whoever_could_not_ask_at_a_look_is_waited_for_however_long_it_took() {
        let mut batch = Batch::default();
        ask(&mut batch, "a", 10_000);
        batch.close(ms(10_050));
        batch.forgive();
        // A moment too early. However late it is when somebody asks when to look again, that look
        // has not been taken.
        ask(&mut batch, "a", 11_049);
        assert_eq!(batch.closes(adaptive()), None);
        assert_eq!(batch.next(), Some(ms(11_050)));
        ask(&mut batch, "a", 11_060);
        assert!(batch.closes(adaptive()).is_some());
    }

    #[test]
    fn the_same_pod_does_not_ask_again_within_ten_seconds() {
        let mut batch = Batch::default();
        ask(&mut batch, "a", 0);
        batch.close(ms(50));
        ask(&mut batch, "a", 9_000);
        assert_eq!(batch.closes(adaptive()), None);
        assert_eq!(batch.next(), Some(ms(10_050)));
        batch.look(0, ms(10_050));
        assert_eq!(batch.next(), None, "nobody asks: nothing to wake up for");
        ask(&mut batch, "a", 10_050);
        assert!(batch.closes(adaptive()).is_some());
        batch.close(ms(10_100));
        batch.forgive();
        ask(&mut batch, "a", 10_900);
        assert_eq!(batch.closes(adaptive()), None, "no hot loop");
        assert_eq!(batch.next(), Some(ms(11_100)));
        ask(&mut batch, "a", 11_100);
        assert!(batch.closes(adaptive()).is_some());
        batch.close(ms(11_200));
        batch.settle(ms(11_250));
        ask(&mut batch, "a", 12_300);
        assert_eq!(batch.closes(adaptive()), None, "only the first time");
        ask(&mut batch, "b", 12_300);
        batch.close(ms(12_350));
        batch.settle(ms(12_400));
        batch.look(9, ms(13_000));
        batch.look(8, ms(13_400));
        ask(&mut batch, "b", 15_300);
        assert_eq!(batch.closes(adaptive()), None, "the scheduler is at work");
        assert_eq!(batch.next(), Some(ms(15_400)));
        ask(&mut batch, "b", 15_400);
        assert!(
            batch.closes(adaptive()).is_some(),
            "its node is up, and it still waits"
        );
        batch.close(ms(15_400));
        batch.forget();
        ask(&mut batch, "a", 15_500);
        assert!(batch.closes(adaptive()).is_some());
    }
}
