//! What a label may be: the algebra of node-selector requirements.
//!
//! One requirement is a set of values of one key, given either by listing its members or by listing
//! what is left out, with optional inclusive integer bounds. Intersection never loses a member that
//! both sides have. `min_values` is carried along; it is about instance types, not about labels.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::{Labels, Name, keys};

/// The eight operators users can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values.
    NotIn,
    /// Any value.
    Exists,
    /// No value.
    DoesNotExist,
    /// An integer above the value.
    Gt,
    /// An integer below the value.
    Lt,
    /// An integer not below the value.
    Gte,
    /// An integer not above the value.
    Lte,
}

impl Operator {
    /// The operator users write as `text`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt,
            "Lt" => Self::Lt,
            "Gte" => Self::Gte,
            "Lte" => Self::Lte,
            _ => return None,
        })
    }

    /// How users write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

/// Why text does not make a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequirementError {
    /// `In` and `NotIn` compare with nothing, or a comparison has not exactly one value.
    ValueCount {
        /// The operator.
        operator: Operator,
        /// How many values were given.
        n_values: usize,
    },
    /// A comparison with something that is not an integer.
    NotAnInteger {
        /// The operator.
        operator: Operator,
        /// The value given.
        value: Name,
    },
}

impl fmt::Display for RequirementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ValueCount { operator, n_values } => {
                write!(
                    f,
                    "operator {} does not take {n_values} values",
                    operator.as_str()
                )
            }
            Self::NotAnInteger { operator, value } => {
                write!(
                    f,
                    "operator {} needs an integer, not {value:?}",
                    operator.as_str()
                )
            }
        }
    }
}

impl std::error::Error for RequirementError {}

/// The values that one label key may take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: Name,
    /// True when `values` lists what is left out.
    complement: bool,
    values: BTreeSet<Name>,
    gte: Option<i64>,
    lte: Option<i64>,
    min_values: Option<u32>,
}

impl Requirement {
    /// A requirement as users write it; old key spellings become current ones.
    ///
    /// # Errors
    /// When the values do not suit the operator.
    pub fn new(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = Name>,
    ) -> Result<Self, RequirementError> {
        let values: BTreeSet<Name> = values.into_iter().collect();
        let key: Name = keys::canonical(key).into();
        let base = Self {
            key,
            complement: true,
            values: BTreeSet::new(),
            gte: None,
            lte: None,
            min_values: None,
        };
        let bound = || match (values.len(), values.first()) {
            (1, Some(value)) => value
                .parse::<i64>()
                .map_err(|_| RequirementError::NotAnInteger {
                    operator,
                    value: value.clone(),
                }),
            (n_values, _) => Err(RequirementError::ValueCount { operator, n_values }),
        };
        Ok(match operator {
            Operator::In => Self {
                complement: false,
                values,
                ..base
            },
            Operator::NotIn => Self { values, ..base },
            Operator::Exists => base,
            Operator::DoesNotExist => Self {
                complement: false,
                ..base
            },
            Operator::Gt => match bound()?.checked_add(1) {
                Some(gte) => Self {
                    gte: Some(gte),
                    ..base
                },
                None => Self {
                    complement: false,
                    ..base
                },
            },
            Operator::Lt => match bound()?.checked_sub(1) {
                Some(lte) => Self {
                    lte: Some(lte),
                    ..base
                },
                None => Self {
                    complement: false,
                    ..base
                },
            },
            Operator::Gte => Self {
                gte: Some(bound()?),
                ..base
            },
            Operator::Lte => Self {
                lte: Some(bound()?),
                ..base
            },
        })
    }

    /// `key` has exactly `value`.
    #[must_use]
    pub fn is(key: &str, value: Name) -> Self {
        Self::one_of(key, [value])
    }

    /// `key` has one of `values`.
    #[must_use]
    pub fn one_of(key: &str, values: impl IntoIterator<Item = Name>) -> Self {
        Self {
            key: keys::canonical(key).into(),
            complement: false,
            values: values.into_iter().collect(),
            gte: None,
            lte: None,
            min_values: None,
        }
    }

    /// The same, asking for at least this many distinct values among the instance types.
    #[must_use]
    pub fn with_min_values(mut self, min_values: Option<u32>) -> Self {
        self.min_values = min_values;
        self
    }

