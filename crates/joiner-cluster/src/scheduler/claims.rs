//! Where can a pod's volumes be?

use std::collections::{BTreeMap, BTreeSet};

use joiner_machinery::meta;
use serde_json::Value;

use super::cluster::Cluster;
use super::labels::{NodeTerm, any_matches, items, node_terms, texts};
use super::node::NodeInfo;
use super::pod::{ClaimUse, PodInfo};
use super::reasons::Reason;
use crate::view::View;
use crate::volumes::{self, Mode};

/// Driver and handle of a volume that a node attaches.
type Attachment = (String, String);

/// A claim that gets its volume once a node is chosen.
struct OpenClaim {
    /// Node terms of volumes that would do; none for volumes that are anywhere.
    candidates: Vec<Option<Vec<NodeTerm>>>,
    /// Where the class makes new volumes; nowhere when absent, anywhere when empty.
    provisioned: Option<Vec<NodeTerm>>,
}

/// What a pod's claims demand of a node.
#[derive(Default)]
pub(crate) struct VolumeRules {
    bound: Vec<Vec<NodeTerm>>,
    lost: bool,
    in_use: bool,
    open: Vec<OpenClaim>,
    /// Claims to be told of the node, by name.
    pub(crate) to_tell: Vec<String>,
    /// The node that claims were told of before.
    pub(crate) told: Option<String>,
    /// By node, true when attaching would be one too many.
    full: Vec<bool>,
}

impl VolumeRules {
    /// What stands against a node.
    pub(crate) fn against(&self, node: &NodeInfo, ix: usize) -> Option<Reason> {
        let fits = |terms: &Vec<NodeTerm>| any_matches(terms, &node.name, &node.labels);
        if self.in_use {
            return Some(Reason::SingleUse);
        }
        if self.full.get(ix).copied().unwrap_or(false) {
            return Some(Reason::VolumeCount);
        }
        if self.lost {
            return Some(Reason::LostVolume);
        }
        if !self.bound.iter().all(fits) {
            return Some(Reason::VolumeAffinity);
        }
        let served = |claim: &OpenClaim| {
            claim
                .candidates
                .iter()
                .any(|terms| terms.as_ref().is_none_or(fits))
                || claim
                    .provisioned
                    .as_ref()
                    .is_some_and(|terms| terms.is_empty() || fits(terms))
        };
        (!self.open.iter().all(served)).then_some(Reason::NoVolume)
    }

    /// True while claims wait for their volumes.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The rules for a pod.
    ///
    /// # Errors
    /// When no node at all would do, with the reason.
    pub(crate) fn read(
        view: &View<'_>,
        pod: &PodInfo,
        attached: &mut Attached,
        cluster: &Cluster,
    ) -> Result<Self, String> {
        let mut rules = Self::default();
        let (mut immediate, mut wanted) = (false, BTreeSet::new());
        for claim_use in &pod.claims {
            let claim = claim_of(view, pod, claim_use)?;
            wanted.extend(attachment(view, claim));
            let single =
                texts(&claim["spec"]["accessModes"]).any(|mode| mode == "ReadWriteOncePod");
            rules.in_use |= single && is_used(cluster, pod, &claim_use.name);
            if volumes::is_bound(claim) {
                let name = claim["spec"]["volumeName"].as_str().unwrap_or("");
                match view.get(volumes::VOLUMES, "", name) {
                    None => rules.lost = true,
                    Some(volume) => {
                        rules
                            .bound
                            .extend(node_terms(&volume["spec"]["nodeAffinity"]["required"]));
                    }
                }
                let told = meta::annotation(claim, volumes::SELECTED_NODE);
                rules.told = rules.told.or(told.map(str::to_owned));
            } else if volumes::mode(view, claim) == Mode::Immediate {
                immediate = true;
            } else {
                rules.open.push(OpenClaim::read(view, claim));
                match meta::annotation(claim, volumes::SELECTED_NODE) {
                    Some(node) => rules.told = Some(node.to_owned()),
                    None => rules.to_tell.push(claim_use.name.clone()),
                }
            }
        }
        if immediate {
            return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
        rules.full = attached.full(view, cluster, &wanted);
        Ok(rules)
    }
}

impl OpenClaim {
    fn read(view: &View<'_>, claim: &Value) -> Self {
        let candidates = volumes::candidates(view, claim)
            .map(|volume| node_terms(&volume["spec"]["nodeAffinity"]["required"]));
        let class = volumes::class_of(view, claim).filter(|class| volumes::can_provision(class));
        Self {
            candidates: candidates.collect(),
            provisioned: class.map(|class| {
                items(&class["allowedTopologies"])
                    .map(NodeTerm::read_topology)
                    .collect()
            }),
        }
    }
}

/// The claim, when it can be waited for at all.
fn claim_of<'v>(view: &View<'v>, pod: &PodInfo, used: &ClaimUse) -> Result<&'v Value, String> {
    let name = &used.name;
    let Some(claim) = view.get(volumes::CLAIMS, &pod.key.0, name) else {
        return Err(if used.ephemeral {
            format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim \
                 \"{name}\""
            )
        } else {
            format!("persistentvolumeclaim \"{name}\" not found")
        });
    };
    if claim["status"]["phase"] == "Lost" {
        let volume = claim["spec"]["volumeName"].as_str().unwrap_or("");
        return Err(format!(
            "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
        ));
    }
    if meta::is_deleting(claim) {
        return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
    }
    Ok(claim)
}

