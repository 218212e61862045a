//! The two catalogs of the families: real EC2 figures, and 400 made-up types on a line.

use joiner_catalog::{ClassSettings, ec2};
use joiner_model::{InstanceType, NanoDollars, Resources, keys};
use serde_json::{Value, json};

use crate::random::Random;

/// The zones of the EC2 catalog.
pub(crate) const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
/// Of a hundred spot offerings, so many are sold out.
const SPOT_SOLD_OUT_PERCENT: u64 = 5;
const GENERATION_MIN: u64 = 5;
const BENCH_TYPES: u64 = 400;

pub(crate) const FAMILY: &str = "karpenter.k8s.aws/instance-family";
pub(crate) const CATEGORY: &str = "karpenter.k8s.aws/instance-category";
pub(crate) const CPU: &str = "karpenter.k8s.aws/instance-cpu";
const GENERATION: &str = "karpenter.k8s.aws/instance-generation";
const SIZE: &str = "karpenter.k8s.aws/instance-size";
/// Labels that the types of the file keep.
const KEPT: [&str; 6] = [
    FAMILY,
    CATEGORY,
    GENERATION,
    CPU,
    "karpenter.k8s.aws/instance-memory",
    SIZE,
];
const RESOURCES: [&str; 4] = ["cpu", "memory", "pods", "ephemeral-storage"];

/// An instance type of the EC2 catalog, and its element of the catalog file.
pub(crate) struct Listed {
    pub(crate) model: InstanceType,
    pub(crate) wire: Value,
}

impl Listed {
    /// The value of a label that has exactly one.
    pub(crate) fn label(&self, key: &str) -> &str {
        only(&self.model, key)
    }
}

/// General purpose, compute and memory types of recent generations, in three zones, on demand and
/// as spot.
pub(crate) fn ec2_types(random: &mut Random) -> Vec<Listed> {
    let catalog = ec2("us-east-1", &ClassSettings::default());
    let types = catalog.expect("the region is in the table").types;
    let kept = types.into_iter().filter(wanted);
    kept.map(|model| Listed {
        wire: wire(&model, random),
        model,
    })
    .collect()
}

/// So many types of all that are sold in the three zones, evenly chosen; at most all of them.
pub(crate) fn ec2_types_evenly(random: &mut Random, count: usize) -> Vec<Listed> {
    let sold = |ty: &InstanceType| {
        let zones = ty.offerings.iter().filter_map(|o| o.labels.get(keys::ZONE));
        zones.into_iter().any(|zone| ZONES.contains(&&**zone))
    };
    let catalog = ec2("us-east-1", &ClassSettings::default());
    let mut types = catalog.expect("the region is in the table").types;
    types.retain(sold);
    let (all, count) = (types.len(), count.min(types.len()));
    // Of every run of types the first one: when the quotient moves on.
    let chosen = |ix: usize| ix == 0 || ix * count / all != (ix - 1) * count / all;
    let kept = types.into_iter().enumerate().filter(|(ix, _)| chosen(*ix));
    kept.map(|(_, model)| Listed {
        wire: wire(&model, random),
        model,
    })
    .collect()
}

fn wanted(ty: &InstanceType) -> bool {
    let recent = only(ty, GENERATION).parse::<u64>();
    ["c", "m", "r"].contains(&only(ty, CATEGORY))
        && recent.is_ok_and(|generation| generation >= GENERATION_MIN)
        && !only(ty, SIZE).starts_with("metal")
}

fn only<'t>(ty: &'t InstanceType, key: &str) -> &'t str {
    match ty.labels.get(key).map(Vec::as_slice) {
        Some([value]) => value,
        _ => "",
    }
}

fn wire(ty: &InstanceType, random: &mut Random) -> Value {
    let labels: Value = (KEPT.iter())
        .map(|key| ((*key).to_owned(), json!(only(ty, key))))
        .collect();
    let offerings: Vec<Value> = (ty.offerings.iter())
        .filter_map(|offering| {
            let zone = offering.labels.get(keys::ZONE)?;
            let capacity_type = offering.labels.get(keys::CAPACITY_TYPE)?;
            if !ZONES.contains(&&**zone) {
                return None;
            }
            let sold_out = &**capacity_type == "spot" && random.percent(SPOT_SOLD_OUT_PERCENT);
            let available = offering.available && !sold_out;
            Some(offer(capacity_type, zone, offering.price, available))
        })
        .collect();
    json!({
        "name": &*ty.name,
        "architecture": only(ty, keys::ARCH),
        "operatingSystems": ["linux"],
        "resources": amounts(&ty.capacity),
        "overhead": amounts(&ty.overhead),
        "labels": labels,
        "offerings": offerings,
    })
}

/// The resources that matter here, as text.
pub(crate) fn amounts(resources: &Resources) -> Value {
    let known = resources.rendered().filter(|(r, _)| RESOURCES.contains(r));
    known
        .map(|(r, amount)| (r.to_owned(), json!(amount)))
        .collect()
}

fn offer(capacity_type: &str, zone: &str, price: NanoDollars, available: bool) -> Value {
    let price: f64 = price.to_string().parse().unwrap_or_default();
    json!({"Price": price, "Available": available, "Requirements": [
        {"key": keys::CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
        {"key": keys::ZONE, "operator": "In", "values": [zone]},
    ]})
}

/// Type `i` has `i + 1` cores, two GiB and ten pods for each, and a price that is linear in both.
pub(crate) fn bench_types() -> Vec<Value> {
    let sold = [
        ("spot", 1),
        ("spot", 2),
        ("on-demand", 1),
        ("on-demand", 2),
        ("on-demand", 3),
    ];
    (1..=BENCH_TYPES)
        .map(|cores| {
            // A tenth of a dollar for a core and for a billion bytes.
            let nanos = cores * 100_000_000 + cores * (2 << 30) / 10;
            let price = NanoDollars::new(nanos);
            let offerings = sold.map(|(capacity_type, zone)| {
                offer(capacity_type, &format!("test-zone-{zone}"), price, true)
            });
            json!({
                "name": format!("fake-it-{}", cores - 1),
                "architecture": "amd64",
                "operatingSystems": ["linux", "windows", "darwin"],
                "resources": {
                    "cpu": cores.to_string(),
                    "memory": format!("{}Gi", cores * 2),
                    "pods": (cores * 10).to_string(),
                },
                "overhead": {"cpu": "100m", "memory": "10Mi"},
                "offerings": offerings,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_chosen_evenly() {
        let count = |n: usize| ec2_types_evenly(&mut Random::new("test"), n).len();
        assert_eq!([1, 36, 144, 600].map(count), [1, 36, 144, 600]);
        let all = count(usize::MAX);
        assert!((1000..2000).contains(&all), "{all}");
    }

    #[test]
    fn the_catalog_is_as_large_as_a_real_one() {
        let types = ec2_types(&mut Random::new("test"));
        assert!(types.len() > 500, "{}", types.len());
        for listed in &types {
            let offerings = listed.wire["offerings"].as_array().map(Vec::len);
            assert!(
                offerings == Some(6) || offerings == Some(3),
                "{}",
                listed.wire
            );
            assert!(!listed.model.name.contains("metal"));
            assert!(listed.label(CPU).parse::<u32>().is_ok());
        }
    }
}
