//! Where spot prices come from when nobody has asked the market: a model, not market data.
//!
//! The price of a type in a zone is its on-demand price times a fraction between 0.28 and 0.55.
//! The fraction follows from a hash (64-bit FNV-1a) of `type/zone` alone, so that it is the same on
//! every machine and in every version, differs between zones as real prices do, and never changes
//! while a plan is compared with another. It says nothing about what the market asks today.

use joiner_model::NanoDollars;

/// The smallest fraction of the on-demand price, in hundredths of a percent.
pub const SHARE_MIN: u64 = 2800;
/// The largest fraction of the on-demand price, in hundredths of a percent.
pub const SHARE_MAX: u64 = 5500;

/// Prices are rounded to this many nano-dollars: 0.00001 dollars.
const STEP: u64 = 10_000;

/// The fraction of the on-demand price that the model asks, in hundredths of a percent.
#[must_use]
pub fn share(type_name: &str, zone: &str) -> u64 {
    let bytes = type_name.bytes().chain([b'/']).chain(zone.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    SHARE_MIN + hash % (SHARE_MAX - SHARE_MIN + 1)
}

/// The spot price an hour that the model asks, to the nearest 0.00001 dollars.
#[must_use]
pub fn price(on_demand: NanoDollars, type_name: &str, zone: &str) -> NanoDollars {
    let exact = on_demand.get().saturating_mul(share(type_name, zone));
    let steps = exact.saturating_add(STEP * 10_000 / 2) / (STEP * 10_000);
    NanoDollars::new(steps * STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_has_the_same_answer_forever() {
        let price = |zone| price(NanoDollars::new(192_000_000), "m5.xlarge", zone).get();
        assert_eq!(price("us-east-1a"), 101_590_000);
        assert_eq!(price("us-east-1b"), 92_930_000);
    }

    #[test]
    fn prices_have_five_decimals() {
        let price = price(NanoDollars::new(4_200_000), "t4g.nano", "us-east-1a");
        assert_eq!(price.get() % STEP, 0);
        assert!(price > NanoDollars::ZERO);
    }
}
