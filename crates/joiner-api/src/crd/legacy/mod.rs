//! Definitions of the kinds that earlier releases had, as their API servers checked them.
//!
//! They say whether an old object ever was valid, and what it meant where it said nothing. Nothing
//! here says what has become of a field: see [`crate::legacy`].

mod aws_node_template;
mod ec2_node_class;
mod kubelet;
mod machine;
mod node_claim;
mod node_pool;
mod parts;
mod provisioner;

use super::Definition;
pub(crate) use parts::DROPPED_KEYS;

/// Every kind that has a successor with other fields.
pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        provisioner::definition(),
        machine::definition(),
        node_pool::definition(),
        node_claim::definition(),
        aws_node_template::definition(),
        ec2_node_class::definition(),
    ]
}
