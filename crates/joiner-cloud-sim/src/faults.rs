//! What goes wrong, and when: shortages, quotas, throttling, errors, prices, interruptions, slow
//! registrations.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::names::{key_error, label_value_error};
use joiner_cloud::InterruptionKind;
use joiner_model::{Labels, NanoDollars, keys};
use serde::{Deserialize, Serialize};

/// Lists longer than this are a mistake.
const ENTRIES_MAX: usize = 10_000;
/// No Node is held longer than a day.
const HOLD_SECS_MAX: u64 = 24 * 3600;
/// Labels that a registration may add.
const LABELS_MAX: usize = 20;

/// What goes wrong. Nothing does by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Faults {
    /// What cannot be had.
    pub shortages: Vec<Shortage>,
    /// How much can be had at once.
    pub quotas: Quotas,
    /// How often the cloud may be called.
    pub throttle: Option<Throttle>,
    /// Percent of calls that fail.
    pub error_percent: f64,
    /// Milliseconds that every call takes.
    pub latency_millis: u64,
    /// What costs more or less than the catalog says.
    pub prices: Vec<PriceChange>,
    /// Machines that are taken back.
    pub interruptions: Vec<InterruptionOrder>,
    /// How often an hour a spot machine is taken back, on average.
    pub interruptions_per_hour: f64,
    /// Percent of machines whose Node never joins.
    pub never_join_percent: f64,
    /// Nodes that join and are not open for pods at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration: Option<HeldRegistration>,
}

/// Which offerings, and when; what is not said does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Match {
    /// Instance type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Capacity type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<String>,
    /// From then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Offerings that are sold out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shortage {
    /// Which, and when.
    pub of: Match,
}

/// How much an account may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Quotas {
    /// Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_instances: Option<u64>,
    /// Virtual processors of all machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_vcpus: Option<u64>,
}

/// A bucket that calls take tokens from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Throttle {
    /// Tokens that come back every second.
    pub calls_per_second: u32,
    /// Tokens that it holds.
    pub burst: u32,
}

/// Offerings whose price changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriceChange {
    /// Which, and when.
    #[serde(flatten)]
    pub of: Match,
    /// Percent of the catalog's price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Dollars an hour; goes before `percent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
}

/// Nodes that are held back when they join, and what they are told then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HeldRegistration {
    /// Seconds between the join of a Node and its registration.
    pub hold_seconds: u64,
    /// Labels that it gets, and its NodeClaim, too.
    pub labels: BTreeMap<String, String>,
}

/// One machine that gets a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InterruptionOrder {
    /// Name of its Node.
    pub node: String,
    /// What the notice says.
    #[serde(default)]
    pub kind: Notice,
    /// When; at once if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// What a notice says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// Spot capacity is taken back in two minutes.
    #[default]
    SpotInterruption,
    /// Spot capacity may be taken back.
    RebalanceRecommendation,
    /// The machine under it is serviced.
    ScheduledChange,
    /// Somebody stopped it: it goes at once.
    StateChange,
}

/// Faults that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the faults of the simulated cloud cannot be used: {0}")]
pub struct FaultsError(String);

impl Notice {
    /// How long the machine stays after the notice, if it goes at all.
    #[must_use]
    pub const fn ends_after(self) -> Option<Duration> {
        match self {
            Self::SpotInterruption => Some(Duration::from_secs(120)),
            Self::StateChange => Some(Duration::ZERO),
            Self::RebalanceRecommendation | Self::ScheduledChange => None,
        }
    }

    /// The same in the words of the contract.
    #[must_use]
    pub const fn kind(self) -> InterruptionKind {
        match self {
            Self::SpotInterruption => InterruptionKind::SpotInterruption,
            Self::RebalanceRecommendation => InterruptionKind::RebalanceRecommendation,
            Self::ScheduledChange => InterruptionKind::ScheduledChange,
            Self::StateChange => InterruptionKind::StateChange,
        }
    }
}

impl HeldRegistration {
    /// How long a Node is held back.
    #[must_use]
    pub const fn hold(&self) -> Duration {
        Duration::from_secs(self.hold_seconds)
    }

