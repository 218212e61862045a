//! What nodes must know of their cluster.

/// Facts about the cluster that hold while the program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Its name, which tags carry.
    pub name: String,
    /// Region that it is in.
    pub region: String,
    /// Where its API server is: a URL.
    pub endpoint: String,
    /// Certificate of its authority, in base64.
    pub ca_bundle: Option<String>,
    /// Address of its DNS service, if it was found.
    pub dns_ip: Option<String>,
    /// Its range of service addresses, if it was found; AL2023 nodes need it.
    pub cidr: Option<String>,
}

impl Cluster {
    /// Whether services have IPv6 addresses.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        self.dns_ip.as_deref().is_some_and(is_ipv6)
    }
}

/// Whether an address is one of version 6.
pub(crate) fn is_ipv6(address: &str) -> bool {
    address.contains(':')
}
