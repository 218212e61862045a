//! Aliases of images that AWS publishes, and the parameters that hold their ids.

use joiner_api::labels::aws::{INSTANCE_ACCELERATOR_COUNT, INSTANCE_GPU_COUNT};
use joiner_api::labels::{OS, WINDOWS_BUILD};
use joiner_api::types::{AmiFamily, Operator, Requirement};

/// The first Kubernetes version that Amazon Linux 2 has no images for.
const AL2_ENDS: (u32, u32) = (1, 33);
/// The first Kubernetes version that Windows Server 2025 has images for.
const WINDOWS_2025_STARTS: (u32, u32) = (1, 35);
const LATEST: &str = "latest";

/// Why an alias selects nothing, however often one asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    /// The family has no images for this version of Kubernetes.
    #[error(
        "there are no images of {family} for Kubernetes {kubernetes}; select {instead} in spec.amiSelectorTerms"
    )]
    Unsupported {
        /// The family.
        family: AmiFamily,
        /// The version.
        kubernetes: String,
        /// What to select instead.
        instead: &'static str,
    },
    /// The alias cannot be read; the schema keeps it out.
    #[error("{0:?} in spec.amiSelectorTerms is no alias; write FAMILY@VERSION, as al2023@latest")]
    Unreadable(String),
}

/// For which machines an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Machines without accelerators.
    Standard,
    /// Machines with GPUs.
    Nvidia,
    /// Machines with Neuron devices.
    Neuron,
    /// Windows machines of this build.
    Windows(&'static str),
}

impl Variant {
    /// What a machine must be to boot the image, its architecture aside.
    #[must_use]
    pub fn requirements(self) -> Vec<Requirement> {
        let one = |key: &str, operator: Operator, values: &[&str]| Requirement {
            key: key.to_owned(),
            operator,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            min_values: None,
        };
        let (gpus, others) = (INSTANCE_GPU_COUNT, INSTANCE_ACCELERATOR_COUNT);
        match self {
            Self::Standard => vec![
                one(gpus, Operator::DoesNotExist, &[]),
                one(others, Operator::DoesNotExist, &[]),
            ],
            Self::Nvidia => vec![one(gpus, Operator::Exists, &[])],
            Self::Neuron => vec![one(others, Operator::Exists, &[])],
            Self::Windows(build) => vec![
                one(OS, Operator::In, &["windows"]),
                one(WINDOWS_BUILD, Operator::In, &[build]),
            ],
        }
    }
}

/// A parameter that holds the id of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Its name or ARN.
    pub parameter: String,
    /// A term of the class names it; else an alias does.
    pub is_users: bool,
    /// Its value changes when AWS publishes a new image.
    pub is_mutable: bool,
    /// For which machines the image is; nothing for what users name, which is for all of its architecture.
    pub variants: Vec<Variant>,
}

/// The parameters behind an alias.
///
/// # Errors
/// The family has no images for the cluster's version.
pub(super) fn parameters(
    family: AmiFamily,
    version: &str,
    kubernetes: &str,
) -> Result<Vec<Lookup>, AliasError> {
    let minor = parse_minor(kubernetes);
    let unsupported = |instead| AliasError::Unsupported {
        family,
        kubernetes: kubernetes.to_owned(),
        instead,
    };
    let named = match family {
        AmiFamily::Al2 if minor.is_some_and(|minor| minor >= AL2_ENDS) => {
            return Err(unsupported("al2023@latest or bottlerocket@latest"));
        }
        AmiFamily::Windows2025 if minor.is_some_and(|minor| minor < WINDOWS_2025_STARTS) => {
            return Err(unsupported("windows2022@latest"));
        }
        AmiFamily::Al2 => al2(version, kubernetes),
        AmiFamily::Al2023 => al2023(version, kubernetes),
        AmiFamily::Bottlerocket => bottlerocket(version, kubernetes),
        AmiFamily::Windows2019 => windows("2019", "10.0.17763", kubernetes),
        AmiFamily::Windows2022 => windows("2022", "10.0.20348", kubernetes),
        AmiFamily::Windows2025 => windows("2025", "10.0.26100", kubernetes),
        AmiFamily::Custom => Vec::new(),
    };
    let lookup = |(parameter, variants)| Lookup {
        parameter,
        is_users: false,
        is_mutable: version == LATEST,
        variants,
    };
    Ok(named.into_iter().map(lookup).collect())
}

type Named = Vec<(String, Vec<Variant>)>;

fn al2(version: &str, kubernetes: &str) -> Named {
    let one = |folder: &str, image: &str, variants: &[Variant]| {
        let image = match version {
            LATEST => "recommended".to_owned(),
            version => format!("{image}-{kubernetes}-{version}"),
        };
        let path = format!("/aws/service/eks/optimized-ami/{kubernetes}/{folder}/{image}/image_id");
        (path, variants.to_vec())
    };
    vec![
        one("amazon-linux-2", "amazon-eks-node", &[Variant::Standard]),
        one(
            "amazon-linux-2-arm64",
            "amazon-eks-arm64-node",
            &[Variant::Standard],
        ),
        one(
            "amazon-linux-2-gpu",
            "amazon-eks-gpu-node",
            &[Variant::Neuron, Variant::Nvidia],
        ),
    ]
}

fn al2023(version: &str, kubernetes: &str) -> Named {
    let one = |arch: &str, name: &str, variant: Variant| {
        let image = match version {
            LATEST => "recommended".to_owned(),
            version => format!("amazon-eks-node-al2023-{arch}-{name}-{kubernetes}-{version}"),
        };
        let start = format!("/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023");
        (
            format!("{start}/{arch}/{name}/{image}/image_id"),
            vec![variant],
        )
    };
    vec![
        one("x86_64", "standard", Variant::Standard),
        one("x86_64", "nvidia", Variant::Nvidia),
        one("x86_64", "neuron", Variant::Neuron),
        one("arm64", "standard", Variant::Standard),
        one("arm64", "nvidia", Variant::Nvidia),
    ]
}

fn bottlerocket(version: &str, kubernetes: &str) -> Named {
    let version = version.strip_prefix('v').unwrap_or(version);
    let one = |suffix: &str, arch: &str, variants: &[Variant]| {
        let start = format!("/aws/service/bottlerocket/aws-k8s-{kubernetes}{suffix}");
        (
            format!("{start}/{arch}/{version}/image_id"),
            variants.to_vec(),
        )
    };
    vec![
        one("", "x86_64", &[Variant::Standard, Variant::Neuron]),
        one("", "arm64", &[Variant::Standard]),
        one("-nvidia", "x86_64", &[Variant::Nvidia]),
        one("-nvidia", "arm64", &[Variant::Nvidia]),
    ]
}

fn windows(year: &str, build: &'static str, kubernetes: &str) -> Named {
    let name = format!("Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}");
    let path = format!("/aws/service/ami-windows-latest/{name}/image_id");
    vec![(path, vec![Variant::Windows(build)])]
}

/// `1.36` as numbers.
fn parse_minor(kubernetes: &str) -> Option<(u32, u32)> {
    let (major, minor) = kubernetes.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
