//! The formulas against a table of what real catalogs say, for every type: what pods can use, and
//! every label. The two sources were taken at different times; where they differ is listed, and
//! the list must be exactly right.

use std::collections::BTreeMap;

use joiner_catalog::{ClassSettings, ec2, ec2_type};
use joiner_model::{InstanceType, ResourceName};

static EXPECTED: &str = include_str!("data/expected.tsv");
static DIFFERENCES: &str = include_str!("data/known-differences.tsv");

/// Everything comparable about a type, as text by field.
type Facts = BTreeMap<String, String>;

const FAMILY_LABELS: [&str; 12] = [
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "karpenter.k8s.aws/instance-category",
    "karpenter.k8s.aws/instance-generation",
    "karpenter.k8s.aws/instance-capability-flex",
    "karpenter.k8s.aws/instance-cpu-manufacturer",
    "karpenter.k8s.aws/instance-encryption-in-transit-supported",
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-gpu-memory",
    "karpenter.k8s.aws/instance-accelerator-manufacturer",
    "karpenter.k8s.aws/instance-accelerator-name",
];

const SIZE_FIELDS: [&str; 19] = [
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "vpc.amazonaws.com/pod-eni",
    "karpenter.k8s.aws/instance-cpu",
    "karpenter.k8s.aws/instance-memory",
    "karpenter.k8s.aws/instance-hypervisor",
    "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
    "karpenter.k8s.aws/instance-ebs-bandwidth",
    "karpenter.k8s.aws/instance-network-bandwidth",
    "karpenter.k8s.aws/instance-local-nvme",
    "vpc.amazonaws.com/efa",
    "karpenter.k8s.aws/instance-gpu-count",
    "nvidia.com/gpu",
    "amd.com/gpu",
    "karpenter.k8s.aws/instance-accelerator-count",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
];

/// Labels that the table does not have: the same for all types, or newer than the table.
const NOT_IN_TABLE: [&str; 2] = [
    "karpenter.k8s.aws/nitro-sandbox",
    "karpenter.k8s.aws/instance-tenancy",
];

fn expected() -> BTreeMap<String, Facts> {
    let mut all = BTreeMap::new();
    let mut family = "";
    let mut family_facts = Facts::new();
    for line in EXPECTED.lines().filter(|line| !line.starts_with('#')) {
        let mut cells = line.split('\t').chain(std::iter::repeat(""));
        let first = cells.next().unwrap_or("");
        let present = |(field, cell): (&&str, &str)| {
            let keep = !cell.is_empty() || *field == "karpenter.k8s.aws/instance-hypervisor";
            keep.then(|| ((*field).to_owned(), cell.to_owned()))
        };
        if let Some(name) = first.strip_prefix(':') {
            family = name;
            family_facts = FAMILY_LABELS
                .iter()
                .zip(cells)
                .filter_map(present)
                .collect();
            continue;
        }
        let mut facts = family_facts.clone();
        facts.extend(SIZE_FIELDS.iter().zip(cells).filter_map(present));
        let name = format!("{family}.{first}");
        for (label, value) in [
            ("karpenter.k8s.aws/instance-family", family),
            ("karpenter.k8s.aws/instance-size", first),
            ("node.kubernetes.io/instance-type", &name),
            ("topology.kubernetes.io/region", "us-east-1"),
        ] {
            facts.insert(label.to_owned(), value.to_owned());
        }
        all.insert(name, facts);
    }
    all
}

fn computed(instance_type: &InstanceType) -> Facts {
    let mut facts = Facts::new();
    let allocatable = instance_type.allocatable().expect("room for the system");
    for (name, amount) in allocatable.iter() {
        let unit = match name {
            ResourceName::Memory => 1 << 20,
            ResourceName::EphemeralStorage => 1 << 30,
            ResourceName::Cpu | ResourceName::Pods | ResourceName::Other(_) => 1,
        };
        assert_eq!(amount % unit, 0, "{} {name}", instance_type.name);
        facts.insert(name.to_string(), (amount / unit).to_string());
    }
    for (key, values) in &instance_type.labels {
        if !NOT_IN_TABLE.contains(&&**key) {
            facts.insert(key.to_string(), values.join("|"));
        }
    }
    facts
}

fn differences(name: &str, expected: &Facts, computed: &Facts) -> Vec<String> {
    let mut fields: Vec<_> = expected.keys().chain(computed.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    let text = |facts: &Facts, field| facts.get(field).map_or("none", String::as_str).to_owned();
    fields
        .into_iter()
        .filter(|field| expected.get(*field) != computed.get(*field))
        .map(|field| {
            let (theirs, ours) = (text(expected, field), text(computed, field));
            format!("{name}\t{field}\t{theirs}\t{ours}")
        })
        .collect()
}

#[test]
fn every_type_agrees_with_the_table_but_for_the_known_differences() {
    let settings = ClassSettings::default();
    let catalog = ec2("us-east-1", &settings).unwrap();
    let expected = expected();
    assert_eq!(expected.len(), 1363);
    let mut found = Vec::new();
    let mut n_unsold = 0;
    for (name, facts) in &expected {
        let sold = catalog.types.iter().find(|sold| *sold.name == **name);
        let facts_of_ours = match sold {
            Some(instance_type) => computed(instance_type),
            None => {
                n_unsold += 1;
                let unsold = ec2_type(name, "us-east-1", &settings).unwrap();
                computed(&unsold.expect("every type of the table"))
            }
        };
        found.extend(differences(name, facts, &facts_of_ours));
    }
    assert_eq!(n_unsold, 18);
    let known = DIFFERENCES.lines().filter(|line| !line.starts_with('#'));
    let known: Vec<_> = known.map(str::to_owned).collect();
    let new: Vec<_> = found.iter().filter(|line| !known.contains(line)).collect();
    let gone: Vec<_> = known.iter().filter(|line| !found.contains(line)).collect();
    assert!(new.is_empty(), "new differences:\n{new:#?}");
    assert!(gone.is_empty(), "differences that are no more:\n{gone:#?}");
}

#[test]
fn the_known_differences_are_the_documented_ones() {
    let count = |field: &str| {
        let column = |line: &&str| line.split('\t').nth(1) == Some(field);
        DIFFERENCES.lines().filter(column).count()
    };
    assert_eq!(count("pods"), 4);
    assert_eq!(count("memory"), 4);
    assert_eq!(count("vpc.amazonaws.com/pod-eni"), 56);
    let clock = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
    assert_eq!(count(clock), 66);
    assert_eq!(count("karpenter.k8s.aws/instance-network-bandwidth"), 3);
    let listed = DIFFERENCES.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(listed.count(), 4 + 4 + 56 + 66 + 3);
}

#[test]
fn labels_outside_the_table_hold_for_every_type() {
    let catalog = ec2("us-east-1", &ClassSettings::default()).unwrap();
    for instance_type in &catalog.types {
        let tenancy = &instance_type.labels["karpenter.k8s.aws/instance-tenancy"];
        assert_eq!(tenancy.join(" "), "default dedicated");
        let sandbox = &instance_type.labels["karpenter.k8s.aws/nitro-sandbox"];
        assert!(matches!(&*sandbox[0], "true" | "false"));
        let reserved = |key: &str| key.contains("capacity-reservation");
        assert!(!instance_type.labels.keys().any(|key| reserved(key)));
    }
}
