//! Resource amounts, unparsed.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;

/// An amount of a resource as the user wrote it, such as `500m` or `4Gi`.
///
/// JSON numbers are accepted and kept as their decimal text. Turning the text into a number is
/// the business of whoever knows the resource's unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl Quantity {
    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: a string such as \"500m\" or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Quantity, E> {
        Ok(Quantity(text))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn strings_and_numbers() {
        for (json, text) in [
            ("\"1.5Gi\"", "1.5Gi"),
            ("4", "4"),
            ("-1", "-1"),
            ("0.5", "0.5"),
        ] {
            let quantity: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(quantity.as_str(), text);
        }
        assert!(serde_json::from_str::<Quantity>("true").is_err());
        assert_eq!(
            serde_json::to_string(&Quantity::from("4")).unwrap(),
            "\"4\""
        );
    }
}