    /// The label key, in its current spelling.
    #[must_use]
    pub fn key(&self) -> &Name {
        &self.key
    }

    /// How many distinct values the instance types must offer.
    #[must_use]
    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// The operator that describes the set best, bounds aside.
    #[must_use]
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, false) => Operator::NotIn,
            (true, true) => Operator::Exists,
            (false, false) => Operator::In,
            (false, true) => Operator::DoesNotExist,
        }
    }

    /// The listed members of a concrete set, `None` for a set given by what it leaves out.
    #[must_use]
    pub fn members(&self) -> Option<&BTreeSet<Name>> {
        (!self.complement).then_some(&self.values)
    }

    /// Every value this requirement names, as member or as exclusion.
    #[must_use]
    pub fn named_values(&self) -> &BTreeSet<Name> {
        &self.values
    }

    /// True when the label may have `value`.
    #[must_use]
    pub fn has(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && self.within_bounds(value)
    }

    /// True when the requirement holds for a label that is `value`, or absent.
    ///
    /// `NotIn` and `DoesNotExist` hold for an absent label, everything else needs one.
    #[must_use]
    pub fn holds(&self, value: Option<&str>) -> bool {
        match value {
            Some(value) => self.has(value),
            None => match self.operator() {
                Operator::DoesNotExist => true,
                Operator::NotIn => self.gte.is_none() && self.lte.is_none(),
                Operator::In
                | Operator::Exists
                | Operator::Gt
                | Operator::Lt
                | Operator::Gte
                | Operator::Lte => false,
            },
        }
    }

    fn within_bounds(&self, value: &str) -> bool {
        if self.gte.is_none() && self.lte.is_none() {
            return true;
        }
        value.parse::<i64>().is_ok_and(|number| {
            self.gte.is_none_or(|gte| number >= gte) && self.lte.is_none_or(|lte| number <= lte)
        })
    }

    /// What both sides allow.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        debug_assert_eq!(self.key, other.key, "requirements of two different keys");
        let gte = self.gte.max(other.gte);
        let lte = match (self.lte, other.lte) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let min_values = self.min_values.max(other.min_values);
        let nothing = Self {
            key: self.key.clone(),
            complement: false,
            values: BTreeSet::new(),
            gte: None,
            lte: None,
            min_values,
        };
        if let (Some(gte), Some(lte)) = (gte, lte)
            && gte > lte
        {
            return nothing;
        }
        let bounds = Self {
            gte,
            lte,
            ..nothing.clone()
        };
        let mut values: BTreeSet<Name> = match (self.complement, other.complement) {
            (true, true) => self.values.union(&other.values).cloned().collect(),
            (true, false) => other.values.difference(&self.values).cloned().collect(),
            (false, true) => self.values.difference(&other.values).cloned().collect(),
            (false, false) => self.values.intersection(&other.values).cloned().collect(),
        };
        values.retain(|v| bounds.within_bounds(v));
        if self.complement && other.complement {
            Self {
                complement: true,
                values,
                ..bounds
            }
        } else {
            Self { values, ..nothing }
        }
    }

    /// True when some value satisfies both sides.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let both = self.and(other);
        both.complement || !both.values.is_empty()
    }

    /// Operator and values as they are written to the API: one entry, or two for a range.
    #[must_use]
    pub fn entries(&self) -> Vec<(Operator, Vec<Name>)> {
        let number = |n: i64| vec![Name::from(n.to_string())];
        match (self.gte, self.lte) {
            (Some(gte), Some(lte)) => {
                vec![(Operator::Gte, number(gte)), (Operator::Lte, number(lte))]
            }
            (Some(gte), None) => vec![(Operator::Gte, number(gte))],
            (None, Some(lte)) => vec![(Operator::Lte, number(lte))],
            (None, None) => vec![(self.operator(), self.values.iter().cloned().collect())],
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator().as_str())?;
        if !self.values.is_empty() {
            let shown: Vec<&str> = self.values.iter().take(5).map(AsRef::as_ref).collect();
            write!(f, " [{}", shown.join(" "))?;
            if self.values.len() > shown.len() {
                write!(f, " and {} others", self.values.len() - shown.len())?;
            }
            f.write_str("]")?;
        }
        if let Some(gte) = self.gte {
            write!(f, " >={gte}")?;
        }
        if let Some(lte) = self.lte {
            write!(f, " <={lte}")?;
        }
        if let Some(min_values) = self.min_values {
            write!(f, " minValues {min_values}")?;
        }
        Ok(())
    }
}

