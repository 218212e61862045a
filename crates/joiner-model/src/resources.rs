//! Amounts of resources, as integers per named resource.

use std::collections::BTreeMap;
use std::fmt;

use crate::Name;

/// The name of a resource. CPU is counted in millicores, `pods` in pods, memory and storage in
/// bytes, everything else in whole units.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceName {
    /// Processor time, in millicores.
    Cpu,
    /// Memory, in bytes.
    Memory,
    /// Pods on a node.
    Pods,
    /// Local scratch space, in bytes.
    EphemeralStorage,
    /// Any other resource, in whole units.
    Other(Name),
}

impl ResourceName {
    /// The resource that users write as `text`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "pods" => Self::Pods,
            "ephemeral-storage" => Self::EphemeralStorage,
            other => Self::Other(other.into()),
        }
    }

    /// How users write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pods => "pods",
            Self::EphemeralStorage => "ephemeral-storage",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An amount for each named resource; a resource that is not named has amount zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources(BTreeMap<ResourceName, u64>);

impl Resources {
    /// No resources at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The amount of `name`, zero when absent.
    #[must_use]
    pub fn get(&self, name: &ResourceName) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The amount of `name` if it is named at all, even with zero.
    #[must_use]
    pub fn named(&self, name: &ResourceName) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Sets one amount.
    pub fn set(&mut self, name: ResourceName, amount: u64) {
        self.0.insert(name, amount);
    }

    /// The same with one amount set; for building values in one expression.
    #[must_use]
    pub fn with(mut self, name: ResourceName, amount: u64) -> Self {
        self.set(name, amount);
        self
    }

    /// Names and amounts in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, u64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// True when nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds every amount of `other`, saturating.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let slot = self.0.entry(name.clone()).or_insert(0);
            *slot = slot.saturating_add(*amount);
        }
    }

    /// Raises every amount to at least that of `other`.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let slot = self.0.entry(name.clone()).or_insert(0);
            *slot = (*slot).max(*amount);
        }
    }

    /// What is left after `used`, or the first resource of which there is not enough.
    ///
    /// # Errors
    /// The name of a resource whose amount in `used` exceeds the amount here.
    pub fn minus(&self, used: &Self) -> Result<Self, ResourceName> {
        let mut rest = self.clone();
        for (name, amount) in &used.0 {
            if *amount == 0 {
                continue;
            }
            match rest.get(name).checked_sub(*amount) {
                Some(left) => rest.set(name.clone(), left),
                None => return Err(name.clone()),
            }
        }
        Ok(rest)
    }

    /// What is left after `used`, with zero where there is not enough.
    #[must_use]
    pub fn minus_saturating(&self, used: &Self) -> Self {
        let mut rest = self.clone();
        for (name, amount) in &used.0 {
            let left = rest.get(name).saturating_sub(*amount);
            rest.set(name.clone(), left);
        }
        rest
    }

    /// True when every amount is at most that of `room`.
    #[must_use]
    pub fn fits(&self, room: &Self) -> bool {
        self.0
            .iter()
            .all(|(name, amount)| *amount <= room.get(name))
    }
}

impl FromIterator<(ResourceName, u64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (ResourceName, u64)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Display for Resources {
    /// `cpu 1500m, memory 2Gi, pods 1`: what people write, largest exact unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, amount)) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{name} {}", render_amount(name, amount))?;
        }
        Ok(())
    }
}

/// One amount in the canonical text form of Kubernetes quantities.
#[must_use]
pub fn render_amount(name: &ResourceName, amount: u64) -> String {
    match name {
        ResourceName::Cpu if amount.is_multiple_of(1000) => (amount / 1000).to_string(),
        ResourceName::Cpu => format!("{amount}m"),
        ResourceName::Memory | ResourceName::EphemeralStorage => render_bytes(amount),
        ResourceName::Pods | ResourceName::Other(_) => amount.to_string(),
    }
}

/// One amount as people say it: cores and binary units with at most two decimals.
pub(crate) fn render_roughly(name: &ResourceName, amount: u64) -> String {
    let decimals = |whole: u64, hundredths: u64| match hundredths {
        0 => whole.to_string(),
        n if n % 10 == 0 => format!("{whole}.{}", n / 10),
        n => format!("{whole}.{n:02}"),
    };
    match name {
        ResourceName::Cpu if amount >= 1000 => decimals(amount / 1000, amount % 1000 / 10),
        ResourceName::Memory | ResourceName::EphemeralStorage => {
            for (shift, suffix) in [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")] {
                if amount >> shift > 0 {
                    let rest = amount & ((1 << shift) - 1);
                    return decimals(amount >> shift, (rest * 100) >> shift) + suffix;
                }
            }
            amount.to_string()
        }
        ResourceName::Cpu | ResourceName::Pods | ResourceName::Other(_) => {
            render_amount(name, amount)
        }
    }
}

fn render_bytes(amount: u64) -> String {
    for (shift, suffix) in [
        (60, "Ei"),
        (50, "Pi"),
        (40, "Ti"),
        (30, "Gi"),
        (20, "Mi"),
        (10, "Ki"),
    ] {
        if amount > 0 && amount.trailing_zeros() >= shift {
            return format!("{}{suffix}", amount >> shift);
        }
    }
    amount.to_string()
}

impl Resources {
    /// Each resource with its amount as Kubernetes quantity text.
    pub fn rendered(&self) -> impl Iterator<Item = (&str, String)> {
        self.0
            .iter()
            .map(|(name, amount)| (name.as_str(), render_amount(name, *amount)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu_memory(cpu: u64, memory: u64) -> Resources {
        Resources::new()
            .with(ResourceName::Cpu, cpu)
            .with(ResourceName::Memory, memory)
    }

    #[test]
    fn too_little_is_an_answer_not_a_wrap() {
        assert_eq!(
            cpu_memory(100, 5).minus(&cpu_memory(101, 0)),
            Err(ResourceName::Cpu)
        );
        assert_eq!(
            cpu_memory(100, 5).minus(&cpu_memory(40, 5)),
            Ok(cpu_memory(60, 0))
        );
    }

    #[test]
    fn an_absent_resource_counts_as_zero() {
        let gpu = Resources::new().with(ResourceName::parse("nvidia.com/gpu"), 1);
        assert!(!gpu.fits(&cpu_memory(1000, 1 << 30)));
        let zero = Resources::new().with(ResourceName::parse("nvidia.com/gpu"), 0);
        assert!(zero.fits(&cpu_memory(0, 0)));
    }

    #[test]
    fn prints_what_people_write() {
        assert_eq!(
            cpu_memory(1500, 2 << 30).to_string(),
            "cpu 1500m, memory 2Gi"
        );
        assert_eq!(cpu_memory(2000, 1000).to_string(), "cpu 2, memory 1000");
    }
}
