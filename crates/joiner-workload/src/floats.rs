//! Floats to whole numbers, as programs on amd64 do it: what does not fit becomes the least number there
//! is. Figures of upstream that overflow are equal to ours because of this.

/// To 64 bits, fractions cut off.
#[must_use]
pub(crate) fn to_i64(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) {
        float as i64
    } else {
        i64::MIN
    }
}

/// To 32 bits, fractions cut off.
#[must_use]
pub(crate) fn to_i32(float: f64) -> i32 {
    const LIMIT: f64 = 2_147_483_648.0;
    if float > -LIMIT - 1.0 && float < LIMIT {
        float as i32
    } else {
        i32::MIN
    }
}

/// Rounded up to 32 bits; more than that is the most there is.
#[must_use]
pub(crate) fn ceil_at_most(float: f64) -> i32 {
    let ceil = float.ceil();
    if ceil > f64::from(i32::MAX) {
        i32::MAX
    } else {
        to_i32(ceil)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_least_number() {
        assert_eq!((to_i64(1.9), to_i64(-1.9)), (1, -1));
        assert_eq!((to_i64(f64::NAN), to_i64(1e30)), (i64::MIN, i64::MIN));
        assert_eq!((to_i32(2_147_483_647.5), to_i32(3e9)), (i32::MAX, i32::MIN));
        assert_eq!((ceil_at_most(1.1), ceil_at_most(3e9)), (2, i32::MAX));
    }
}