/// Requirements on several keys, at most one per key; all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(BTreeMap<Name, Requirement>);

/// Why two sets of requirements exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incompatible {
    /// The first side says nothing of a key that the second needs.
    Undefined {
        /// The key.
        key: Name,
        /// A defined key the user may have meant.
        hint: Option<Name>,
    },
    /// No value satisfies both.
    Disjoint {
        /// What the first side allows.
        existing: Box<Requirement>,
        /// What the second side asks.
        incoming: Box<Requirement>,
    },
}

impl Requirements {
    /// No requirements: everything goes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The labels of an object, each as "has exactly this value".
    #[must_use]
    pub fn from_labels(labels: &Labels) -> Self {
        labels
            .iter()
            .map(|(key, value)| Requirement::is(key, value.clone()))
            .collect()
    }

    /// Adds one more requirement, on top of what is there for its key.
    pub fn add(&mut self, requirement: Requirement) {
        match self.0.get_mut(requirement.key()) {
            Some(present) => *present = present.and(&requirement),
            None => {
                self.0.insert(requirement.key.clone(), requirement);
            }
        }
    }

    /// The requirement on `key`, if there is one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Requirement> {
        self.0.get(key)
    }

    /// All requirements in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.0.values()
    }

    /// True when nothing is required.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when all requirements hold for an object with exactly these labels.
    #[must_use]
    pub fn hold_for(&self, labels: &Labels) -> bool {
        self.iter()
            .all(|r| r.holds(labels.get(r.key()).map(AsRef::as_ref)))
    }

    /// Checks that something with these requirements can meet `incoming` too. Keys for which
    /// `may_be_undefined` is true can take any value when this side says nothing of them.
    ///
    /// # Errors
    /// The first key in the way.
    pub fn compatible(
        &self,
        incoming: &Self,
        may_be_undefined: impl Fn(&str) -> bool,
        known_keys: &[Name],
    ) -> Result<(), Incompatible> {
        let negative =
            |r: &Requirement| matches!(r.operator(), Operator::NotIn | Operator::DoesNotExist);
        for wanted in incoming.iter() {
            let Some(existing) = self.get(wanted.key()) else {
                if may_be_undefined(wanted.key()) || negative(wanted) {
                    continue;
                }
                let hint = hint(wanted.key(), known_keys.iter().chain(self.0.keys()));
                return Err(Incompatible::Undefined {
                    key: wanted.key.clone(),
                    hint,
                });
            };
            let tolerated = negative(existing) && negative(wanted);
            if !tolerated && !existing.intersects(wanted) {
                return Err(Incompatible::Disjoint {
                    existing: Box::new(existing.clone()),
                    incoming: Box::new(wanted.clone()),
                });
            }
        }
        Ok(())
    }
}

impl FromIterator<Requirement> for Requirements {
    fn from_iter<I: IntoIterator<Item = Requirement>>(iter: I) -> Self {
        let mut all = Self::new();
        iter.into_iter().for_each(|r| all.add(r));
        all
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.iter().filter(|r| r.key.as_ref() != keys::HOSTNAME);
        for (i, requirement) in shown.enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { key, hint: None } => write!(f, "nothing defines label {key:?}"),
            Self::Undefined {
                key,
                hint: Some(hint),
            } => {
                write!(f, "nothing defines label {key:?} (did you mean {hint:?}?)")
            }
            Self::Disjoint { existing, incoming } => write!(f, "{incoming} excludes {existing}"),
        }
    }
}

/// A known key that contains the unknown one, or ends like it after the slash.
fn hint<'k>(key: &str, known: impl Iterator<Item = &'k Name>) -> Option<Name> {
    let suffix = key.rsplit('/').next().unwrap_or(key);
    let mut found: Vec<&Name> = known
        .filter(|k| k.contains(key) || k.rsplit('/').next().is_some_and(|s| s == suffix))
        .collect();
    found.sort();
    found.first().map(|k| (*k).clone())
}

#[cfg(test)]
#[path = "requirement_tests.rs"]
mod tests;
