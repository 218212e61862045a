//! Where the volumes of a pod can be reached, and who serves them.

use std::collections::HashMap;

use joiner_model::{Claim, Name, Requirements, Terms, keys};

use crate::documents::Document;
use crate::error::{Place, ReadError};
use crate::names::Names;
use crate::objects::Objects;
use crate::pod::VolumeUse;
use crate::selection;
use crate::wire::pod::NodeSelector;
use crate::wire::volume::{AnnotatedMeta, PersistentVolume, PersistentVolumeClaim, StorageClass};
use crate::wire::{Expression, text};
use crate::workloads::OwnClaim;

const BOUND: &str = "pv.kubernetes.io/bind-completed";
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const EBS: &str = "ebs.csi.aws.com";
/// Drivers that were once part of Kubernetes, and what does their work today.
const IN_TREE: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", EBS),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];
/// More combinations of places than this are not looked at.
const ALTERNATIVES_MAX: usize = 256;

/// Claims, volumes and classes of the input.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeObjects {
    claims: HashMap<Name, ClaimObject>,
    volumes: HashMap<Name, VolumeObject>,
    classes: HashMap<Name, ClassObject>,
    /// When the newest default class was made, and its name.
    default_class: Option<(String, Name)>,
}

#[derive(Clone, Debug)]
struct ClaimObject {
    /// `None` is the default class, an empty name is no class at all.
    class: Option<Name>,
    volume: Option<Name>,
    deleting: bool,
    lost: bool,
    bound: bool,
}

#[derive(Clone, Debug)]
struct VolumeObject {
    deleting: bool,
    driver: Option<Name>,
    /// One of these must hold for the node; empty: anywhere.
    terms: Vec<Terms>,
    /// Its node affinity has only terms that no node can match.
    nowhere: bool,
}

#[derive(Clone, Debug)]
struct ClassObject {
    driver: Option<Name>,
    immediate: bool,
    terms: Vec<Terms>,
}

/// A pod whose volumes are to be looked up.
pub(crate) struct Mounts<'m> {
    pub(crate) namespace: &'m str,
    /// Name of the pod without its namespace.
    pub(crate) pod: &'m str,
    pub(crate) uses: &'m [VolumeUse],
    pub(crate) own_claims: &'m [OwnClaim],
    /// The pod is made from a workload: claims and classes may be left out of the input.
    pub(crate) expanded: bool,
}

/// Where one volume can be, and its driver.
struct Found<'f> {
    terms: &'f [Terms],
    driver: Option<Name>,
}

/// What the volumes of a pod come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) terms: Vec<Terms>,
    pub(crate) claims: Vec<Claim>,
}

