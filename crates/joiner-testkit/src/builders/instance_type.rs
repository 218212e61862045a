//! Instance types of a made-up catalog.

use joiner_model::keys;
use serde_json::{Value, json};

use super::text::{list, merge, push};

const PRICE_DEFAULT: f64 = 0.1;
const ZONES_DEFAULT: [&str; 3] = ["a", "b", "c"];

/// An instance type with its offerings.
#[derive(Clone, Debug)]
#[must_use]
pub struct InstanceTypeBuilder {
    wire: Value,
}

/// An instance type: 4 cores, 16 GiB, 110 pods, linux on amd64. If nothing is said about offerings,
/// it is sold on demand in zones `a`, `b` and `c` at 0.10 dollars an hour.
pub fn instance_type(name: &str) -> InstanceTypeBuilder {
    let wire = json!({
        "name": name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "offerings": [],
    });
    InstanceTypeBuilder { wire }
}

impl InstanceTypeBuilder {
    /// Sets the CPU it has.
    pub fn cpu(self, amount: &str) -> Self {
        self.resource("cpu", amount)
    }

    /// Sets the memory it has.
    pub fn memory(self, amount: &str) -> Self {
        self.resource("memory", amount)
    }

    /// Sets how many pods it can run.
    pub fn pods(self, count: u32) -> Self {
        self.resource("pods", &count.to_string())
    }

    /// Sets how much it has of any resource.
    pub fn resource(mut self, resource: &str, amount: &str) -> Self {
        self.wire["resources"][resource] = json!(amount);
        self
    }

    /// Sets what the system keeps of a resource.
    pub fn overhead(mut self, resource: &str, amount: &str) -> Self {
        self.wire["overhead"][resource] = json!(amount);
        self
    }

    /// Sets the architecture.
    pub fn arch(mut self, arch: &str) -> Self {
        self.wire["architecture"] = json!(arch);
        self
    }

    /// Sets the operating systems.
    pub fn os(mut self, systems: &str) -> Self {
        self.wire["operatingSystems"] = json!(list(systems));
        self
    }

    /// Sets a label of its nodes.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.wire["labels"][key] = json!(value);
        self
    }

    /// Is sold on demand in zones `a`, `b` and `c` at this price.
    pub fn price(self, dollars: f64) -> Self {
        self.price_in_all_zones("on-demand", dollars)
    }

    /// Is sold as spot in zones `a`, `b` and `c` at this price.
    pub fn spot_price(self, dollars: f64) -> Self {
        self.price_in_all_zones("spot", dollars)
    }

    fn price_in_all_zones(self, capacity_type: &str, dollars: f64) -> Self {
        ZONES_DEFAULT
            .into_iter()
            .fold(self, |it, zone| it.zone_price(zone, capacity_type, dollars))
    }

    /// Is sold in a zone: `zone_price("a", "spot", 0.03)`.
    pub fn zone_price(self, zone: &str, capacity_type: &str, dollars: f64) -> Self {
        self.offering(zone, capacity_type, json!({"Price": dollars}))
    }

    /// Would be sold in a zone, but there are none left.
    pub fn sold_out(self, zone: &str, capacity_type: &str, dollars: f64) -> Self {
        let offering = json!({"Price": dollars, "Available": false});
        self.offering(zone, capacity_type, offering)
    }

    /// Is reserved in a zone, so many times.
    pub fn reserved(self, zone: &str, count: u32, dollars: f64) -> Self {
        let offering = json!({"Price": dollars, "ReservationCapacity": count});
        self.offering(zone, "reserved", offering)
    }

    fn offering(mut self, zone: &str, capacity_type: &str, mut offering: Value) -> Self {
        let is = |key, value| json!({"key": key, "operator": "In", "values": [value]});
        let requirements = [is(keys::CAPACITY_TYPE, capacity_type), is(keys::ZONE, zone)];
        offering["Requirements"] = json!(requirements);
        push(&mut self.wire["offerings"], offering);
        self
    }

    /// Lays wire JSON over what is there.
    pub fn patch(mut self, patch: Value) -> Self {
        merge(&mut self.wire, patch);
        self
    }

    /// The element of a catalog file.
    #[must_use]
    pub fn wire(self) -> Value {
        let unsold = self.wire["offerings"].as_array().is_some_and(Vec::is_empty);
        if unsold {
            self.price(PRICE_DEFAULT).wire
        } else {
            self.wire
        }
    }
}