    /// What is wrong with it.
    fn mistake(&self) -> Option<String> {
        if self.hold_seconds > HOLD_SECS_MAX {
            let secs = self.hold_seconds;
            return Some(format!(
                "registration: holdSeconds: {secs} are more than a day, {HOLD_SECS_MAX}"
            ));
        }
        if self.labels.len() > LABELS_MAX {
            let n_labels = self.labels.len();
            return Some(format!(
                "registration: {n_labels} labels are more than {LABELS_MAX}"
            ));
        }
        self.labels.iter().find_map(|(key, value)| {
            let why = key_error(key).or_else(|| label_value_error(value))?;
            Some(format!(
                "registration: \"{key}={value}\" is not a label: it {why}"
            ))
        })
    }

    /// Both: the longer wait, and all labels; the other's values go first.
    fn and(&self, other: &Self) -> Self {
        let mut labels = self.labels.clone();
        labels.extend(other.labels.clone());
        Self {
            hold_seconds: self.hold_seconds.max(other.hold_seconds),
            labels,
        }
    }
}

impl Match {
    /// True for an offering of a type at a time.
    #[must_use]
    pub fn covers(&self, instance_type: &str, labels: &Labels, now: Timestamp) -> bool {
        let label = |key: &str| labels.get(key).map_or("", |value| value);
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|w| w == value);
        self.from.is_none_or(|from| from <= now)
            && self.until.is_none_or(|until| now < until)
            && is(&self.instance_type, instance_type)
            && is(&self.zone, label(keys::ZONE))
            && is(&self.capacity_type, label(keys::CAPACITY_TYPE))
    }
}

