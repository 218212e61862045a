//! One line of the decision log, and which lines are wanted.

use jiff::Timestamp;
use joiner_model::NanoDollars;
use serde::{Deserialize, Serialize};

/// One decision, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// When it was made.
    pub time: Timestamp,
    /// What was to be decided: `provisioning`, `launch`, `consolidation` and so on.
    pub kind: String,
    /// Generation of the snapshot that it rests on.
    pub generation: u64,
    /// What came out, in a few words.
    pub outcome: String,
    /// Dollars an hour before; nothing where price has no part in it.
    #[serde(skip_serializing_if = "Option::is_none", with = "dollars")]
    pub price_before: Option<NanoDollars>,
    /// Dollars an hour after.
    #[serde(skip_serializing_if = "Option::is_none", with = "dollars")]
    pub price_after: Option<NanoDollars>,
    /// Why, a sentence each.
    pub reasons: Vec<String>,
    /// What else was considered, and what spoke against it.
    pub alternatives: Vec<String>,
    /// Objects that it is about: `kind/name` or `kind/namespace/name`.
    pub about: Vec<String>,
    /// Figures and names for programs.
    pub details: serde_json::Value,
}

/// Prices are dollars on the wire.
mod dollars {
    use joiner_model::NanoDollars;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{NANOS, in_dollars};

    #[expect(clippy::ref_option, reason = "serde asks for the reference")]
    pub(super) fn serialize<S: Serializer>(
        price: &Option<NanoDollars>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        price.map(in_dollars).serialize(to)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates"
    )]
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<NanoDollars>, D::Error> {
        let price: Option<f64> = Option::deserialize(from)?;
        Ok(price.map(|price| NanoDollars::new((price * NANOS).round() as u64)))
    }
}

/// Nano-dollars in a dollar.
const NANOS: f64 = 1e9;

/// Dollars, for programs and people.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "prices are far below 2^53 nano-dollars"
)]
pub fn in_dollars(price: NanoDollars) -> f64 {
    price.get() as f64 / NANOS
}

/// Which decisions are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionQuery {
    /// About this object: `kind/name`, `namespace/name` or the name alone.
    pub about: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// At or after this time.
    pub since: Option<Timestamp>,
    /// The last so many; all that are kept when absent.
    pub limit: Option<usize>,
}

impl DecisionQuery {
    /// Whether a decision is wanted.
    #[must_use]
    pub fn wants(&self, decision: &Decision) -> bool {
        let is_about = |wanted: &String| {
            let mut about = decision.about.iter();
            // Names are compared from their end, so that `web/api-0` finds `pod/web/api-0`.
            about.any(|object| {
                let rest = object.strip_suffix(wanted.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            })
        };
        self.about.as_ref().is_none_or(is_about)
            && self.kind.as_ref().is_none_or(|kind| *kind == decision.kind)
            && self.since.is_none_or(|since| decision.time >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_it_was() {
        let one = Decision {
            time: Timestamp::from_second(3).unwrap(),
            kind: "provisioning".to_owned(),
            generation: 3,
            outcome: "launched 3 nodes".to_owned(),
            about: vec!["pod/web/api-3".to_owned(), "pool/general".to_owned()],
            price_before: Some(NanoDollars::new(1)),
            price_after: Some(NanoDollars::new(4_128_000_001)),
            reasons: vec!["a\nb".to_owned()],
            alternatives: Vec::new(),
            details: serde_json::json!({"x": [1, 2]}),
        };
        let line = serde_json::to_string(&one).unwrap();
        assert!(!line.contains('\n'));
        assert!(line.contains("\"price_after\":4.128000001"), "{line}");
        assert_eq!(serde_json::from_str::<Decision>(&line).unwrap(), one);
        // A line of another version may lack fields, and have others.
        let old: Decision = serde_json::from_str(r#"{"kind": "launch", "new": 1}"#).unwrap();
        assert_eq!(old.kind, "launch");
    }
}
