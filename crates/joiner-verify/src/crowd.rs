//! Who could have been the last to come: a crowd of pods that is taken apart backward.
//!
//! Backward is the easy direction. Whoever leaves makes room in its domains, so a count that bars a
//! pod from being last bars it less and less. Only two things get worse: the count of the emptiest
//! domain falls, and a pod that others need near them is gone.

use crate::domains::Counted;

/// Pods and rules whose order hangs together.
pub(crate) struct Knot {
    pub(crate) laws: Vec<Law>,
    /// Slots of one law are side by side.
    pub(crate) slots: Vec<Slot>,
    pub(crate) units: Vec<Unit>,
    /// How many sets of slots bar a pod from being the first of its group.
    pub(crate) n_reaches: usize,
}

impl Knot {
    pub(crate) fn n_pods(&self) -> usize {
        self.units.iter().map(|unit| unit.n as usize).sum()
    }
}

/// A rule as it concerns the order.
#[derive(Clone, Copy)]
pub(crate) enum Law {
    /// A count must not be more than `max_skew` above the emptiest domain.
    Spread {
        max_skew: u64,
        /// The count of the emptiest domain, where no order changes it.
        floor: Option<u64>,
    },
    /// A match must be there before.
    Affinity,
}

/// One domain of one rule.
pub(crate) struct Slot {
    pub(crate) law: usize,
    /// Pods from before the plan.
    pub(crate) base: u64,
    /// It may be the emptiest domain.
    pub(crate) in_floor: bool,
    /// The sets of slots that it is in: a match here keeps pods from being first elsewhere.
    pub(crate) reaches: Vec<usize>,
}

/// Pods that no rule of the knot can tell apart.
pub(crate) struct Unit {
    pub(crate) n: u32,
    pub(crate) touches: Vec<Touch>,
    /// One of the entries of the topology that they are in, to name a pod.
    pub(crate) entry: usize,
}

/// What a pod has to do with one slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Touch {
    pub(crate) slot: usize,
    /// The pod is under the rule, and it matters when it comes.
    pub(crate) needs: bool,
    pub(crate) counted: Counted,
    /// Under affinity: it may be the first of its group unless a match is in this set of slots.
    pub(crate) first: Option<usize>,
}

impl Touch {
    fn counts(self) -> bool {
        self.counted != Counted::No
    }

    /// True when a pod can come to the slot before any other one that counts there.
    fn opens(self) -> bool {
        self.counts() && (!self.needs || self.first.is_some())
    }
}

/// The pods of a knot that are still there.
#[derive(Clone)]
pub(crate) struct Crowd<'k> {
    knot: &'k Knot,
    /// Pods by unit.
    left: Vec<u32>,
    n_left: u64,
    /// By slot, what counts in every world.
    least: Vec<u64>,
    /// By slot, what may count.
    most: Vec<u64>,
    /// By slot, pods that need it.
    waiting: Vec<u64>,
    /// By slot, pods that count there and do not need it.
    givers: Vec<u64>,
    /// By slot, those and the ones that can be the first there.
    openers: Vec<u64>,
    /// By law, pods that need one of its slots.
    bound: Vec<u64>,
    /// By law, the count of the emptiest domain.
    floors: Vec<u64>,
    /// By set of slots, pods that count there.
    near: Vec<u64>,
}

impl<'k> Crowd<'k> {
    /// The crowd of which `left` pods of each unit are there.
    pub(crate) fn new(knot: &'k Knot, left: Vec<u32>) -> Self {
        let base: Vec<u64> = knot.slots.iter().map(|slot| slot.base).collect();
        let mut crowd = Self {
            knot,
            n_left: left.iter().map(|n| u64::from(*n)).sum(),
            least: base.clone(),
            most: base,
            waiting: vec![0; knot.slots.len()],
            givers: vec![0; knot.slots.len()],
            openers: vec![0; knot.slots.len()],
            bound: vec![0; knot.laws.len()],
            floors: vec![u64::MAX; knot.laws.len()],
            near: vec![0; knot.n_reaches],
            left,
        };
        for (unit, n) in knot.units.iter().zip(&crowd.left) {
            let n = u64::from(*n);
            for touch in &unit.touches {
                let slot = &knot.slots[touch.slot];
                if touch.needs {
                    crowd.waiting[touch.slot] += n;
                    crowd.bound[slot.law] += n;
                }
                if touch.counts() {
                    crowd.most[touch.slot] += n;
                    crowd.givers[touch.slot] += n * u64::from(!touch.needs);
                    crowd.openers[touch.slot] += n * u64::from(touch.opens());
                    slot.reaches.iter().for_each(|r| crowd.near[*r] += n);
                }
                if touch.counted == Counted::Surely {
                    crowd.least[touch.slot] += n;
                }
            }
        }
        for (slot, most) in knot.slots.iter().zip(&crowd.most) {
            if slot.in_floor {
                crowd.floors[slot.law] = crowd.floors[slot.law].min(*most);
            }
        }
        crowd
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.n_left == 0
    }

