//! Tabular: what does a node say that it runs, by the family of its image?
//!
//! The figures are those of images that EKS publishes: releases, kernels and container runtimes that
//! went together late in 2025.

use serde_json::{Value, json};

use crate::names::{Digest, hex};

/// Letters of a commit in the version of a kubelet.
const COMMIT_LEN: usize = 7;

/// A family of machine images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageFamily {
    /// Amazon Linux 2.
    Al2,
    /// Amazon Linux 2023.
    #[default]
    Al2023,
    /// Bottlerocket.
    Bottlerocket,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
}

/// What goes together in an image.
struct Figures {
    family: ImageFamily,
    /// Name of the family in EC2NodeClasses.
    name: &'static str,
    /// Release when none is asked for.
    release: &'static str,
    kernel: &'static str,
    runtime: &'static str,
}

const TABLE: [Figures; 6] = [
    Figures {
        family: ImageFamily::Al2,
        name: "AL2",
        release: "20251112",
        kernel: "5.10.245-241.976.amzn2",
        runtime: "containerd://1.7.27",
    },
    Figures {
        family: ImageFamily::Al2023,
        name: "AL2023",
        release: "20251112",
        kernel: "6.12.53-69.119.amzn2023",
        runtime: "containerd://2.1.4",
    },
    Figures {
        family: ImageFamily::Bottlerocket,
        name: "Bottlerocket",
        release: "1.50.0",
        kernel: "6.12.53",
        runtime: "containerd://2.1.5+bottlerocket",
    },
    Figures {
        family: ImageFamily::Windows2019,
        name: "Windows2019",
        release: "2025.11.14",
        kernel: "10.0.17763.8027",
        runtime: "containerd://2.1.4",
    },
    Figures {
        family: ImageFamily::Windows2022,
        name: "Windows2022",
        release: "2025.11.14",
        kernel: "10.0.20348.4405",
        runtime: "containerd://2.1.4",
    },
    Figures {
        family: ImageFamily::Windows2025,
        name: "Windows2025",
        release: "2025.11.14",
        kernel: "10.0.26100.7171",
        runtime: "containerd://2.1.4",
    },
];

impl ImageFamily {
    /// The family of this name in EC2NodeClasses, or of this alias: case does not matter. None for
    /// `Custom` and for what is not known.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut table = TABLE.iter();
        let found = table.find(|own| own.name.eq_ignore_ascii_case(name));
        found.map(|own| own.family)
    }

    /// The release that is newest: `20251112`, or `1.50.0`.
    #[must_use]
    pub fn newest(self) -> &'static str {
        self.figures().release
    }

    /// True for Windows.
    #[must_use]
    pub fn is_windows(self) -> bool {
        matches!(
            self,
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025
        )
    }

    /// Year of a Windows release; empty for others.
    #[must_use]
    pub fn windows_year(self) -> &'static str {
        self.figures().name.strip_prefix("Windows").unwrap_or("")
    }

    /// Build of a Windows release, as its node label says it; empty for others.
    #[must_use]
    pub fn windows_build(self) -> &'static str {
        let kernel = self.figures().kernel;
        match self.is_windows() {
            true => kernel.rsplit_once('.').map_or(kernel, |(build, _)| build),
            false => "",
        }
    }

    fn figures(self) -> &'static Figures {
        // The table has every family.
        let mut table = TABLE.iter();
        table.find(|own| own.family == self).unwrap_or(&TABLE[1])
    }
}

/// What a machine runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs<'a> {
    /// Family of its image.
    pub family: ImageFamily,
    /// Release of its image; the newest if it does not say.
    pub release: Option<&'a str>,
    /// `amd64` or `arm64`.
    pub arch: &'a str,
    /// It has NVIDIA GPUs.
    pub gpu: bool,
    /// Version of the API server: `v1.36.3`.
    pub server: &'a str,
}

/// `status.nodeInfo` of a node that runs this; `uid` tells machines apart.
#[must_use]
pub fn node_info(runs: &Runs<'_>, uid: &str) -> Value {
    let figures = runs.family.figures();
    let release = runs.release.unwrap_or(figures.release);
    let version = kubelet_version(runs.server);
    let id = hex(Digest::default().text(uid).finish());
    let system = match runs.family.is_windows() {
        true => "windows",
        false => "linux",
    };
    json!({
        "machineID": id.repeat(2),
        "systemUUID": uid,
        "bootID": uid,
        "kernelVersion": kernel(figures, runs.arch),
        "osImage": os_image(runs, release),
        "containerRuntimeVersion": figures.runtime,
        "kubeletVersion": version,
        "kubeProxyVersion": "",
        "operatingSystem": system,
        "architecture": runs.arch,
    })
}