/// True when another pod that is placed uses the claim.
fn is_used(cluster: &Cluster, pod: &PodInfo, claim: &str) -> bool {
    cluster.pods.iter().any(|(_, other)| {
        other.key.0 == pod.key.0
            && other.uid != pod.uid
            && other.claims.iter().any(|used| used.name == claim)
    })
}

/// What a node would attach for a claim: its volume, or the one that will be made.
fn attachment(view: &View<'_>, claim: &Value) -> Option<Attachment> {
    let name = claim["spec"]["volumeName"].as_str().unwrap_or("");
    if let Some(volume) = view.get(volumes::VOLUMES, "", name) {
        let (driver, handle) = volumes::csi_of(volume)?;
        return Some((driver.to_owned(), handle.to_owned()));
    }
    let class = volumes::class_of(view, claim)?;
    let driver = class["provisioner"].as_str()?;
    let handle = format!("{}/{}", meta::namespace(claim), meta::name(claim));
    Some((driver.to_owned(), handle))
}

/// Volumes on nodes, worked out when the first pod with claims comes along, and only where
/// CSINodes name limits.
#[derive(Default)]
pub(crate) struct Attached {
    ready: bool,
    limits: Vec<BTreeMap<String, usize>>,
    volumes: Vec<BTreeSet<Attachment>>,
}

impl Attached {
    /// By node, whether these volumes would be too many; empty when nothing is limited.
    fn full(
        &mut self,
        view: &View<'_>,
        cluster: &Cluster,
        wanted: &BTreeSet<Attachment>,
    ) -> Vec<bool> {
        if wanted.is_empty() {
            return Vec::new();
        }
        self.prepare(view, cluster);
        let full = |(limits, volumes): (&BTreeMap<String, usize>, &BTreeSet<Attachment>)| {
            limits.iter().any(|(driver, limit)| {
                let of = |set: &BTreeSet<Attachment>| {
                    set.iter()
                        .filter(|(own, _)| own == driver)
                        .cloned()
                        .collect::<BTreeSet<_>>()
                };
                let new = of(&wanted.difference(volumes).cloned().collect()).len();
                new > 0 && of(volumes).len() + new > *limit
            })
        };
        self.limits.iter().zip(&self.volumes).map(full).collect()
    }

    /// Takes note of a placement.
    pub(crate) fn place(&mut self, view: &View<'_>, node: usize, pod: &PodInfo) {
        if self.ready
            && let Some(own) = self.volumes.get_mut(node)
        {
            own.extend(attachments(view, pod));
        }
    }

    fn prepare(&mut self, view: &View<'_>, cluster: &Cluster) {
        if self.ready {
            return;
        }
        self.ready = true;
        let limits: Vec<_> = cluster
            .rooms
            .iter()
            .map(|room| limits(view, &room.info.name))
            .collect();
        if limits.iter().all(BTreeMap::is_empty) {
            return;
        }
        self.volumes = vec![BTreeSet::new(); limits.len()];
        self.limits = limits;
        for (node, pod) in &cluster.pods {
            self.volumes[*node].extend(attachments(view, pod));
        }
    }
}

fn attachments(view: &View<'_>, pod: &PodInfo) -> Vec<Attachment> {
    pod.claims
        .iter()
        .filter_map(|used| attachment(view, view.get(volumes::CLAIMS, &pod.key.0, &used.name)?))
        .collect()
}

fn limits(view: &View<'_>, node: &str) -> BTreeMap<String, usize> {
    let Some(csi) = view.get(volumes::CSI_NODES, "", node) else {
        return BTreeMap::new();
    };
    let limits = items(&csi["spec"]["drivers"]).filter_map(|driver| {
        let count = usize::try_from(driver["allocatable"]["count"].as_u64()?).ok()?;
        Some((driver["name"].as_str()?.to_owned(), count))
    });
    limits.collect()
}
