//! What a pod's node selection allows: kinds to buy, and nodes there are.

use fixedbitset::FixedBitSet;
use joiner_model::{Name, PodShape, Requirement, Terms, Toleration, tolerates_all};
use rustc_hash::FxHashMap;

use crate::ground::{Ground, Kind, Level, keep};

/// A product of variants, types and domains.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sel {
    /// Pool variants.
    pub(crate) variants: FixedBitSet,
    /// Instance types.
    pub(crate) types: FixedBitSet,
    /// Domains.
    pub(crate) domains: FixedBitSet,
}

impl Sel {
    /// Everything.
    pub(crate) fn all(ground: &Ground<'_>) -> Self {
        let full = |n: usize| {
            let mut set = FixedBitSet::with_capacity(n);
            set.insert_range(..);
            set
        };
        Self {
            variants: full(ground.variants.len()),
            types: full(ground.problem.types.len()),
            domains: full(ground.domains.len()),
        }
    }

    /// Keeps what `other` allows too.
    pub(crate) fn and(&mut self, other: &Self) {
        self.variants.intersect_with(&other.variants);
        self.types.intersect_with(&other.types);
        self.domains.intersect_with(&other.domains);
    }

    /// True when `kind` is in the product.
    pub(crate) fn has(&self, kind: &Kind) -> bool {
        self.variants.contains(kind.variant as usize)
            && self.types.contains(kind.ty as usize)
            && self.domains.contains(kind.domain as usize)
    }

    /// Keeps what has one of `values` for `key`.
    pub(crate) fn limit(&mut self, ground: &Ground<'_>, key: &str, values: &[Name]) {
        let fine = |value: Option<&Name>| value.is_some_and(|v| values.contains(v));
        match ground.level(key) {
            Level::Host => self.variants.clear(),
            Level::Variant => {
                keep(&mut self.variants, |v| {
                    fine(ground.variants[v].labels.get(key))
                });
            }
            Level::Type => keep(&mut self.types, |t| fine(ground.type_label(t, key))),
            Level::Domain => keep(&mut self.domains, |d| fine(ground.domains[d].get(key))),
        }
    }

    /// Keeps what satisfies `requirement`.
    fn require(&mut self, ground: &Ground<'_>, r: &Requirement) {
        let fine = |value: Option<&Name>| r.holds(value.map(AsRef::as_ref));
        match ground.level(r.key()) {
            // A new node has a name that nobody can have asked for.
            Level::Host if r.members().is_some() => self.variants.clear(),
            Level::Host => {}
            Level::Variant => {
                keep(&mut self.variants, |v| {
                    fine(ground.variants[v].labels.get(r.key()))
                });
            }
            Level::Type => keep(&mut self.types, |t| fine(ground.type_label(t, r.key()))),
            Level::Domain => keep(&mut self.domains, |d| fine(ground.domains[d].get(r.key()))),
        }
    }
}

/// The parts of a pod that select nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asks {
    node_selector: Terms,
    node_terms: Vec<Terms>,
    preferred: Option<Terms>,
    volume_terms: Vec<Terms>,
    tolerations: Vec<Toleration>,
    tolerate_prefer: bool,
}

impl Asks {
    /// What `shape` asks, with a preference that counts as a rule for now.
    pub(crate) fn new(shape: &PodShape, preferred: Option<&Terms>, tolerate_prefer: bool) -> Self {
        Self {
            node_selector: shape.node_selector.clone(),
            node_terms: shape.node_terms.clone(),
            preferred: preferred.cloned(),
            volume_terms: shape.volume_terms.clone(),
            tolerations: shape.tolerations.clone(),
            tolerate_prefer,
        }
    }
}

/// Where pods with the same [`Asks`] may go.
#[derive(Debug)]
pub(crate) struct Choice {
    /// New nodes: one of these must contain the kind.
    pub(crate) alternatives: Vec<Sel>,
    /// Existing nodes.
    pub(crate) hosts: FixedBitSet,
    /// New nodes by the pod's own rules alone: no volumes, no taints. For counting domains.
    pub(crate) strict: Vec<Sel>,
    /// Existing nodes by the pod's own rules alone, whatever their taints, open or not.
    pub(crate) strict_hosts: FixedBitSet,
    /// Variants whose taints are tolerated.
    pub(crate) tolerated: FixedBitSet,
    /// Existing nodes whose taints are tolerated.
    pub(crate) tolerated_hosts: FixedBitSet,
}

/// All choices of a problem, each computed once.
#[derive(Default)]
pub(crate) struct Choices {
    numbers: FxHashMap<Asks, u32>,
    /// The choices by number.
    pub(crate) all: Vec<Choice>,
}

impl Choices {
    /// The number of the choice for `asks`.
    pub(crate) fn of(&mut self, ground: &Ground<'_>, asks: Asks) -> u32 {
        if let Some(number) = self.numbers.get(&asks) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(choose(ground, &asks));
        self.numbers.insert(asks, number);
        number
    }
}

fn choose(ground: &Ground<'_>, asks: &Asks) -> Choice {
    let nothing = vec![Terms::new()];
    let or_nothing = |terms: &Vec<Terms>| {
        if terms.is_empty() {
            nothing.clone()
        } else {
            terms.clone()
        }
    };
    let mut tolerated = FixedBitSet::with_capacity(ground.variants.len());
    for (v, variant) in ground.variants.iter().enumerate() {
        let taints = &ground.problem.pools[variant.pool].taints;
        let fine = tolerates_all(&asks.tolerations, taints, asks.tolerate_prefer).is_ok();
        tolerated.set(v, fine);
    }
    let mut strict = Vec::new();
    let mut alternatives = Vec::new();
    for term in or_nothing(&asks.node_terms) {
        let mut own = Sel::all(ground);
        for r in asks.node_selector.iter().chain(&term) {
            own.require(ground, r);
        }
        for volumes in or_nothing(&asks.volume_terms) {
            let mut sel = own.clone();
            for r in asks.preferred.iter().flatten().chain(&volumes) {
                sel.require(ground, r);
            }
            sel.variants.intersect_with(&tolerated);
            alternatives.push(sel);
        }
        strict.push(own);
    }
    let mut hosts = FixedBitSet::with_capacity(ground.hosts.len());
    let mut strict_hosts = hosts.clone();
    let mut tolerated_hosts = hosts.clone();
    for (n, node) in ground.problem.nodes.iter().enumerate() {
        let value = |key: &str| node.labels.get(key).map(AsRef::as_ref);
        let holds = |terms: &Terms| terms.iter().all(|r| r.holds(value(r.key())));
        let any = |terms: &Vec<Terms>| terms.is_empty() || terms.iter().any(holds);
        let own = holds(&asks.node_selector) && any(&asks.node_terms);
        let tolerates =
            tolerates_all(&asks.tolerations, &node.taints, asks.tolerate_prefer).is_ok();
        let wanted = asks.preferred.as_ref().is_none_or(holds) && any(&asks.volume_terms);
        strict_hosts.set(n, own);
        tolerated_hosts.set(n, tolerates);
        hosts.set(n, own && tolerates && wanted && ground.hosts[n].open);
    }
    Choice {
        alternatives,
        hosts,
        strict,
        strict_hosts,
        tolerated,
        tolerated_hosts,
    }
}
