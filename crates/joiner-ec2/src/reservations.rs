//! Capacity reservations: which ones a class selects, and how much is left of each.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use joiner_api::types::{
    CapacityReservation, CapacityReservationTerm, MatchCriteria, ReservationState, ReservationType,
};

use crate::answer;
use crate::request::{Filter, Query};
use crate::selectors::tag_filters;

/// Reservations a page.
const PAGE: i32 = 1000;
/// For how long before its end a block takes no more machines, and gives up those it has.
const EXPIRES_BEFORE: SignedDuration = SignedDuration::from_mins(40);

/// The questions about reservations: one for each id, one for each other term.
#[must_use]
pub fn queries(terms: &[CapacityReservationTerm]) -> Vec<Query> {
    let active = || Filter::new("state", ["active"]);
    let query = |term: &CapacityReservationTerm| {
        if let Some(id) = &term.id {
            return Query {
                filters: vec![active()],
                capacity_reservation_ids: vec![id.clone()],
                ..Query::default()
            };
        }
        let mut filters = term.tags.as_ref().map(tag_filters).unwrap_or_default();
        if let Some(owner) = &term.owner_id {
            filters.push(Filter::new("owner-id", [owner.as_str()]));
        }
        if let Some(criteria) = term.instance_match_criteria {
            filters.push(Filter::new("instance-match-criteria", [criteria.as_str()]));
        }
        filters.push(active());
        Query {
            filters,
            max_results: Some(PAGE),
            ..Query::default()
        }
    };
    terms.iter().map(query).collect()
}

/// What the answers come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The reservations of a class, by id.
    pub reservations: Vec<CapacityReservation>,
    /// How many machines each has room for.
    pub free: BTreeMap<String, u32>,
    /// What was passed over, and why.
    pub skipped: Vec<String>,
    /// When the first of them changes its state: to look again then.
    pub next_change: Option<Timestamp>,
}

/// The reservations of a class.
#[must_use]
pub fn found(answers: &[answer::CapacityReservation], now: Timestamp) -> Found {
    let mut found = Found::default();
    let by_id: BTreeMap<&str, &answer::CapacityReservation> = (answers.iter())
        .map(|reservation| (reservation.capacity_reservation_id.as_str(), reservation))
        .collect();
    for (id, reservation) in by_id {
        let end = reservation
            .end_date
            .as_deref()
            .and_then(|end| end.parse::<Timestamp>().ok());
        if end.is_some_and(|end| end <= now) {
            continue;
        }
        let (criteria, kind) = match (criteria(reservation), kind(reservation)) {
            (Ok(criteria), Ok(kind)) => (criteria, kind),
            (Err(why), _) | (_, Err(why)) => {
                found
                    .skipped
                    .push(format!("capacity reservation {id}: {why}"));
                continue;
            }
        };
        let is_block = kind == ReservationType::CapacityBlock;
        let expires = end.filter(|_| is_block).map(|end| end - EXPIRES_BEFORE);
        let state = match expires.is_some_and(|at| at <= now) {
            true => ReservationState::Expiring,
            false => ReservationState::Active,
        };
        let changes = [expires, end].into_iter().flatten().filter(|at| *at > now);
        found.next_change = found.next_change.into_iter().chain(changes).min();
        found
            .free
            .insert(id.to_owned(), reservation.available_instance_count);
        found.reservations.push(CapacityReservation {
            id: id.to_owned(),
            availability_zone: reservation.availability_zone.clone(),
            instance_type: reservation.instance_type.clone(),
            instance_match_criteria: criteria,
            owner_id: reservation.owner_id.clone(),
            reservation_type: Some(kind),
            interruptible: Some(reservation.interruptible.unwrap_or_default()),
            state: Some(state),
            end_time: end.map(|end| end.to_string()),
        });
    }
    found
}

fn criteria(reservation: &answer::CapacityReservation) -> Result<MatchCriteria, String> {
    let said = reservation.instance_match_criteria.as_str();
    let mut all = MatchCriteria::ALL.iter().copied();
    let found = all.find(|criteria| criteria.as_str() == said);
    found.ok_or_else(|| format!("instanceMatchCriteria {said:?} is not known"))
}

fn kind(reservation: &answer::CapacityReservation) -> Result<ReservationType, String> {
    let said = reservation.reservation_type.as_deref().unwrap_or("default");
    let mut all = ReservationType::ALL.iter().copied();
    let found = all.find(|kind| kind.as_str() == said);
    found.ok_or_else(|| format!("reservationType {said:?} is not known"))
}

/// How much is left of each reservation, between the answers of EC2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    counts: BTreeMap<String, u32>,
    /// Counts the answers of EC2: a launch that began before the last one is in it already.
    answers: u64,
}

impl Left {
    /// What EC2 says now.
    pub fn learn(&mut self, free: &BTreeMap<String, u32>) {
        self.counts
            .extend(free.iter().map(|(id, count)| (id.clone(), *count)));
        self.answers += 1;
    }

    /// How many machines a reservation has room for, as far as is known.
    #[must_use]
    pub fn of(&self, id: &str) -> u32 {
        self.counts.get(id).copied().unwrap_or_default()
    }

    /// To be remembered when a launch begins, see [`Self::launched`].
    #[must_use]
    pub const fn mark(&self) -> u64 {
        self.answers
    }

    /// A machine was launched into a reservation.
    pub fn launched(&mut self, id: &str, mark: u64) {
        if mark == self.answers
            && let Some(count) = self.counts.get_mut(id)
        {
            *count = count.saturating_sub(1);
        }
    }

    /// A machine in a reservation is gone for sure.
    pub fn terminated(&mut self, id: &str) {
        if let Some(count) = self.counts.get_mut(id) {
            *count = count.saturating_add(1);
        }
    }

    /// A reservation turned out to have nothing left, or is being taken back.
    pub fn used_up(&mut self, id: &str) {
        self.counts.insert(id.to_owned(), 0);
    }
}