impl Faults {
    /// Reads YAML or JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, FaultsError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let faults: Self =
            serde_saphyr::from_str(text).map_err(|error| FaultsError(error.to_string()))?;
        let percents = [faults.error_percent, faults.never_join_percent];
        if !percents
            .iter()
            .all(|percent| (0.0..=100.0).contains(percent))
        {
            return Err(FaultsError("a percentage is from 0 to 100".to_owned()));
        }
        let n_entries = faults.shortages.len() + faults.prices.len() + faults.interruptions.len();
        if n_entries > ENTRIES_MAX {
            let problem = format!("{n_entries} entries are more than {ENTRIES_MAX}");
            return Err(FaultsError(problem));
        }
        let held = faults.registration.as_ref();
        match held.and_then(HeldRegistration::mistake) {
            Some(mistake) => Err(FaultsError(mistake)),
            None => Ok(faults),
        }
    }

    /// Both: lists add up, and what the other one says about the rest goes first.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let sum = |a: &[_], b: &[_]| [a, b].concat();
        let greater = |a: f64, b: f64| a.max(b);
        Self {
            shortages: [&*self.shortages, &other.shortages].concat(),
            quotas: Quotas {
                max_instances: other.quotas.max_instances.or(self.quotas.max_instances),
                max_vcpus: other.quotas.max_vcpus.or(self.quotas.max_vcpus),
            },
            throttle: other.throttle.or(self.throttle),
            error_percent: greater(self.error_percent, other.error_percent),
            latency_millis: self.latency_millis.max(other.latency_millis),
            prices: [&*self.prices, &other.prices].concat(),
            interruptions: sum(&self.interruptions, &other.interruptions),
            interruptions_per_hour: greater(
                self.interruptions_per_hour,
                other.interruptions_per_hour,
            ),
            never_join_percent: greater(self.never_join_percent, other.never_join_percent),
            registration: match (&self.registration, &other.registration) {
                (Some(own), Some(other)) => Some(own.and(other)),
                (own, other) => other.clone().or_else(|| own.clone()),
            },
        }
    }

    /// True when an offering cannot be had now, whatever the catalog says.
    #[must_use]
    pub fn is_short(&self, instance_type: &str, labels: &Labels, now: Timestamp) -> bool {
        let mut all = self.shortages.iter();
        all.any(|shortage| shortage.of.covers(instance_type, labels, now))
    }

    /// What an offering costs now. Of several changes the last one counts.
    #[must_use]
    pub fn price(
        &self,
        instance_type: &str,
        labels: &Labels,
        listed: NanoDollars,
        now: Timestamp,
    ) -> NanoDollars {
        let mut all = self.prices.iter().rev();
        let change = all.find(|change| change.of.covers(instance_type, labels, now));
        let Some(change) = change else {
            return listed;
        };
        #[expect(clippy::cast_precision_loss, reason = "prices are far below 2^53")]
        let nanos = match (change.price, change.percent) {
            (Some(dollars), _) => dollars * 1e9,
            (None, Some(percent)) => listed.get() as f64 * percent / 100.0,
            (None, None) => listed.get() as f64,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was cut to what fits"
        )]
        NanoDollars::new(nanos.round().clamp(0.0, 1e18) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(zone: &str, capacity_type: &str) -> Labels {
        Labels::from([
            (keys::ZONE.into(), zone.into()),
            (keys::CAPACITY_TYPE.into(), capacity_type.into()),
        ])
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn people_write_yaml() {
        let faults = Faults::parse(
            "
             shortages:
             - {instanceType: m5.large, zone: us-east-1a}
             - {capacityType: spot, from: 1970-01-01T00:01:00Z, until: 1970-01-01T00:02:00Z}
             quotas: {maxInstances: 3}
             throttle: {callsPerSecond: 5, burst: 10}
             prices: [{instanceType: m5.large, percent: 150}, {zone: b, price: 1.5}]
             interruptions: [{node: ip-10-0-0-1}]",
        );
        let faults = faults.unwrap();
        let short = |ty: &str, zone: &str, kind: &str, second| {
            faults.is_short(ty, &labels(zone, kind), at(second))
        };
        assert!(short("m5.large", "us-east-1a", "on-demand", 0));
        assert!(!short("m5.large", "us-east-1b", "on-demand", 0));
        assert!(!short("c5.large", "us-east-1b", "spot", 59));
        assert!(short("c5.large", "us-east-1b", "spot", 60));
        assert!(!short("c5.large", "us-east-1b", "spot", 120));
        let listed = NanoDollars::new(100_000_000);
        let price = |ty: &str, zone: &str| {
            let price = faults.price(ty, &labels(zone, "spot"), listed, at(0));
            price.to_string()
        };
        assert_eq!(price("m5.large", "a"), "0.15");
        assert_eq!(price("m5.large", "b"), "1.50");
        assert_eq!(price("c5.large", "a"), "0.10");
        assert_eq!(faults.interruptions[0].kind, Notice::SpotInterruption);
    }

    fn many_labels(n: usize) -> String {
        let labels: Vec<String> = (0..n).map(|ix| format!("l{ix}: v")).collect();
        format!("registration: {{labels: {{{}}}}}", labels.join(", "))
    }

    #[test]
    fn registrations_are_held_and_labeled() {
        let read = |text: &str| Faults::parse(text).unwrap();
        let one = read("registration: {holdSeconds: 30, labels: {example.com/rack: r1, a: b}}");
        let held = one.registration.clone().unwrap();
        assert_eq!(held.hold(), Duration::from_secs(30));
        assert_eq!(held.labels["example.com/rack"], "r1");
        let two = read("registration: {holdSeconds: 10, labels: {a: c, d: e}}");
        let both = one.and(&two).registration.unwrap();
        assert_eq!(both.hold_seconds, 30);
        let labels: Vec<&str> = both.labels.values().map(String::as_str).collect();
        assert_eq!(labels, ["c", "e", "r1"]);
        let none = Faults::default();
        assert_eq!(none.registration, None);
        assert_eq!(none.and(&two), two);
        assert_eq!(two.and(&none), two);
        read(&many_labels(20));
        read("registration: {holdSeconds: 86400}");
    }

    #[test]
    fn mistakes_are_told() {
        for (text, word) in [
            ("shortage: []", "shortage"),
            ("errorPercent: 130", "percentage"),
            ("quotas: {maxInstances: many}", "many"),
            ("registration: {hold: 5}", "hold"),
            ("registration: {holdSeconds: 86401}", "more than a day"),
            ("registration: {labels: {a b: c}}", "a b=c"),
            ("registration: {labels: {a: '-'}}", "is not a label"),
            (&*many_labels(21), "21 labels"),
        ] {
            let error = Faults::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(Faults::parse("  \n"), Ok(Faults::default()));
    }

    #[test]
    fn two_sources_add_up() {
        let one = Faults::parse("{errorPercent: 10, quotas: {maxInstances: 1, maxVcpus: 8}}");
        let two = Faults::parse("{latencyMillis: 5, quotas: {maxInstances: 2}}");
        let both = one.unwrap().and(&two.unwrap());
        assert_eq!(both.quotas.max_instances, Some(2));
        assert_eq!(both.quotas.max_vcpus, Some(8));
        assert_eq!((both.error_percent, both.latency_millis), (10.0, 5));
    }
}
