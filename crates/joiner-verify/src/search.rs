//! Is there an order in which all pods of a knot may come?
//!
//! First whoever is of no use to the others leaves from the end: that loses no order. Then a proof
//! is tried that some pods are in each other's way in any order: with the emptiest domains as full
//! as they ever get, each of them would find its domain too full if it came last of them. Then pods
//! leave as seems best. Only when all that decides nothing, every order is tried, each set of pods
//! once. The work is counted in looks at a unit; what takes too many of them stays undecided.

use std::collections::HashSet;

use crate::crowd::{Crowd, Knot};

/// What was found out about a knot.
pub(crate) enum Verdict {
    /// There is an order.
    Order,
    /// There is none; a unit that is in the way, and a law that it would break.
    NoOrder { unit: usize, law: usize },
    /// Too much to try.
    Undecided,
}

/// The most pods that a guess compares before it takes the best of them.
const CHOICES_MAX: usize = 24;

/// Looks at units that may still be taken.
pub(crate) struct Steps(pub(crate) usize);

impl Steps {
    /// Takes some, or says that there are none left.
    fn take(&mut self, n: usize) -> Option<()> {
        self.0 = self.0.checked_sub(n)?;
        Some(())
    }
}

/// Looks for an order of all pods of a knot.
pub(crate) fn search(knot: &Knot, steps: &mut Steps) -> Verdict {
    let all = knot.units.iter().map(|unit| unit.n).collect();
    let mut crowd = Crowd::new(knot, all);
    decide(&mut crowd, knot, steps).unwrap_or(Verdict::Undecided)
}

fn decide<'k>(crowd: &mut Crowd<'k>, knot: &'k Knot, steps: &mut Steps) -> Option<Verdict> {
    settle(crowd, steps)?;
    if crowd.is_empty() {
        return Some(Verdict::Order);
    }
    let named = |law: Option<usize>, unit| law.map(|law| Verdict::NoOrder { unit, law });
    if let Some(unit) = in_the_way(crowd, steps)? {
        return named(crowd.law_against(unit), unit);
    }
    if guess(crowd.clone(), steps)? || try_all(crowd, knot, steps)? {
        return Some(Verdict::Order);
    }
    let mut units = (0..knot.units.len()).filter(|unit| crowd.left()[*unit] > 0);
    let barred = units.clone();
    let mut barred = barred.filter_map(|unit| named(crowd.law_against(unit), unit));
    let found = barred.next();
    found.or_else(|| units.find_map(|unit| named(crowd.law_of(unit), unit)))
}

/// Lets pods leave that may be last and are of no use, until there are none.
fn settle(crowd: &mut Crowd<'_>, steps: &mut Steps) -> Option<()> {
    loop {
        let mut moved = false;
        for unit in 0..crowd.left().len() {
            while crowd.left()[unit] > 0 && crowd.may_be_last(unit) && crowd.is_of_no_use(unit) {
                steps.take(1)?;
                crowd.leave(unit);
                moved = true;
            }
        }
        steps.take(crowd.left().len())?;
        if !moved {
            return Some(());
        }
    }
}

/// A unit among some that have no order whatever the rest does, if that can be told at a glance.
fn in_the_way(crowd: &Crowd<'_>, steps: &mut Steps) -> Option<Option<usize>> {
    let mut least = crowd.least().to_vec();
    let mut there: Vec<usize> = (0..crowd.left().len()).collect();
    there.retain(|unit| crowd.left()[*unit] > 0);
    loop {
        let before = there.len();
        steps.take(before)?;
        there.retain(|unit| {
            let leaves = crowd.has_room(*unit, &least);
            if leaves {
                crowd.without(*unit, &mut least);
            }
            !leaves
        });
        if there.len() == before {
            return Some(there.first().copied());
        }
    }
}

/// Lets pods leave as seems best; true when all of them did.
fn guess(mut crowd: Crowd<'_>, steps: &mut Steps) -> Option<bool> {
    let n_units = crowd.left().len();
    let mut next = 0;
    while !crowd.is_empty() {
        let mut best: Option<(u32, std::cmp::Reverse<u32>, usize)> = None;
        let mut n_choices = 0;
        for unit in (next..n_units).chain(0..next) {
            steps.take(1)?;
            let left = crowd.left()[unit];
            if left == 0 || !crowd.may_be_last(unit) {
                continue;
            }
            let this = (crowd.harm(unit), std::cmp::Reverse(left), unit);
            best = Some(best.map_or(this, |best| best.min(this)));
            n_choices += 1;
            if this.0 == 0 || n_choices == CHOICES_MAX {
                break;
            }
        }
        let Some((_, _, unit)) = best else {
            return Some(false);
        };
        crowd.leave(unit);
        next = unit;
    }
    Some(true)
}

/// Tries every order; true when one lets all pods come.
fn try_all<'k>(root: &Crowd<'k>, knot: &'k Knot, steps: &mut Steps) -> Option<bool> {
    let mut seen: HashSet<Vec<u32>> = HashSet::new();
    let mut crowds: Vec<Vec<u32>> = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    push(root, &mut crowds, &mut open, steps)?;
    while let Some((from, unit)) = open.pop() {
        let mut crowd = Crowd::new(knot, crowds[from].clone());
        crowd.leave(unit);
        settle(&mut crowd, steps)?;
        if crowd.is_empty() {
            return Some(true);
        }
        if seen.insert(crowd.left().to_vec()) && in_the_way(&crowd, steps)?.is_none() {
            push(&crowd, &mut crowds, &mut open, steps)?;
        }
    }
    Some(false)
}

/// Notes who could be last, the least harmful one to be tried first.
fn push(
    crowd: &Crowd<'_>,
    crowds: &mut Vec<Vec<u32>>,
    open: &mut Vec<(usize, usize)>,
    steps: &mut Steps,
) -> Option<()> {
    steps.take(crowd.left().len())?;
    let mut last: Vec<(u32, std::cmp::Reverse<u32>, usize)> = Vec::new();
    for (unit, left) in crowd.left().iter().enumerate() {
        if *left > 0 && crowd.may_be_last(unit) {
            last.push((crowd.harm(unit), std::cmp::Reverse(*left), unit));
        }
    }
    last.sort_unstable();
    let from = crowds.len();
    crowds.push(crowd.left().to_vec());
    open.extend(last.iter().rev().map(|(_, _, unit)| (from, *unit)));
    Some(())
}
