//! Memory that nodes were seen with, which replaces the estimate.

use std::collections::BTreeMap;

use joiner_api::structural;
use joiner_api::types::Ec2NodeClassStatus;
use joiner_model::Name;

/// What was seen, by the images of a class and by type. It holds for these images only: another kernel may keep
/// more for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredMemory(BTreeMap<u64, BTreeMap<Name, u64>>);

impl DiscoveredMemory {
    /// A node has registered with so many bytes. `image` is that of its claim, and `selected` the one that its class
    /// gives to the type now; a node of another image says nothing.
    pub fn learn(
        &mut self,
        status: &Ec2NodeClassStatus,
        instance_type: &Name,
        (image, selected): (&str, Option<&str>),
        bytes: u64,
    ) {
        if selected != Some(image) || bytes == 0 {
            return;
        }
        let known = self.0.entry(key(status)).or_default();
        let slot = known.entry(instance_type.clone()).or_insert(bytes);
        *slot = bytes.min(*slot);
    }

    /// What is known for a class with these images.
    #[must_use]
    pub fn of(&self, status: &Ec2NodeClassStatus) -> BTreeMap<Name, u64> {
        self.0.get(&key(status)).cloned().unwrap_or_default()
    }
}

/// The images of a class, as one number.
fn key(status: &Ec2NodeClassStatus) -> u64 {
    let ids = status
        .amis
        .iter()
        .flatten()
        .map(|ami| structural::string(&ami.id));
    structural::set(ids)
}
