//! The images that the simulated account has: by alias as EKS publishes them, by id, name, tags or
//! parameter as asked for.

use std::collections::BTreeMap;

use joiner_api::labels::aws;
use joiner_api::types::{Ami, AmiTerm, Operator, Requirement};
use joiner_cluster::ImageFamily;
use joiner_model::keys;

use crate::account::{id_of, is_id, is_there};

const AMD64: &str = "amd64";
const ARM64: &str = "arm64";
const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// First minor version of Kubernetes without Amazon Linux 2.
const NO_AL2_SINCE: u32 = 33;
/// First minor version of Kubernetes with Windows Server 2025.
const WINDOWS_2025_SINCE: u32 = 35;

/// Why there are no images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoImage {
    /// Nothing matches.
    NotFound(String),
    /// The family is not published for this version of Kubernetes.
    Unsupported(String),
}

/// Which hardware an image is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Standard,
    Nvidia,
    Neuron,
}

/// The images of these terms, for a version of Kubernetes such as `1.36`.
pub(crate) fn images(terms: &[AmiTerm], version: &str) -> Result<Vec<Ami>, NoImage> {
    let mut found: BTreeMap<(String, Vec<String>), Ami> = BTreeMap::new();
    let mut add = |ami: Ami| {
        let keys = ami.requirements.iter().map(|own| format!("{own:?}"));
        found.insert((ami.id.clone(), keys.collect()), ami);
    };
    let mut n_named = 0;
    for term in terms {
        if let Some(alias) = &term.alias {
            by_alias(alias, version)?.into_iter().for_each(&mut add);
        } else if let Some(id) = &term.id {
            if is_id(id, "ami-") {
                // Who names two images means one for each architecture.
                let arch = if n_named % 2 == 0 { AMD64 } else { ARM64 };
                add(plain(id.clone(), &format!("custom-{arch}-{id}"), arch));
                n_named += 1;
            }
        } else if let Some(parameter) = &term.ssm_parameter {
            if is_there(last(parameter)) {
                let arch = archs(parameter).first().copied().unwrap_or(AMD64);
                let name = last(parameter.trim_end_matches("/image_id"));
                add(plain(id_of("ami-", &[parameter]), name, arch));
            }
        } else {
            selected(term).into_iter().for_each(&mut add);
        }
    }
    if found.is_empty() {
        let message = "the simulated account has no image that spec.amiSelectorTerms match";
        return Err(NoImage::NotFound(message.to_owned()));
    }
    Ok(found.into_values().collect())
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Architectures that a name speaks of; both when it leaves that open.
fn archs(name: &str) -> Vec<&'static str> {
    let name = name.to_ascii_lowercase();
    let speaks = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match (speaks(&["arm64", "aarch64"]), speaks(&["x86_64", "amd64"])) {
        (true, false) => vec![ARM64],
        (false, true) => vec![AMD64],
        (true, true) => vec![AMD64, ARM64],
        (false, false) if name.contains('*') || name.is_empty() => vec![AMD64, ARM64],
        (false, false) => vec![AMD64],
    }
}

/// Images by name or by tags.
fn selected(term: &AmiTerm) -> Vec<Ami> {
    let tags = term.tags.iter().flatten();
    let words: Vec<String> = tags.map(|(key, value)| format!("{key}={value}")).collect();
    let mut values = term.tags.iter().flat_map(|tags| tags.values());
    let name = term.name.as_deref().unwrap_or_default();
    if !is_there(name) || !values.all(|value| is_there(value)) {
        return Vec::new();
    }
    let made = archs(name).into_iter().map(|arch| {
        let id = id_of("ami-", &[name, &words.join(","), arch]);
        let shown = match name {
            "" => format!("custom-{arch}"),
            name => name.replace('*', arch),
        };
        plain(id, &shown, arch)
    });
    made.collect()
}

fn plain(id: String, name: &str, arch: &str) -> Ami {
    Ami {
        id,
        name: Some(name.to_owned()),
        deprecated: None,
        requirements: vec![is_in(keys::ARCH, arch)],
    }
}

fn is_in(key: &str, value: &str) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
        min_values: None,
    }
}

fn by_alias(alias: &str, version: &str) -> Result<Vec<Ami>, NoImage> {
    let unknown = |why: &str| NoImage::NotFound(format!("the alias {alias:?} {why}"));
    let (family, release) = alias.split_once('@').unwrap_or((alias, "latest"));
    let family = ImageFamily::named(family).ok_or_else(|| unknown("names no family of images"))?;
    supported(family, version)?;
    let release = release_of(family, release)
        .ok_or_else(|| unknown("names a release that was never published"))?;
    Ok(match family {
        ImageFamily::Al2 => al2(version, &release),
        ImageFamily::Al2023 => al2023(version, &release),
        ImageFamily::Bottlerocket => bottlerocket(version, &release),
        ImageFamily::Windows2019 | ImageFamily::Windows2022 | ImageFamily::Windows2025 => {
            vec![windows(family, version, &release)]
        }
    })
}