impl VolumeObjects {
    /// Where the volumes of a pod are.
    ///
    /// # Errors
    /// Why the pod must not be placed.
    pub(crate) fn reach(&self, mounts: &Mounts<'_>) -> Result<Reach, String> {
        let mut reach = Reach::default();
        let mut alternatives: Vec<&[Terms]> = Vec::new();
        let full = |name: &str| Name::from(format!("{}/{name}", mounts.namespace));
        let mut note = |claim: Name, found: Found<'_>| {
            if let Some(driver) = found.driver {
                reach.claims.push(Claim { driver, claim });
            }
        };
        for volume in mounts.uses {
            let (claim, found) = match volume {
                VolumeUse::Claim(name) => {
                    let claim = full(name);
                    let found = self.claimed(&claim)?;
                    (claim, found)
                }
                VolumeUse::Ephemeral { volume, class } => {
                    let claim = full(&format!("{}-{volume}", mounts.pod));
                    let found = self.claimed_or_new(&claim, class.as_ref(), mounts.expanded)?;
                    (claim, found)
                }
            };
            alternatives.push(found.terms);
            note(claim, found);
        }
        for own in mounts.own_claims {
            let claim = full(&format!("{}-{}", own.template, mounts.pod));
            let found = self.claimed_or_new(&claim, own.class.as_ref(), mounts.expanded)?;
            alternatives.push(found.terms);
            note(claim, found);
        }
        reach.claims.sort();
        reach.claims.dedup();
        reach.terms = combined(&alternatives)?;
        Ok(reach)
    }

    /// The claims of a running pod that can be made out.
    pub(crate) fn held(&self, mounts: &Mounts<'_>) -> Vec<Claim> {
        let one = |volume: &VolumeUse| {
            let only = Mounts {
                uses: std::slice::from_ref(volume),
                own_claims: &[],
                ..*mounts
            };
            self.reach(&only)
                .map(|reach| reach.claims)
                .unwrap_or_default()
        };
        let mut claims: Vec<Claim> = mounts.uses.iter().flat_map(one).collect();
        claims.sort();
        claims.dedup();
        claims
    }

    fn claimed_or_new(
        &self,
        claim: &Name,
        class: Option<&Name>,
        expanded: bool,
    ) -> Result<Found<'_>, String> {
        if self.claims.contains_key(claim) {
            return self.claimed(claim);
        }
        if expanded && self.classes.is_empty() {
            return Ok(Found {
                terms: &[],
                driver: None,
            });
        }
        self.unbound(claim, class)
    }

    fn claimed(&self, name: &Name) -> Result<Found<'_>, String> {
        let Some(claim) = self.claims.get(name) else {
            return Err(format!("its PersistentVolumeClaim {name} does not exist"));
        };
        if claim.deleting {
            return Err(format!("its PersistentVolumeClaim {name} is being deleted"));
        }
        if claim.lost {
            return Err(format!(
                "its PersistentVolumeClaim {name} has lost its PersistentVolume"
            ));
        }
        let Some(volume_name) = &claim.volume else {
            return self.unbound(name, claim.class.as_ref());
        };
        let volume = self.volumes.get(volume_name).ok_or_else(|| {
            format!(
                "its PersistentVolumeClaim {name} is bound to PersistentVolume {volume_name}, \
                 which does not exist"
            )
        })?;
        if volume.deleting {
            return Err(format!(
                "its PersistentVolume {volume_name} is being deleted"
            ));
        }
        if volume.nowhere {
            return Err(format!(
                "the node affinity of its PersistentVolume {volume_name} matches no node"
            ));
        }
        if !claim.bound {
            return Err(format!(
                "its PersistentVolumeClaim {name} names a volume but is not bound to it yet \
                 (annotation {BOUND} is missing)"
            ));
        }
        Ok(Found {
            terms: &volume.terms,
            driver: volume.driver.clone(),
        })
    }

    fn unbound(&self, claim: &Name, class: Option<&Name>) -> Result<Found<'_>, String> {
        let default = || self.default_class.as_ref().map(|(_, name)| name);
        let class_name = class.or_else(default).filter(|name| !name.is_empty());
        let Some(class_name) = class_name else {
            return Err(format!(
                "its PersistentVolumeClaim {claim} is not bound and has no storage class"
            ));
        };
        let class = self.classes.get(class_name).ok_or_else(|| {
            format!(
                "its PersistentVolumeClaim {claim} is not bound, and its StorageClass \
                 {class_name} does not exist"
            )
        })?;
        if class.immediate {
            return Err(format!(
                "its PersistentVolumeClaim {claim} is not bound, though StorageClass {class_name} \
                 binds at once; wait for the volume"
            ));
        }
        Ok(Found {
            terms: &class.terms,
            driver: class.driver.clone(),
        })
    }
}

/// Every choice of one place per volume that is possible at all; when none is, all of them, so
/// that the pod is refused for its volumes.
fn combined(alternatives: &[&[Terms]]) -> Result<Vec<Terms>, String> {
    let mut all: Vec<Requirements> = Vec::new();
    for terms in alternatives {
        if terms.is_empty() || terms.iter().any(Vec::is_empty) {
            continue;
        }
        let own: Vec<Requirements> = terms.iter().map(|t| t.iter().cloned().collect()).collect();
        if all.is_empty() {
            all = own;
            continue;
        }
        let pairs = all.iter().flat_map(|a| own.iter().map(move |b| (a, b)));
        let merged = |(a, b): (&Requirements, &Requirements)| {
            a.iter().chain(b.iter()).cloned().collect::<Requirements>()
        };
        let mut possible: Vec<Requirements> = pairs
            .clone()
            .filter(|(a, b)| a.compatible(b, |_| true, &[]).is_ok())
            .map(merged)
            .collect();
        if possible.is_empty() {
            possible = pairs.map(merged).collect();
        }
        possible.dedup();
        if possible.len() > ALTERNATIVES_MAX {
            return Err(format!(
                "its volumes can be in more than {ALTERNATIVES_MAX} combinations of places"
            ));
        }
        all = possible;
    }
    Ok(all.iter().map(|r| r.iter().cloned().collect()).collect())
}

impl Objects {
    pub(crate) fn take_volume_claim(
        &mut self,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let object: PersistentVolumeClaim<'_> = document.parse(place)?;
        let meta = object.metadata.unwrap_or_default();
        let namespace = match text(&meta.namespace) {
            "" => "default",
            namespace => namespace,
        };
        let kind = "PersistentVolumeClaim";
        let name = self.register(kind, Some(namespace), text(&meta.name), place)?;
        let spec = object.spec.unwrap_or_default();
        let volume = spec.volume_name.as_deref().filter(|v| !v.is_empty());
        let claim = ClaimObject {
            class: spec
                .storage_class_name
                .as_deref()
                .map(|c| self.names.get(c)),
            volume: volume.map(|v| self.names.get(v)),
            deleting: meta.deletion_timestamp.is_some(),
            lost: object.status.is_some_and(|s| text(&s.phase) == "Lost"),
            bound: annotation(&meta, BOUND).is_some(),
        };
        self.volumes.claims.insert(name, claim);
        Ok(())
    }

