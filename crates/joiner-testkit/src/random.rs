//! Chance from a seed: the same on every machine, today and next year.

/// A seed for this purpose: always the same, unless `JOINER_SEED` asks for others.
#[must_use]
pub fn seed(purpose: &str) -> String {
    match std::env::var_os("JOINER_SEED") {
        Some(more) => format!("{purpose} {}", more.display()),
        None => purpose.to_owned(),
    }
}

/// A stream of numbers (splitmix64) that depends on nothing but its seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A stream for this purpose: different texts give unrelated streams.
    #[must_use]
    pub fn new(purpose: &str) -> Self {
        // FNV-1a, then the generator's own mixing.
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let state = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        Self { state }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, all equally likely; 0 when `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(limit);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of the choices.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Several of the choices, each at most once, in the order drawn.
    pub fn sample<'c, T>(&mut self, choices: &'c [T], count: usize) -> Vec<&'c T> {
        let mut left: Vec<&T> = choices.iter().collect();
        let count = count.min(left.len());
        (0..count)
            .map(|_| left.swap_remove(self.index(left.len())))
            .collect()
    }

    /// A number from 1 on, where `n` or more comes up once in `n` times: mostly small, sometimes
    /// huge.
    pub fn heavy_tailed(&mut self) -> u64 {
        (1 << 32) / (1 + (self.bits() >> 32))
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_the_seed_alone() {
        let draw = |purpose: &str| -> Vec<u64> {
            let mut random = Random::new(purpose);
            (0..5).map(|_| random.below(1000)).collect()
        };
        assert_eq!(draw("one"), draw("one"));
        assert_ne!(draw("one"), draw("two"));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new("range");
        assert_eq!(random.below(0), 0);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(3, 5)).collect();
        assert!([3, 4, 5].iter().all(|n| drawn.contains(n)));
        assert!(drawn.iter().all(|n| (3..=5).contains(n)));
        assert!((0..1000).all(|_| random.heavy_tailed() >= 1));
        let sample = random.sample(&[1, 2, 3], 5);
        assert_eq!(sample.len(), 3);
    }
}
