//! What can be bought: instance types and offerings from what EC2 describes, prices, and what is sold out.
//!
//! Figures become rows of `joiner-catalog`, which alone knows what pods can use of a machine. In this order:
//! [`figures`] reads a type, [`Prices`] holds what things cost, [`Shortages`] what cannot be had for a while, and
//! [`Market::types`] puts all of it together under a node class.

mod memory;
mod offerings;
mod price_list;
mod prices;
mod shortages;
mod types;

pub use memory::DiscoveredMemory;
pub use offerings::Market;
pub use price_list::{
    GetProducts, ProductFilter, SpotPriceHistory, on_demand_prices, pricing_queries,
    pricing_region, spot_price_query,
};
pub use prices::Prices;
pub use shortages::{SHORTAGE_LASTS, Shortages};
pub use types::{Offered, figures, offered, type_offerings_query, types_query};