    pub(crate) fn take_volume(
        &mut self,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let object: PersistentVolume<'_> = document.parse(place)?;
        let meta = object.metadata.unwrap_or_default();
        let name = self.register("PersistentVolume", None, meta.name(), place)?;
        let spec = object.spec.unwrap_or_default();
        let driver = match (&spec.csi, &spec.aws_elastic_block_store) {
            (Some(csi), _) => Some(self.names.get(text(&csi.driver))),
            (None, Some(_)) => Some(self.names.get(EBS)),
            (None, None) => None,
        };
        let on_host = spec.local.is_some() || spec.host_path.is_some();
        let required = spec.node_affinity.and_then(|a| a.required);
        let mut terms = Vec::new();
        if let Some(required) = &required {
            terms = volume_terms(required, &mut self.names)
                .map_err(|e| e.below("spec.nodeAffinity.required"))
                .map_err(|e| e.of(format!("PersistentVolume {name}")).at(place.clone()))?;
        }
        let nowhere = required.is_some() && terms.is_empty();
        if on_host {
            for term in &mut terms {
                term.retain(|r| &**r.key() != keys::HOSTNAME);
            }
        }
        let volume = VolumeObject {
            deleting: meta.deleting(),
            driver,
            terms,
            nowhere,
        };
        self.volumes.volumes.insert(name, volume);
        Ok(())
    }

    pub(crate) fn take_storage_class(
        &mut self,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let object: StorageClass<'_> = document.parse(place)?;
        let meta = object.metadata.unwrap_or_default();
        let name = self.register("StorageClass", None, text(&meta.name), place)?;
        let mut terms = Vec::new();
        for (term_ix, term) in object.allowed_topologies.iter().flatten().enumerate() {
            let mut requirements = Terms::new();
            let expressions = term.match_label_expressions.iter().flatten();
            for (ix, expression) in expressions.enumerate() {
                if expression.values.as_ref().is_none_or(Vec::is_empty) {
                    let path = format!("allowedTopologies[{term_ix}].matchLabelExpressions[{ix}]");
                    let error = ReadError::new("there must be at least one value").field("values");
                    let error = error.below(&path).of(format!("StorageClass {name}"));
                    return Err(error.at(place.clone()));
                }
                let values = expression.values.iter().flatten();
                let values: Vec<Name> = values.map(|v| self.names.get(v)).collect();
                let key = text(&expression.key);
                requirements.push(joiner_model::Requirement::one_of(key, values));
            }
            terms.push(requirements);
        }
        let is_default = DEFAULT_CLASS
            .iter()
            .any(|key| annotation(&meta, key) == Some("true"));
        if is_default {
            let candidate = (text(&meta.creation_timestamp).to_owned(), name.clone());
            if self
                .volumes
                .default_class
                .as_ref()
                .is_none_or(|known| *known < candidate)
            {
                self.volumes.default_class = Some(candidate);
            }
        }
        let class = ClassObject {
            driver: driver(text(&object.provisioner), &mut self.names),
            immediate: text(&object.volume_binding_mode) != "WaitForFirstConsumer",
            terms,
        };
        self.volumes.classes.insert(name, class);
        Ok(())
    }
}

/// The places that a volume's node affinity allows. A term without expressions matches no node.
fn volume_terms(required: &NodeSelector<'_>, names: &mut Names) -> Result<Vec<Terms>, ReadError> {
    let mut terms = Vec::new();
    for (ix, term) in selection::node_terms(required)?.into_iter().enumerate() {
        if term.expressions.is_empty() || term.by_field {
            continue;
        }
        let read = |e: &Expression<'_>| {
            selection::requirement(e, names)
                .map_err(|why| ReadError::new(why).field(format!("nodeSelectorTerms[{ix}]")))
        };
        terms.push(
            term.expressions
                .iter()
                .map(read)
                .collect::<Result<_, _>>()?,
        );
    }
    Ok(terms)
}

fn annotation<'m>(meta: &'m AnnotatedMeta<'_>, key: &str) -> Option<&'m str> {
    meta.annotations.as_ref()?.get(key).map(|value| &**value)
}

/// The driver that a provisioner stands for.
fn driver(provisioner: &str, names: &mut Names) -> Option<Name> {
    if provisioner.is_empty() || provisioner == "kubernetes.io/no-provisioner" {
        return None;
    }
    let current = IN_TREE.iter().find(|(old, _)| *old == provisioner);
    Some(names.get(current.map_or(provisioner, |(_, new)| new)))
}
