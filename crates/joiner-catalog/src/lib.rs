//! What can be bought, without asking a cloud: a built-in table of EC2 instance types and the
//! formulas that turn it into capacity, overhead, labels and offerings; and the generic catalog of
//! the simulated provider.
//!
//! Reading order: [`ClassSettings`] (what a node class decides), [`ec2`] (the catalog of a region),
//! [`spot_model`] (where spot prices come from), [`kwok_generic`], [`query`] (filter, sort, print).
//!
//! Nothing here does I/O, and nothing here is market data: the figures are a snapshot of public
//! facts, good for planning offline and as a fallback until the cloud has answered.

mod capacity;
mod class_fit;
mod ec2;
mod figures;
mod kwok;
mod labels;
mod names;
mod overhead;
mod price_list;
pub mod query;
mod region;
mod settings;
pub mod spot_model;
mod table;

pub use ec2::{Ec2Catalog, TypeBuilder, ec2, ec2_figures, ec2_figures_of, ec2_prices, ec2_type};
pub use figures::{Accelerator, Figures, Gpu};
pub use kwok::{kwok_generic, kwok_rules, kwok_well_known};
pub use labels::ec2_well_known;
pub use overhead::Overhead;
pub use price_list::{BadPriceLine, PriceList};
pub use region::{UnknownRegion, Zone, regions, zones};
pub use settings::{
    AmiFamily, BlockDevice, ClassSettings, InterfaceKind, NetworkInterface, PlacementGroup,
    PlacementStrategy, Threshold, UnknownAmiFamily,
};
