//! Node classes: what their conditions say, whether they could launch a machine, and their instance profiles.
//!
//! [`conditions`] turns what selectors came to into conditions, [`kubelet`] finds what is wrong with kubelet
//! settings, [`dry_run`] asks EC2 whether a launch would be allowed, [`profile`] is about instance profiles.

pub mod conditions;
pub mod dry_run;
pub mod kubelet;
pub mod profile;