    /// Pods by unit.
    pub(crate) fn left(&self) -> &[u32] {
        &self.left
    }

    /// Takes one pod of a unit away.
    pub(crate) fn leave(&mut self, unit: usize) {
        self.left[unit] -= 1;
        self.n_left -= 1;
        for touch in &self.knot.units[unit].touches {
            let slot = &self.knot.slots[touch.slot];
            if touch.needs {
                self.waiting[touch.slot] -= 1;
                self.bound[slot.law] -= 1;
            }
            if touch.counts() {
                self.most[touch.slot] -= 1;
                self.givers[touch.slot] -= u64::from(!touch.needs);
                self.openers[touch.slot] -= u64::from(touch.opens());
                slot.reaches.iter().for_each(|r| self.near[*r] -= 1);
                if slot.in_floor {
                    let floor = &mut self.floors[slot.law];
                    *floor = (*floor).min(self.most[touch.slot]);
                }
            }
            if touch.counted == Counted::Surely {
                self.least[touch.slot] -= 1;
            }
        }
    }

    /// True when a pod of the unit could have come after all the others, as far as can be told.
    pub(crate) fn may_be_last(&self, unit: usize) -> bool {
        let mut touches = self.knot.units[unit].touches.iter();
        touches.all(|touch| (!touch.needs || self.serves(touch)) && !self.is_missed(touch))
    }

    /// True when pods that are left need the slot, and without this one nobody could have come to
    /// it first.
    fn is_missed(&self, touch: &Touch) -> bool {
        let slot = &self.knot.slots[touch.slot];
        let is_affinity = matches!(self.knot.laws[slot.law], Law::Affinity);
        let is_last = touch.opens() && self.openers[touch.slot] == 1;
        is_affinity
            && is_last
            && slot.base == 0
            && self.waiting[touch.slot] > u64::from(touch.needs)
    }

    /// True when a pod with this need could have come after all the others, as for this need.
    fn serves(&self, touch: &Touch) -> bool {
        let slot = &self.knot.slots[touch.slot];
        let others = self.most[touch.slot] - u64::from(touch.counts());
        match self.knot.laws[slot.law] {
            Law::Spread { max_skew, floor } => {
                let lowest = self.floors[slot.law];
                let lowest = if slot.in_floor {
                    lowest.min(others)
                } else {
                    lowest
                };
                // The least include the pod itself just when the rule counts it.
                self.least[touch.slot] <= floor.unwrap_or(lowest).saturating_add(max_skew)
            }
            Law::Affinity => {
                let is_first = |reach| {
                    let own = touch.counts() && slot.reaches.contains(&reach);
                    self.near[reach] == u64::from(own)
                };
                others > 0 || touch.first.is_some_and(is_first)
            }
        }
    }

    /// True when no pod that is left can have needed one of this unit before it: if there is an
    /// order at all, there is one in which this pod, if it may be last, is last.
    pub(crate) fn is_of_no_use(&self, unit: usize) -> bool {
        let mut counted = self.knot.units[unit].touches.iter().filter(|t| t.counts());
        counted.all(|touch| {
            let slot = &self.knot.slots[touch.slot];
            let own = u64::from(touch.needs);
            match self.knot.laws[slot.law] {
                Law::Spread { floor: Some(_), .. } => true,
                Law::Spread { floor: None, .. } => {
                    // Some other domain is the emptiest one to the end.
                    let never_lowest = slot.base >= self.floors[slot.law];
                    !slot.in_floor || never_lowest || self.bound[slot.law] == own
                }
                Law::Affinity => slot.base > 0 || self.waiting[touch.slot] == own,
            }
        })
    }

