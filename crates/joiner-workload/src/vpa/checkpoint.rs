//! What is known of containers, as upstream's checkpoints have it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::aggregate::Aggregate;
use super::histogram::{Histogram, N_BUCKETS};
use super::settings::Settings;
use crate::part::{FieldError, Part};

/// The format that is read and written.
const VERSION: &str = "v3";
/// What the heaviest bucket weighs there.
const WEIGHT_MAX: f64 = 10_000.0;

impl Aggregate {
    /// The status of a checkpoint.
    #[must_use]
    pub fn to_checkpoint(&self, now: Timestamp) -> Value {
        json!({
            "lastUpdateTime": seconds(Some(now)),
            "version": VERSION,
            "cpuHistogram": self.cpu.to_checkpoint(),
            "memoryHistogram": self.memory.to_checkpoint(),
            "firstSampleStart": seconds(self.first),
            "lastSampleStart": seconds(self.last),
            "totalSamplesCount": self.n_samples,
        })
    }

    /// Reads the status of a checkpoint.
    ///
    /// # Errors
    /// The field that cannot be read.
    pub fn of_checkpoint(
        status: &Value,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Self, FieldError> {
        let top = Part::top(status);
        let version = top.field("version");
        if version.text()? != Some(VERSION) {
            return Err(version.not("v3"));
        }
        let mut aggregate = Self::new(settings, now);
        aggregate.n_samples = top.field("totalSamplesCount").int64()?.unwrap_or(0);
        aggregate.first = top.field("firstSampleStart").time()?;
        aggregate.last = top.field("lastSampleStart").time()?;
        aggregate.memory.load(&top.field("memoryHistogram"))?;
        aggregate.cpu.load(&top.field("cpuHistogram"))?;
        Ok(aggregate)
    }
}

/// A time as the API has it, without fractions of a second.
fn seconds(time: Option<Timestamp>) -> Value {
    let seconds = time.map(|time| time.as_nanosecond().div_euclid(1_000_000_000));
    let whole = seconds.and_then(|seconds| Timestamp::from_second(seconds as i64).ok());
    whole.map_or(Value::Null, |time| json!(time.to_string()))
}

impl Histogram {
    /// As a checkpoint has it: weights as shares of the heaviest.
    pub(super) fn to_checkpoint(&self) -> Value {
        let weights = &self.weights[self.least.min(self.most)..=self.most];
        let heaviest = weights.iter().copied().fold(0.0, f64::max);
        let mut buckets = Map::new();
        for bucket in self.least..=self.most {
            let weight = self.weights[bucket] * (WEIGHT_MAX / heaviest) + 0.5;
            if weight >= 1.0 {
                buckets.insert(bucket.to_string(), json!(weight as u32));
            }
        }
        let mut map = Map::new();
        map.insert("referenceTimestamp".to_owned(), seconds(self.reference));
        if !buckets.is_empty() {
            map.insert("bucketWeights".to_owned(), Value::Object(buckets));
        }
        if self.total != 0.0 {
            map.insert("totalWeight".to_owned(), json!(self.total));
        }
        Value::Object(map)
    }

    fn load(&mut self, part: &Part<'_>) -> Result<(), FieldError> {
        if !part.value().is_object() {
            return Err(part.missing());
        }
        let total = part.field("totalWeight");
        let weight = total.float()?.unwrap_or(0.0);
        if weight < 0.0 {
            return Err(total.not("a number that is not negative"));
        }
        let field = part.field("bucketWeights");
        let mut buckets = Vec::new();
        for (name, value) in field.entries()? {
            let bucket = name
                .parse::<usize>()
                .ok()
                .filter(|bucket| *bucket < N_BUCKETS);
            let bucket = bucket.ok_or_else(|| {
                field.error(format!(
                    "{name:?} is no bucket; they go from 0 to {}",
                    N_BUCKETS - 1
                ))
            })?;
            let share = value.int64()?.unwrap_or(0);
            if !(0..=i64::from(u32::MAX)).contains(&share) {
                return Err(value.not("a weight of 32 bits"));
            }
            buckets.push((bucket, share));
        }
        buckets.sort_unstable();
        let sum: i64 = buckets.iter().map(|(_, share)| share).sum();
        if sum > 0 {
            let ratio = weight / sum as f64;
            for (bucket, share) in buckets {
                self.weights[bucket] += share as f64 * ratio;
                self.least = self.least.min(bucket);
                self.most = self.most.max(bucket);
            }
            self.total += weight;
            self.trim();
        }
        self.reference = part.field("referenceTimestamp").time()?;
        Ok(())
    }
}
