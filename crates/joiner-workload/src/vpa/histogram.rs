//! Decaying histograms: what was used, where newer samples weigh more.
//!
//! Weights are relative to a reference time: a sample that is one half-life younger than it weighs twice.
//! When samples get far away from it, it moves, and all weights with it.

use jiff::{SignedDuration, Timestamp};

use super::amounts::Resource;

/// How much larger each bucket is than the one below it.
const RATIO: f64 = 1.05;
/// Buckets of a histogram.
pub const N_BUCKETS: usize = 176;
/// Less than this is nothing.
pub(crate) const EPSILON: f64 = 0.001 * 0.1;
/// Half-lives that a sample may be younger than the reference time.
const DISTANCE_MAX: i128 = 100;
/// From the beginning of the first year to the epoch, of which multiples are counted.
const SECONDS_BEFORE_EPOCH: i128 = 62_135_596_800;
const NANOS: i128 = 1_000_000_000;

/// How much was used how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    resource: Resource,
    half_life: SignedDuration,
    pub(super) reference: Option<Timestamp>,
    pub(super) weights: Vec<f64>,
    pub(super) total: f64,
    /// The first bucket that is not empty; the last one of an empty histogram.
    pub(super) least: usize,
    /// The last bucket that is not empty; the first one of an empty histogram.
    pub(super) most: usize,
}

impl Histogram {
    /// An empty one: of cores, or of bytes.
    #[must_use]
    pub fn new(resource: Resource, half_life: SignedDuration) -> Self {
        Self {
            resource,
            half_life,
            reference: None,
            weights: vec![0.0; N_BUCKETS],
            total: 0.0,
            least: N_BUCKETS - 1,
            most: 0,
        }
    }

    /// Where a bucket begins.
    pub(super) fn start(&self, bucket: usize) -> f64 {
        if bucket == 0 {
            return 0.0;
        }
        self.first() * (power(bucket) - 1.0) / (RATIO - 1.0)
    }

    /// The size of the first bucket: a hundredth of a core, ten megabytes.
    const fn first(&self) -> f64 {
        match self.resource {
            Resource::Cpu => 0.01,
            Resource::Memory => 1e7,
        }
    }

    /// The bucket of a value.
    pub(super) fn bucket(&self, value: f64) -> usize {
        if value < self.first() {
            return 0;
        }
        let exponent = (value * (RATIO - 1.0) / self.first() + 1.0).ln() / RATIO.ln();
        (exponent as usize).min(N_BUCKETS - 1)
    }

    /// Adds a sample.
    pub fn add(&mut self, value: f64, weight: f64, time: Timestamp) {
        let weight = weight * self.factor(time);
        let bucket = self.bucket(value);
        self.weights[bucket] += weight;
        self.total += weight;
        if self.weights[bucket] >= EPSILON {
            self.least = self.least.min(bucket);
            self.most = self.most.max(bucket);
        }
    }

    /// Takes a sample out again.
    pub fn subtract(&mut self, value: f64, weight: f64, time: Timestamp) {
        let weight = weight * self.factor(time);
        let bucket = self.bucket(value);
        self.total = less(self.total, weight);
        self.weights[bucket] = less(self.weights[bucket], weight);
        self.trim();
    }

    /// Adds all samples of another one. Both are brought to the younger reference time.
    pub fn merge(&mut self, other: &mut Self) {
        if self.reference < other.reference {
            if let Some(time) = other.reference {
                self.shift(time);
            }
        } else if other.reference < self.reference
            && let Some(time) = self.reference
        {
            other.shift(time);
        }
        for bucket in other.least..=other.most {
            self.weights[bucket] += other.weights[bucket];
        }
        self.total += other.total;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.weights[self.least] < EPSILON
    }

    /// The end of the bucket below which this share of the weight is; nothing of an empty one.
    #[must_use]
    pub fn percentile(&self, share: f64) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let threshold = share * self.total;
        let (mut sum, mut bucket) = (0.0, self.least);
        while bucket < self.most {
            sum += self.weights[bucket];
            if sum >= threshold {
                break;
            }
            bucket += 1;
        }
        // The last bucket has no end.
        self.start((bucket + 1).min(N_BUCKETS - 1))
    }

    /// What a sample of this time weighs.
    fn factor(&mut self, time: Timestamp) -> f64 {
        let far = self.reference.is_none_or(|reference| {
            let distance = time.as_nanosecond() - reference.as_nanosecond();
            distance > DISTANCE_MAX * self.half_life.as_nanos()
        });
        if far {
            self.shift(time);
        }
        let reference = self.reference.unwrap_or(time);
        let distance = time.as_nanosecond() - reference.as_nanosecond();
        (distance as f64 / self.half_life.as_nanos() as f64).exp2()
    }

    /// Moves the reference time, to a multiple of the half-life.
    fn shift(&mut self, time: Timestamp) {
        let half_life = self.half_life.as_nanos();
        let rounded = rounded(time, half_life);
        let factor = match self.reference {
            Some(old) => {
                let distance = old.as_nanosecond() - rounded.as_nanosecond();
                (distance as f64 / half_life as f64).round().exp2()
            }
            None => 0.0,
        };
        for weight in &mut self.weights {
            *weight *= factor;
        }
        self.total *= factor;
        self.reference = Some(rounded);
        self.trim();
    }

    /// Leaves out empty buckets at both ends.
    pub(super) fn trim(&mut self) {
        while self.weights[self.least] < EPSILON && self.least < N_BUCKETS - 1 {
            self.least += 1;
        }
        while self.weights[self.most] < EPSILON && self.most > 0 {
            self.most -= 1;
        }
    }
}

/// What is left; less than can be told from nothing is nothing.
fn less(weight: f64, taken: f64) -> f64 {
    let left = weight - taken;
    if left < EPSILON { 0.0 } else { left }
}

/// To the nearest multiple since the beginning of the first year.
fn rounded(time: Timestamp, unit: i128) -> Timestamp {
    let since = time.as_nanosecond() + SECONDS_BEFORE_EPOCH * NANOS;
    let rest = since.rem_euclid(unit);
    let nearest = if rest + rest < unit {
        since - rest
    } else {
        since + unit - rest
    };
    let nanos = nearest - SECONDS_BEFORE_EPOCH * NANOS;
    Timestamp::from_nanosecond(nanos).unwrap_or(time)
}

/// The ratio to the power of a bucket's number, by squaring a fraction between a half and one and keeping
/// its exponent aside: other ways to multiply round otherwise.
fn power(number: usize) -> f64 {
    let (mut factor, mut exponent) = (RATIO / 2.0, 1);
    let (mut product, mut product_exponent) = (1.0, 0);
    let mut rest = number;
    while rest > 0 {
        if rest % 2 == 1 {
            product *= factor;
            product_exponent += exponent;
        }
        factor *= factor;
        exponent *= 2;
        if factor < 0.5 {
            factor += factor;
            exponent -= 1;
        }
        rest /= 2;
    }
    product * 2.0_f64.powi(product_exponent)
}
