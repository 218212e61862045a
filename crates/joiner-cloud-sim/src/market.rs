//! What the cloud answers at this moment: who may call, what is sold out, what it costs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use joiner_cluster::Digest;
use joiner_model::{InstanceType, Labels, Name, Offering, keys};

use crate::delays::share;
use crate::faults::Faults;

/// How long an offering that turned out to be sold out is not tried again.
const SOLD_OUT_FOR: SignedDuration = SignedDuration::from_secs(180);

/// Instance type, zone and capacity type.
type OfferingKey = (Name, Name, Name);

/// Why a call got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFault {
    /// Too many calls.
    Throttled,
    /// It failed, as calls do.
    Failed,
}

/// What a cloud remembers between calls. Losing it in a crash costs nothing but a refused launch.
#[derive(Debug, Default)]
pub(crate) struct Market {
    sold_out: BTreeMap<OfferingKey, Timestamp>,
    /// Thousandths of calls that may still be made, and as of when.
    bucket: Option<(u64, Timestamp)>,
    n_calls: u64,
}

fn key(instance_type: &Name, labels: &Labels) -> OfferingKey {
    let label = |key: &str| labels.get(key).cloned().unwrap_or_else(|| Name::from(""));
    (
        instance_type.clone(),
        label(keys::ZONE),
        label(keys::CAPACITY_TYPE),
    )
}

impl Market {
    /// Counts a call, which may fail.
    pub(crate) fn call(
        &mut self,
        faults: &Faults,
        seed: u64,
        now: Timestamp,
    ) -> Result<(), CallFault> {
        self.n_calls += 1;
        if let Some(throttle) = faults.throttle {
            let full = u64::from(throttle.burst) * 1000;
            let (left, since) = self.bucket.unwrap_or((full, now));
            let millis = u64::try_from(now.duration_since(since).as_millis()).unwrap_or(0);
            let back = millis.saturating_mul(u64::from(throttle.calls_per_second));
            let tokens = left.saturating_add(back).min(full);
            self.bucket = Some((tokens.saturating_sub(1000), now));
            if tokens < 1000 {
                // A refused call takes nothing.
                self.bucket = Some((tokens, now));
                return Err(CallFault::Throttled);
            }
        }
        let draw = Digest::default().number(seed).number(self.n_calls).finish();
        if share(draw) * 100.0 < faults.error_percent {
            return Err(CallFault::Failed);
        }
        Ok(())
    }

    /// Remembers that an offering could not be had.
    pub(crate) fn mark(&mut self, instance_type: &Name, labels: &Labels, now: Timestamp) {
        let until = now.checked_add(SOLD_OUT_FOR).unwrap_or(Timestamp::MAX);
        self.sold_out.retain(|_, until| *until > now);
        self.sold_out.insert(key(instance_type, labels), until);
    }

    /// Offerings that are known to be sold out.
    pub(crate) fn sold_out(&self, now: Timestamp) -> BTreeSet<OfferingKey> {
        let known = self.sold_out.iter().filter(|(_, until)| **until > now);
        known.map(|(key, _)| key.clone()).collect()
    }
}

/// All that makes today's catalog differ from the listed one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Today {
    /// Offerings that are known to be sold out.
    pub(crate) sold_out: BTreeSet<OfferingKey>,
    /// Changes of prices that hold now.
    pub(crate) prices: Vec<crate::faults::PriceChange>,
    /// How many machines run in each reservation.
    pub(crate) reserved: BTreeMap<Name, u32>,
}

impl Today {
    /// True when the listed catalog holds.
    pub(crate) fn is_as_listed(&self) -> bool {
        self.sold_out.is_empty() && self.prices.is_empty() && self.reserved.is_empty()
    }

    /// The catalog as it is today.
    pub(crate) fn apply(&self, listed: &[InstanceType], now: Timestamp) -> Vec<InstanceType> {
        let faults = Faults {
            prices: self.prices.clone(),
            ..Faults::default()
        };
        let mut types = listed.to_vec();
        for ty in &mut types {
            for offering in &mut ty.offerings {
                offering.price = faults.price(&ty.name, &offering.labels, offering.price, now);
                offering.available &= !self.sold_out.contains(&key(&ty.name, &offering.labels));
                self.reserve(offering);
            }
        }
        types
    }

    fn reserve(&self, offering: &mut Offering) {
        let Some((id, count)) = &mut offering.reservation else {
            return;
        };
        let used = self.reserved.get(id).copied().unwrap_or(0);
        *count = count.saturating_sub(used);
        offering.available &= *count > 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Throttle;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn the_bucket_fills_again() {
        let faults = Faults {
            throttle: Some(Throttle {
                calls_per_second: 2,
                burst: 3,
            }),
            ..Faults::default()
        };
        let mut market = Market::default();
        let mut call = |millis| market.call(&faults, 0, at(millis));
        for _ in 0..3 {
            assert_eq!(call(0), Ok(()));
        }
        assert_eq!(call(0), Err(CallFault::Throttled));
        assert_eq!(call(499), Err(CallFault::Throttled));
        assert_eq!(call(500), Ok(()));
        assert_eq!(call(501), Err(CallFault::Throttled));
        assert_eq!(call(60_000), Ok(()));
    }

    #[test]
    fn as_many_calls_fail_as_was_asked() {
        let faults = Faults {
            error_percent: 30.0,
            ..Faults::default()
        };
        let failed = |seed| {
            let mut market = Market::default();
            let calls = (0..1000).map(|_| market.call(&faults, seed, at(0)));
            calls.map(|call| call.is_err()).collect::<Vec<_>>()
        };
        let n_failed = failed(1).iter().filter(|failed| **failed).count();
        assert!((260..340).contains(&n_failed), "{n_failed}");
        assert_eq!(failed(1), failed(1));
        assert_ne!(failed(1), failed(2));
    }

    #[test]
    fn what_is_sold_out_is_forgotten_after_three_minutes() {
        let types = joiner_catalog::kwok_generic();
        let mut market = Market::default();
        let labels = &types[0].offerings[1].labels;
        market.mark(&types[0].name, labels, at(0));
        for (millis, available) in [(0, false), (179_999, false), (180_000, true)] {
            let today = Today {
                sold_out: market.sold_out(at(millis)),
                ..Today::default()
            };
            let seen = today.apply(&types, at(millis));
            assert_eq!(seen[0].offerings[1].available, available, "{millis}");
            assert!(seen[0].offerings[0].available);
        }
    }

    #[test]
    fn reservations_run_out() {
        let mut types = joiner_catalog::kwok_generic();
        types.truncate(1);
        types[0].offerings[0].reservation = Some(("cr-1".into(), 2));
        for (used, left) in [(0, 2), (1, 1), (2, 0), (3, 0)] {
            let today = Today {
                reserved: BTreeMap::from([("cr-1".into(), used)]),
                ..Today::default()
            };
            let seen = &today.apply(&types, at(0))[0].offerings[0];
            assert_eq!(seen.reservation, Some(("cr-1".into(), left)));
            assert_eq!(seen.available, left > 0);
        }
    }
}
