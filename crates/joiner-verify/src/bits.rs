//! Fixed sets of small numbers.

use std::ops::Range;

/// A set of numbers below a bound that both sides of an operation share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// The empty set of numbers below `n`.
    pub(crate) fn none(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)])
    }

    /// All numbers below `n`.
    pub(crate) fn all(n: usize) -> Self {
        let mut all = Self::none(n);
        all.insert_range(0..n);
        all
    }

    pub(crate) fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(crate) fn insert_range(&mut self, range: Range<usize>) {
        for (word, mask) in words(range) {
            self.0[word] |= mask;
        }
    }

    pub(crate) fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Keeps what `other` has too.
    pub(crate) fn keep(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine &= theirs;
        }
    }

    /// Adds what `other` has.
    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The smallest number here that `other` lacks.
    pub(crate) fn first_outside(&self, other: &Self) -> Option<usize> {
        let mut words = self.0.iter().zip(&other.0).enumerate();
        words.find_map(|(i, (a, b))| {
            let outside = a & !b;
            (outside != 0).then(|| i * 64 + outside.trailing_zeros() as usize)
        })
    }

    /// The numbers here that lie in `range`, ascending.
    pub(crate) fn iter_in(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        words(range).flat_map(|(word, mask)| {
            let mut rest = self.0[word] & mask;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                (rest != 0).then(|| {
                    rest &= rest - 1;
                    word * 64 + bit
                })
            })
        })
    }
}

/// The words that `range` touches, with the mask of its part of each.
fn words(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let end = if range.is_empty() {
        range.start / 64
    } else {
        range.end.div_ceil(64)
    };
    (range.start / 64..end).map(move |word| {
        let low = range.start.max(word * 64) - word * 64;
        let high = range.end.min((word + 1) * 64) - word * 64;
        (word, (u64::MAX >> (64 - (high - low))) << low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cross_words() {
        let mut set = Bits::none(200);
        set.insert_range(60..131);
        assert_eq!(
            set.iter_in(0..200).collect::<Vec<_>>(),
            (60..131).collect::<Vec<_>>()
        );
        assert_eq!(set.iter_in(130..200).collect::<Vec<_>>(), [130]);
        assert_eq!(set.iter_in(64..64).count(), 0);
        assert_eq!(Bits::all(64).iter_in(0..64).count(), 64);
        assert_eq!(Bits::all(200).first_outside(&set), Some(0));
        assert_eq!(set.first_outside(&Bits::all(200)), None);
    }
}