fn supported(family: ImageFamily, version: &str) -> Result<(), NoImage> {
    let minor = version.rsplit('.').next().and_then(|own| own.parse().ok());
    let minor: u32 = minor.unwrap_or(NO_AL2_SINCE);
    let (name, is_published) = match family {
        ImageFamily::Al2 => ("Amazon Linux 2", minor < NO_AL2_SINCE),
        ImageFamily::Windows2025 => ("Windows Server 2025", minor >= WINDOWS_2025_SINCE),
        ImageFamily::Al2023
        | ImageFamily::Bottlerocket
        | ImageFamily::Windows2019
        | ImageFamily::Windows2022 => return Ok(()),
    };
    match is_published {
        true => Ok(()),
        false => Err(NoImage::Unsupported(format!(
            "EKS publishes no image of {name} for Kubernetes {version}: use another alias"
        ))),
    }
}

/// The release of an alias, `latest` resolved; none for one that cannot be.
fn release_of(family: ImageFamily, asked: &str) -> Option<String> {
    if asked == "latest" {
        return Some(family.newest().to_owned());
    }
    let number = asked.strip_prefix('v').unwrap_or(asked);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let well_formed = match family {
        ImageFamily::Bottlerocket => {
            let parts: Vec<&str> = number.split('.').collect();
            parts.len() == 3 && parts.into_iter().all(is_number)
        }
        ImageFamily::Al2 | ImageFamily::Al2023 => {
            asked.starts_with('v') && number.len() == 8 && is_number(number)
        }
        ImageFamily::Windows2019 | ImageFamily::Windows2022 | ImageFamily::Windows2025 => false,
    };
    well_formed.then(|| number.to_owned())
}

fn image(name: String, arch: &str, variant: Variant) -> Ami {
    let exists = |key: &str, there: bool| Requirement {
        key: key.to_owned(),
        operator: if there {
            Operator::Exists
        } else {
            Operator::DoesNotExist
        },
        values: Vec::new(),
        min_values: None,
    };
    let mut requirements = vec![is_in(keys::ARCH, arch)];
    match variant {
        Variant::Standard => {
            requirements.push(exists(aws::INSTANCE_GPU_COUNT, false));
            requirements.push(exists(aws::INSTANCE_ACCELERATOR_COUNT, false));
        }
        Variant::Nvidia => requirements.push(exists(aws::INSTANCE_GPU_COUNT, true)),
        Variant::Neuron => requirements.push(exists(aws::INSTANCE_ACCELERATOR_COUNT, true)),
    }
    Ami {
        id: id_of("ami-", &[&name]),
        name: Some(name),
        deprecated: None,
        requirements,
    }
}

fn al2(version: &str, release: &str) -> Vec<Ami> {
    let name = |kind: &str| format!("amazon-eks-{kind}node-{version}-v{release}");
    vec![
        image(name(""), AMD64, Variant::Standard),
        image(name("arm64-"), ARM64, Variant::Standard),
        image(name("gpu-"), AMD64, Variant::Neuron),
        image(name("gpu-"), AMD64, Variant::Nvidia),
    ]
}

fn al2023(version: &str, release: &str) -> Vec<Ami> {
    let one = |machine: &str, arch: &str, variant: Variant| {
        let word = match variant {
            Variant::Standard => "standard",
            Variant::Nvidia => "nvidia",
            Variant::Neuron => "neuron",
        };
        let name = format!("amazon-eks-node-al2023-{machine}-{word}-{version}-v{release}");
        image(name, arch, variant)
    };
    vec![
        one("x86_64", AMD64, Variant::Standard),
        one("x86_64", AMD64, Variant::Nvidia),
        one("x86_64", AMD64, Variant::Neuron),
        one("arm64", ARM64, Variant::Standard),
        one("arm64", ARM64, Variant::Nvidia),
    ]
}

fn bottlerocket(version: &str, release: &str) -> Vec<Ami> {
    let one = |kind: &str, machine: &str, arch: &str, variant: Variant| {
        let start = format!("bottlerocket-aws-k8s-{version}{kind}-{machine}-v{release}");
        let commit = id_of("", &[&start]);
        let name = format!("{start}-{}", commit.get(1..9).unwrap_or_default());
        image(name, arch, variant)
    };
    vec![
        one("", "x86_64", AMD64, Variant::Standard),
        one("", "x86_64", AMD64, Variant::Neuron),
        one("", "aarch64", ARM64, Variant::Standard),
        one("-nvidia", "x86_64", AMD64, Variant::Nvidia),
        one("-nvidia", "aarch64", ARM64, Variant::Nvidia),
    ]
}

fn windows(family: ImageFamily, version: &str, release: &str) -> Ami {
    let year = family.windows_year();
    let name = format!("Windows_Server-{year}-English-Core-EKS_Optimized-{version}-{release}");
    Ami {
        id: id_of("ami-", &[&name]),
        name: Some(name),
        deprecated: None,
        requirements: vec![
            is_in(keys::OS, "windows"),
            is_in(keys::ARCH, AMD64),
            is_in(WINDOWS_BUILD, family.windows_build()),
        ],
    }
}

