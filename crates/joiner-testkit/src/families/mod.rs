//! Planning problems by the thousand: a family says what kind, a seed and a size say which.
//!
//! The same three always give the same text, on every machine. Each family stresses one thing, so
//! that a figure which gets worse says where to look; [`Family::Mixed`] has a little of everything.

mod catalogs;
mod growth;
mod mixes;
mod small;

use std::fmt;
use std::str::FromStr;

use joiner_model::Problem;
use joiner_state::{Catalog, Objects, ReadError, Source, parse_instance_types};

pub use growth::Growth;
pub use small::small;

/// A kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Deployments of common sizes, one pool, no rules.
    Generic,
    /// Every pod has a size of its own: no help from pods that are alike.
    Jitter,
    /// Node selectors and node affinity of many sorts.
    Selectors,
    /// Pools with weights, limits, taints and labels.
    Pools,
    /// Topology spread over zones, nodes and capacity types.
    Spread,
    /// Pod affinity and anti-affinity.
    Affinity,
    /// Nodes with room left, and a DaemonSet.
    Existing,
    /// A little of everything, and pods that cannot be placed.
    Mixed,
    /// Five kinds of pods on 400 made-up types: the mix that autoscalers of this kind are
    /// customarily measured with.
    Bench,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Generic,
        Self::Jitter,
        Self::Selectors,
        Self::Pools,
        Self::Spread,
        Self::Affinity,
        Self::Existing,
        Self::Mixed,
        Self::Bench,
    ];

    /// The name, as in file names and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Jitter => "jitter",
            Self::Selectors => "selectors",
            Self::Pools => "pools",
            Self::Spread => "spread",
            Self::Affinity => "affinity",
            Self::Existing => "existing",
            Self::Mixed => "mixed",
            Self::Bench => "bench",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// No family has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFamily(String);

impl fmt::Display for UnknownFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Family::ALL.map(Family::as_str).join(", ");
        write!(f, "there is no family {:?}; there are {known}", self.0)
    }
}

impl std::error::Error for UnknownFamily {}

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, UnknownFamily> {
        let known = Self::ALL.into_iter().find(|f| f.as_str() == text);
        known.ok_or_else(|| UnknownFamily(text.to_owned()))
    }
}

/// A problem as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// A `List` of Kubernetes objects.
    pub objects_json: String,
    /// A catalog file.
    pub instance_types_json: String,
}

impl Case {
    /// The problem, through the real parsers.
    ///
    /// # Errors
    /// What the parsers say; never for a generated case.
    pub fn read(&self) -> Result<Problem, ReadError> {
        let objects = Objects::read([Source::new("objects.json", self.objects_json.as_str())])?;
        let types = parse_instance_types("instance-types.json", &self.instance_types_json)?;
        Ok(objects.problem(Catalog::shared(types))?.problem)
    }

    /// The problem of a generated case.
    ///
    /// # Panics
    /// When the parsers refuse it.
    #[must_use]
    pub fn problem(&self) -> Problem {
        match self.read() {
            Ok(problem) => problem,
            Err(error) => panic!("the case cannot be read: {error}"),
        }
    }
}

/// The case of a family with this seed and about this many pods to place.
#[must_use]
pub fn generate(family: Family, seed: u64, size: usize) -> Case {
    mixes::generate(family, seed, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn names_parse_back() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
        }
        let error = "other".parse::<Family>().unwrap_err().to_string();
        assert!(error.contains("jitter"), "{error}");
    }

    #[test]
    fn the_same_seed_gives_the_same_text() {
        for family in Family::ALL {
            assert_eq!(generate(family, 1, 20), generate(family, 1, 20));
            assert_ne!(generate(family, 1, 20), generate(family, 2, 20), "{family}");
        }
    }

    #[test]
    fn every_family_is_solved_and_verified() {
        for family in Family::ALL {
            for (seed, size) in [(1, 1), (2, 20)] {
                let problem = generate(family, seed, size).problem();
                let extra = if family == Family::Mixed { 3 } else { 0 };
                assert_eq!(problem.pending().count(), size + extra, "{family}");
                let outcome = Outcome::of(problem);
                if !matches!(family, Family::Pools | Family::Affinity | Family::Mixed) {
                    outcome.assert_all_placed();
                }
            }
        }
    }
}
