//! What the cloud answers at this moment: who may call, what is sold out, what it costs.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud::{OfferingKey, SoldOut};
use joiner_cluster::Digest;
use joiner_model::{InstanceType, Name, Offering};

use crate::delays::share;
use crate::faults::Faults;

/// How long an offering that turned out to be sold out is not tried again.
const SOLD_OUT_FOR: Duration = Duration::from_secs(180);

/// Why a call got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFault {
    /// Too many calls.
    Throttled,
    /// It failed, as calls do.
    Failed,
}

/// What a cloud remembers between calls. Losing it in a crash costs nothing but a refused launch.
#[derive(Debug)]
pub(crate) struct Market {
    /// What was refused.
    pub(crate) sold_out: SoldOut,
    /// Thousandths of calls that may still be made, and as of when.
    bucket: Option<(u64, Timestamp)>,
    n_calls: u64,
}

impl Default for Market {
    fn default() -> Self {
        Self {
            sold_out: SoldOut::new(SOLD_OUT_FOR),
            bucket: None,
            n_calls: 0,
        }
    }
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
}

/// All that makes today's catalog differ from the listed one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Today {
    /// Sequence of what is known to be sold out, if anything is.
    pub(crate) sold_out: Option<u64>,
    /// Changes of prices that hold now.
    pub(crate) prices: Vec<crate::faults::PriceChange>,
    /// How many machines run in each reservation.
    pub(crate) reserved: BTreeMap<Name, u32>,
}

impl Today {
    /// True when the listed catalog holds.
    pub(crate) fn is_as_listed(&self) -> bool {
        self.sold_out.is_none() && self.prices.is_empty() && self.reserved.is_empty()
    }

    /// The catalog as it is today.
    pub(crate) fn apply(
        &self,
        listed: &[InstanceType],
        sold_out: &SoldOut,
        now: Timestamp,
    ) -> Vec<InstanceType> {
        let faults = Faults {
            prices: self.prices.clone(),
            ..Faults::default()
        };
        let mut types = listed.to_vec();
        for ty in &mut types {
            for offering in &mut ty.offerings {
                offering.price = faults.price(&ty.name, &offering.labels, offering.price, now);
                let key = OfferingKey::of(&ty.name, &offering.labels);
                offering.available &= !sold_out.is_sold_out(&key, None, now);
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
    use joiner_cloud::SoldOutScope;

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
        let mut sold_out = Market::default().sold_out;
        let key = OfferingKey::of(&types[0].name, &types[0].offerings[1].labels);
        sold_out.mark(SoldOutScope::Offering(key), at(0));
        for (millis, available) in [(0, false), (179_999, false), (180_000, true)] {
            let today = Today {
                sold_out: Some(sold_out.sequence(at(millis))),
                ..Today::default()
            };
            let seen = today.apply(&types, &sold_out, at(millis));
            assert_eq!(seen[0].offerings[1].available, available, "{millis}");
            assert!(seen[0].offerings[0].available);
        }
    }

    #[test]
    fn reservations_run_out() {
        let mut types = joiner_catalog::kwok_generic();
        types.truncate(1);
        types[0].offerings[0].reservation = Some(("cr-1".into(), 2));
        let sold_out = Market::default().sold_out;
        for (used, left) in [(0, 2), (1, 1), (2, 0), (3, 0)] {
            let today = Today {
                reserved: BTreeMap::from([("cr-1".into(), used)]),
                ..Today::default()
            };
            let seen = &today.apply(&types, &sold_out, at(0))[0].offerings[0];
            assert_eq!(seen.reservation, Some(("cr-1".into(), left)));
            assert_eq!(seen.available, left > 0);
        }
    }
}