/// The release that an image's name speaks of: `20251112`, `1.50.0`.
pub(crate) fn release_in(name: &str) -> Option<&str> {
    let mut parts = name.split('-');
    let is_release = |part: &&str| {
        let number = part.strip_prefix('v').unwrap_or("");
        number.len() > 4 && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    parts.find(is_release)?.strip_prefix('v')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_alias(alias: &str, version: &str) -> Result<Vec<Ami>, NoImage> {
        let term = AmiTerm {
            alias: Some(alias.to_owned()),
            ..AmiTerm::default()
        };
        images(&[term], version)
    }

    fn names(amis: &[Ami]) -> Vec<&str> {
        let mut names: Vec<&str> = amis.iter().filter_map(|ami| ami.name.as_deref()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn an_alias_of_al2023_has_five_images() {
        let found = of_alias("al2023@latest", "1.36").unwrap();
        let expected = [
            "amazon-eks-node-al2023-arm64-nvidia-1.36-v20251112",
            "amazon-eks-node-al2023-arm64-standard-1.36-v20251112",
            "amazon-eks-node-al2023-x86_64-neuron-1.36-v20251112",
            "amazon-eks-node-al2023-x86_64-nvidia-1.36-v20251112",
            "amazon-eks-node-al2023-x86_64-standard-1.36-v20251112",
        ];
        assert_eq!(names(&found), expected);
        assert!(found.iter().all(|ami| is_id(&ami.id, "ami-")));
        let standard = found.iter().find(|ami| {
            ami.name
                .as_deref()
                .is_some_and(|own| own.contains("x86_64-standard"))
        });
        let shown: Vec<String> = standard
            .unwrap()
            .requirements
            .iter()
            .map(|own| format!("{} {:?}", own.key, own.operator))
            .collect();
        assert_eq!(
            shown,
            [
                "kubernetes.io/arch In",
                "karpenter.k8s.aws/instance-gpu-count DoesNotExist",
                "karpenter.k8s.aws/instance-accelerator-count DoesNotExist",
            ]
        );
    }

    #[test]
    fn other_families_have_theirs() {
        let al2 = of_alias("al2@v20250101", "1.32").unwrap();
        assert_eq!(al2.len(), 4);
        assert_eq!(names(&al2)[1], names(&al2)[2], "one image, two variants");
        let rocket = of_alias("bottlerocket@1.49.0", "1.36").unwrap();
        assert!(names(&rocket)[0].starts_with("bottlerocket-aws-k8s-1.36-aarch64-v1.49.0-"));
        let windows = of_alias("windows2022@latest", "1.36").unwrap();
        assert_eq!(
            names(&windows),
            ["Windows_Server-2022-English-Core-EKS_Optimized-1.36-2025.11.14"]
        );
        let build = windows[0].requirements.last().unwrap().values.clone();
        assert_eq!(build, ["10.0.20348"]);
    }

    #[test]
    fn what_was_never_published_is_not_found() {
        for (alias, version, is_unsupported) in [
            ("al2@latest", "1.36", true),
            ("windows2025@latest", "1.34", true),
            ("al2023@v1", "1.36", false),
            ("al2023@20250101", "1.36", false),
            ("bottlerocket@v1.2", "1.36", false),
            ("ubuntu@latest", "1.36", false),
        ] {
            let error = of_alias(alias, version).unwrap_err();
            let unsupported = matches!(error, NoImage::Unsupported(_));
            assert_eq!(unsupported, is_unsupported, "{alias}: {error:?}");
        }
        assert!(of_alias("windows2025@latest", "1.35").is_ok());
    }

    #[test]
    fn ids_names_tags_and_parameters_are_there_unless_they_say_missing() {
        let by = |term: AmiTerm| images(&[term], "1.36").map(|amis| amis.len()).ok();
        let id = |id: &str| AmiTerm {
            id: Some(id.to_owned()),
            ..AmiTerm::default()
        };
        let name = |name: &str| AmiTerm {
            name: Some(name.to_owned()),
            ..AmiTerm::default()
        };
        let parameter = |path: &str| AmiTerm {
            ssm_parameter: Some(path.to_owned()),
            ..AmiTerm::default()
        };
        assert_eq!(by(id("ami-0123456789abcdef0")), Some(1));
        assert_eq!(by(id("ami-web")), None);
        assert_eq!(by(name("golden-*")), Some(2));
        assert_eq!(by(name("golden-arm64")), Some(1));
        assert_eq!(by(name("missing")), None);
        assert_eq!(by(parameter("/golden/arm64/image_id")), Some(1));
        assert_eq!(by(parameter("/golden/missing")), None);
        let two = images(&[id("ami-0a1b2c3d"), id("ami-1a1b2c3d")], "1.36").unwrap();
        assert_ne!(two[0].requirements, two[1].requirements);
    }

    #[test]
    fn releases_are_read_from_names() {
        for alias in ["al2023@v20250505", "bottlerocket@v1.49.0"] {
            for ami in of_alias(alias, "1.36").unwrap() {
                let release = release_in(ami.name.as_deref().unwrap());
                assert!(alias.ends_with(release.unwrap()), "{ami:?}");
            }
        }
        assert_eq!(release_in("golden-v2"), None);
    }
}
