//! From measured and wanted figures to a number of replicas, one kind of target at a time.
//!
//! Sums are whole thousandths, ratios are floats, and the order of operations is upstream's: a ratio at
//! the edge of the tolerance must fall on the same side.

use std::collections::BTreeMap;

use super::pods::{Groups, Samples};
use crate::floats::{ceil_at_most, to_i32, to_i64};

/// How far from its target a metric may be without effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerances {
    pub(crate) up: f64,
    pub(crate) down: f64,
}

impl Tolerances {
    fn within(self, ratio: f64) -> bool {
        (1.0 - self.down) <= ratio && ratio <= (1.0 + self.up)
    }
}

/// What a metric asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// How many replicas.
    pub(crate) replicas: i32,
    /// Measured over wanted, as first computed.
    pub(crate) ratio: f64,
    /// Percent of the requests that are used.
    pub(crate) utilization: Option<i32>,
    /// The figure that was measured, in thousandths: per pod, per replica or in all.
    pub(crate) measured: i64,
}

/// Samples of pods with what else a calculation per pod needs.
pub(crate) struct PerPod<'a> {
    pub(crate) samples: Samples,
    pub(crate) groups: Groups,
    /// Replicas that were asked for.
    pub(crate) current: i32,
    pub(crate) tolerances: Tolerances,
    /// What the pods request; `None` where the target is an amount.
    pub(crate) requests: Option<&'a BTreeMap<String, i64>>,
    /// Percent of the requests, or an amount in thousandths.
    pub(crate) target: i64,
}

/// A ratio, the percentage that it came from, and the average per pod.
struct Ratio {
    ratio: f64,
    utilization: Option<i32>,
    average: i64,
}

impl PerPod<'_> {
    /// How many replicas bring the pods to the target. Samples of pods that do not count are gone
    /// already.
    pub(crate) fn answer(mut self) -> Result<Answer, String> {
        let first = self.ratio()?;
        let answer = |replicas| Answer {
            replicas,
            ratio: first.ratio,
            utilization: first.utilization,
            measured: first.average,
        };
        let up_with_unready = !self.groups.unready.is_empty() && first.ratio > 1.0;
        if !up_with_unready && self.groups.missing.is_empty() {
            if self.tolerances.within(first.ratio) {
                return Ok(answer(self.current));
            }
            let ready = self.groups.n_ready as f64;
            return Ok(answer(to_i32((first.ratio * ready).ceil())));
        }
        self.assume(first.ratio, up_with_unready);
        let second = self.ratio()?.ratio;
        let turned = (first.ratio < 1.0 && second > 1.0) || (first.ratio > 1.0 && second < 1.0);
        if self.tolerances.within(second) || turned {
            return Ok(answer(self.current));
        }
        let replicas = to_i32((second * self.samples.len() as f64).ceil());
        let against =
            (second < 1.0 && replicas > self.current) || (second > 1.0 && replicas < self.current);
        Ok(answer(if against { self.current } else { replicas }))
    }

    /// Fills in what is not known, against the direction of the change: missing pods are at their target
    /// on the way down and idle on the way up, pods that start are idle.
    fn assume(&mut self, ratio: f64, up_with_unready: bool) {
        let sample = |value| super::pods::Sample {
            time: jiff::Timestamp::MIN,
            window: jiff::SignedDuration::ZERO,
            value,
        };
        let missing = std::mem::take(&mut self.groups.missing);
        for pod in missing {
            let value = if ratio < 1.0 {
                match self.requests {
                    Some(requests) => {
                        let request = requests.get(&pod).copied().unwrap_or_default();
                        request.wrapping_mul(self.target.max(100)) / 100
                    }
                    None => self.target,
                }
            } else if ratio > 1.0 {
                0
            } else {
                continue;
            };
            self.samples.insert(pod, sample(value));
        }
        if up_with_unready {
            for pod in std::mem::take(&mut self.groups.unready) {
                self.samples.insert(pod, sample(0));
            }
        }
    }

    fn ratio(&self) -> Result<Ratio, String> {
        let Some(requests) = self.requests else {
            let sum = self.samples.values().map(|sample| sample.value);
            let sum = sum.fold(0_i64, i64::wrapping_add);
            let average = sum / count(self.samples.len());
            return Ok(Ratio {
                ratio: average as f64 / self.target as f64,
                utilization: None,
                average,
            });
        };
        let (mut used, mut requested, mut n_pods) = (0_i64, 0_i64, 0);
        for (pod, sample) in &self.samples {
            if let Some(request) = requests.get(pod) {
                used = used.wrapping_add(sample.value);
                requested = requested.wrapping_add(*request);
                n_pods += 1;
            }
        }
        if requested == 0 {
            return Err("no metrics are those of pods that the selector chooses".to_owned());
        }
        // Whole percent, cut off: the ratio has no more digits than that.
        let percent = (used.wrapping_mul(100) / requested) as i32;
        Ok(Ratio {
            ratio: f64::from(percent) / self.target as f64,
            utilization: Some(percent),
            average: used / count(n_pods),
        })
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX).max(1)
}

/// A figure of something else, with what it should be in all.
pub(crate) fn in_all(
    usage: i64,
    target: i64,
    current: i32,
    tolerances: Tolerances,
    count_ready: impl Fn() -> Result<usize, String>,
) -> Result<Answer, String> {
    let ratio = usage as f64 / target as f64;
    let replicas = if current == 0 {
        ceil_at_most(ratio)
    } else if tolerances.within(ratio) {
        current
    } else {
        ceil_at_most(ratio * count_ready()? as f64)
    };
    Ok(Answer {
        replicas,
        ratio,
        utilization: None,
        measured: usage,
    })
}

/// A figure of something else, with what it should be per replica of those that there are.
pub(crate) fn per_replica(
    usage: i64,
    target: i64,
    status_replicas: i32,
    tolerances: Tolerances,
) -> Answer {
    let ratio = usage as f64 / (target as f64 * f64::from(status_replicas));
    let replicas = if tolerances.within(ratio) {
        status_replicas
    } else {
        ceil_at_most(usage as f64 / target as f64)
    };
    Answer {
        replicas,
        ratio,
        utilization: None,
        measured: to_i64((usage as f64 / f64::from(status_replicas)).ceil()),
    }
}