    /// How much worse the others are off without one pod of a unit: 0 when not at all.
    pub(crate) fn harm(&self, unit: usize) -> u32 {
        let counted = self.knot.units[unit].touches.iter().filter(|t| t.counts());
        let harms = counted.map(|touch| {
            let slot = &self.knot.slots[touch.slot];
            let own = u64::from(touch.needs);
            match self.knot.laws[slot.law] {
                Law::Spread { floor: Some(_), .. } => 0,
                Law::Spread { floor: None, .. } => {
                    let is_lowest = slot.in_floor && self.most[touch.slot] == self.floors[slot.law];
                    if is_lowest && self.bound[slot.law] > own {
                        1 + NO_ROOM * self.n_barred_without(touch)
                    } else {
                        0
                    }
                }
                Law::Affinity => {
                    let is_last = !touch.needs && self.givers[touch.slot] == 1;
                    LAST_GIVER * u32::from(is_last && self.waiting[touch.slot] > 0)
                }
            }
        });
        harms.sum()
    }

    /// Slots that get too full for the pods that need them when the emptiest one loses a pod.
    fn n_barred_without(&self, touch: &Touch) -> u32 {
        let law = self.knot.slots[touch.slot].law;
        let Law::Spread { max_skew, .. } = self.knot.laws[law] else {
            return 0;
        };
        let full = self.floors[law].saturating_add(max_skew);
        let slots = self.knot.slots.iter();
        let start = self.knot.slots.partition_point(|slot| slot.law < law);
        let own = slots.skip(start).take_while(|slot| slot.law == law);
        let barred = (start..start + own.take(COMPARED_MAX).count())
            .filter(|slot| *slot != touch.slot && self.waiting[*slot] > 0)
            .filter(|slot| self.least[*slot] == full);
        barred.count() as u32
    }

    /// True when a pod of the unit, were it last, would be in a domain that is not too full for it
    /// as full as `least` says, with the emptiest domain as full as it ever gets.
    pub(crate) fn has_room(&self, unit: usize, least: &[u64]) -> bool {
        let mut needs = self.knot.units[unit].touches.iter().filter(|t| t.needs);
        needs.all(|touch| {
            let law = self.knot.slots[touch.slot].law;
            match self.knot.laws[law] {
                Law::Spread { max_skew, floor } => {
                    let lowest = floor.unwrap_or(self.floors[law]);
                    least[touch.slot] <= lowest.saturating_add(max_skew)
                }
                Law::Affinity => true,
            }
        })
    }

    /// By slot, what counts in every world.
    pub(crate) fn least(&self) -> &[u64] {
        &self.least
    }

    /// Takes all pods of a unit from such counts.
    pub(crate) fn without(&self, unit: usize, least: &mut [u64]) {
        let touches = self.knot.units[unit].touches.iter();
        for touch in touches.filter(|t| t.counted == Counted::Surely) {
            least[touch.slot] -= u64::from(self.left[unit]);
        }
    }

    /// The law that keeps a pod of the unit from being last.
    pub(crate) fn law_against(&self, unit: usize) -> Option<usize> {
        let mut needs = self.knot.units[unit].touches.iter().filter(|t| t.needs);
        let unmet = needs.find(|touch| !self.serves(touch));
        unmet.map(|touch| self.knot.slots[touch.slot].law)
    }

    /// The first law that a pod of the unit is under.
    pub(crate) fn law_of(&self, unit: usize) -> Option<usize> {
        let mut needs = self.knot.units[unit].touches.iter().filter(|t| t.needs);
        needs.next().map(|touch| self.knot.slots[touch.slot].law)
    }
}

/// Worse than the fall of a floor: that it bars pods which were not barred before.
const NO_ROOM: u32 = 1 << 8;
/// Worse still: pods that need the last giver have to do without it.
const LAST_GIVER: u32 = 1 << 16;
/// The most slots that are looked at to tell the harm of one step.
const COMPARED_MAX: usize = 64;