/// As `uname -r` prints it: Amazon's kernels name the machine, too.
fn kernel(figures: &Figures, arch: &str) -> String {
    match figures.family {
        ImageFamily::Al2 | ImageFamily::Al2023 => {
            let machine = match arch {
                "arm64" => "aarch64",
                _ => "x86_64",
            };
            format!("{}.{machine}", figures.kernel)
        }
        ImageFamily::Bottlerocket
        | ImageFamily::Windows2019
        | ImageFamily::Windows2022
        | ImageFamily::Windows2025 => figures.kernel.to_owned(),
    }
}

fn os_image(runs: &Runs<'_>, release: &str) -> String {
    match runs.family {
        ImageFamily::Al2 => "Amazon Linux 2".to_owned(),
        ImageFamily::Al2023 => format!("Amazon Linux 2023.9.{release}"),
        ImageFamily::Bottlerocket => {
            let variant = if runs.gpu { "-nvidia" } else { "" };
            let minor = minor(runs.server);
            format!("Bottlerocket OS {release} (aws-k8s-{minor}{variant})")
        }
        windows @ (ImageFamily::Windows2019
        | ImageFamily::Windows2022
        | ImageFamily::Windows2025) => {
            format!("Windows Server {} Datacenter", windows.windows_year())
        }
    }
}

/// `v1.36.3-eks-1a2b3c4`: EKS builds its own kubelets, one for each patch release.
fn kubelet_version(server: &str) -> String {
    let plain = plain(server);
    let mut commit = hex(Digest::default().text(plain).text("eks").finish());
    commit.truncate(COMMIT_LEN);
    format!("{plain}-eks-{commit}")
}

/// A version without what its builder appended.
fn plain(server: &str) -> &str {
    server.split(['-', '+']).next().unwrap_or(server)
}

/// `1.36` of `v1.36.3`.
#[must_use]
pub fn minor(server: &str) -> String {
    let numbers = plain(server).trim_start_matches('v');
    let first: Vec<&str> = numbers.split('.').take(2).collect();
    first.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(family: &str, arch: &str, gpu: bool) -> String {
        let runs = Runs {
            family: ImageFamily::named(family).unwrap(),
            release: None,
            arch,
            gpu,
            server: "v1.36.3",
        };
        let info = node_info(&runs, "uid");
        ["osImage", "kernelVersion", "containerRuntimeVersion"]
            .map(|field| info[field].as_str().unwrap().to_owned())
            .join(" | ")
    }

    #[test]
    fn nodes_say_what_eks_images_say() {
        let cases = [
            (
                "al2",
                "arm64",
                "Amazon Linux 2 | 5.10.245-241.976.amzn2.aarch64 | containerd://1.7.27",
            ),
            (
                "AL2023",
                "amd64",
                "Amazon Linux 2023.9.20251112 | 6.12.53-69.119.amzn2023.x86_64 | containerd://2.1.4",
            ),
            (
                "bottlerocket",
                "arm64",
                "Bottlerocket OS 1.50.0 (aws-k8s-1.36) | 6.12.53 | containerd://2.1.5+bottlerocket",
            ),
            (
                "Windows2022",
                "amd64",
                "Windows Server 2022 Datacenter | 10.0.20348.4405 | containerd://2.1.4",
            ),
        ];
        for (family, arch, expected) in cases {
            assert_eq!(shown(family, arch, false), expected);
        }
        assert!(shown("Bottlerocket", "amd64", true).contains("(aws-k8s-1.36-nvidia)"));
        assert_eq!(ImageFamily::named("Custom"), None);
    }

    #[test]
    fn the_table_has_every_family_once() {
        for own in &TABLE {
            assert_eq!(own.family.figures().name, own.name);
        }
    }

    #[test]
    fn kubelets_are_those_of_the_server() {
        let version = |server: &str| {
            let runs = Runs {
                arch: "amd64",
                server,
                ..Runs::default()
            };
            node_info(&runs, "u")["kubeletVersion"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let of_eks = version("v1.36.3-eks-abcdef0");
        assert_eq!(version("v1.36.3"), of_eks);
        assert!(of_eks.starts_with("v1.36.3-eks-"), "{of_eks}");
        assert_eq!(of_eks.len(), "v1.36.3-eks-".len() + COMMIT_LEN);
        assert_eq!(minor("v1.36.3+k3s1"), "1.36");
        assert_eq!(ImageFamily::Windows2019.windows_build(), "10.0.17763");
    }
}
