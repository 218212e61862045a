//! Objects that make pods, and the pods they have yet to make.

use std::collections::HashMap;

use joiner_model::{Name, Selector};

use crate::documents::Document;
use crate::draft::DraftIx;
use crate::error::{Place, ReadError};
use crate::objects::{Objects, Owner, PODS_MAX, Stage};
use crate::pod::{self, VolumeUse};
use crate::topology;
use crate::wire::workload::{Workload, WorkloadSpec};

/// A claim that each pod of a StatefulSet has for itself.
#[derive(Clone, Debug)]
pub(crate) struct OwnClaim {
    /// Name of the template; the claim is called `template-pod`.
    pub(crate) template: Name,
    /// Storage class: `None` is the default class.
    pub(crate) class: Option<Name>,
}

/// A workload: what its pods look like and how many there should be.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadRecord {
    pub(crate) identity: Owner,
    pub(crate) place: Place,
    pub(crate) owner: Option<Owner>,
    pub(crate) draft: DraftIx,
    pub(crate) volumes: Box<[VolumeUse]>,
    pub(crate) own_claims: Vec<OwnClaim>,
    pub(crate) selector: Option<Selector>,
    pub(crate) first_ordinal: u32,
    /// Pods that should be there at a time.
    pub(crate) wanted: usize,
    /// Pods that still have to succeed, for a job with a set number.
    pub(crate) completions: Option<usize>,
    pub(crate) succeeded: usize,
}

impl WorkloadRecord {
    /// The workload of the input that decides how many pods this one has: a Deployment makes
    /// ReplicaSets, and nothing else that is read makes workloads. Other owners do not matter, not
    /// even those that go round in a circle.
    fn maker(&self, known: &HashMap<&Owner, usize>) -> Option<usize> {
        let owner = self.owner.as_ref()?;
        let made = &*self.identity.kind == "ReplicaSet" && &*owner.kind == "Deployment";
        known.get(owner).copied().filter(|_| made)
    }
}

/// A DaemonSet.
#[derive(Clone, Debug)]
pub(crate) struct DaemonRecord {
    pub(crate) name: Name,
    pub(crate) draft: DraftIx,
    pub(crate) selector: Option<Selector>,
}

/// Pods that a workload has yet to make.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    /// Index into the workloads.
    pub(crate) workload: usize,
    /// How many.
    pub(crate) count: usize,
}

impl Objects {
    pub(crate) fn take_workload(
        &mut self,
        kind: &str,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let workload: Workload<'_> = document.parse(place)?;
        let meta = workload.metadata.unwrap_or_default();
        let spec = workload.spec.unwrap_or_default();
        let own_name = meta.own_name(self.workloads.len());
        let name = self.register(kind, Some(meta.namespace()), &own_name, place)?;
        if meta.deleting() {
            return Ok(());
        }
        let title = format!("{kind} {name}");
        let wrong = |e: ReadError| e.of(title.as_str()).at(place.clone());
        let (draft, volumes) = self
            .template(meta.namespace(), &spec, &title)
            .map_err(wrong)?;
        let selector = self.workload_selector(&spec).map_err(wrong)?;
        let (wanted, completions) = counts(kind, &spec).map_err(wrong)?;
        let own_claims = spec.volume_claim_templates.iter().flatten();
        let own_claims = own_claims
            .map(|template| {
                let meta = template.metadata.as_ref();
                let class = template
                    .spec
                    .as_ref()
                    .and_then(|s| s.storage_class_name.as_deref());
                OwnClaim {
                    template: self.names.get(meta.map_or("", |m| m.name())),
                    class: class.map(|class| self.names.get(class)),
                }
            })
            .collect();
        let succeeded = workload.status.and_then(|s| s.succeeded).unwrap_or(0);
        let identity = Owner {
            kind: self.names.get(kind),
            name,
        };
        self.choose(&identity, selector.as_ref());
        let record = WorkloadRecord {
            identity,
            place: place.clone(),
            owner: self.owner(&meta),
            draft,
            volumes,
            own_claims,
            selector,
            first_ordinal: spec.ordinals.and_then(|o| o.start).unwrap_or(0),
            wanted,
            completions,
            succeeded: usize::try_from(succeeded).unwrap_or(0),
        };
        self.workloads.push(record);
        Ok(())
    }

    pub(crate) fn take_daemon(
        &mut self,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let workload: Workload<'_> = document.parse(place)?;
        let meta = workload.metadata.unwrap_or_default();
        let spec = workload.spec.unwrap_or_default();
        let own_name = meta.own_name(self.daemons.len());
        let name = self.register("DaemonSet", Some(meta.namespace()), &own_name, place)?;
        if meta.deleting() {
            return Ok(());
        }
        let pod_spec = spec.template.as_ref().and_then(|t| t.spec.as_ref());
        if pod_spec.is_some_and(pod::claims_devices) {
            let warning = format!("DaemonSet {name} claims devices and is not counted");
            self.warnings.push(warning);
            return Ok(());
        }
        let title = format!("DaemonSet {name}");
        let wrong = |e: ReadError| e.of(title.as_str()).at(place.clone());
        let (draft, _) = self
            .template(meta.namespace(), &spec, &title)
            .map_err(wrong)?;
        let selector = self.workload_selector(&spec).map_err(wrong)?;
        self.daemons.push(DaemonRecord {
            name,
            draft,
            selector,
        });
        Ok(())
    }

    /// The pods that a workload takes for its own.
    fn workload_selector(
        &mut self,
        spec: &WorkloadSpec<'_>,
    ) -> Result<Option<Selector>, ReadError> {
        match &spec.selector {
            Some(given) => topology::selector(given, &mut self.names)
                .map(Result::ok)
                .map_err(|e| e.below("spec.selector")),
            None => Ok(None),
        }
    }

    /// The pod of a workload's template.
    fn template(
        &mut self,
        namespace: &str,
        spec: &WorkloadSpec<'_>,
        title: &str,
    ) -> Result<(DraftIx, Box<[VolumeUse]>), ReadError> {
        let Some(template) = &spec.template else {
            return Err(ReadError::new("there is no pod template").field("spec.template"));
        };
        let labels = template.metadata.as_ref().and_then(|m| m.labels.as_ref());
        let empty = Default::default();
        let pod_spec = template.spec.as_ref().unwrap_or(&empty);
        let (mut draft, notes) = pod::draft(namespace, labels, (pod_spec, None), &mut self.names)
            .map_err(|e| e.below("spec.template"))?;
        for note in notes {
            self.note(title, &note);
        }
        if pod_spec
            .scheduling_gates
            .as_ref()
            .is_some_and(|g| !g.is_empty())
        {
            draft.ignored = Some(self.names.get(GATED));
        }
        let volumes =
            pod::volumes(pod_spec, &mut self.names).map_err(|e| e.below("spec.template"))?;
        Ok((self.drafts.intern(draft), volumes))
    }

    /// Pods that workloads of the input have yet to make.
    pub(crate) fn missing(&self) -> Result<Vec<Missing>, ReadError> {
        let known: HashMap<&Owner, usize> = (0..)
            .zip(&self.workloads)
            .map(|(ix, workload)| (&workload.identity, ix))
            .collect();
        let present = self.present(&known);
        let mut total = self.pods.len();
        let mut missing = Vec::new();
        for (ix, workload) in self.workloads.iter().enumerate() {
            if workload.maker(&known).is_some() {
                continue;
            }
            let (live, done) = present.get(&ix).copied().unwrap_or_default();
            let left = workload.completions.map_or(usize::MAX, |completions| {
                completions.saturating_sub(workload.succeeded.max(done))
            });
            let count = workload.wanted.min(left).saturating_sub(live);
            total = total.saturating_add(count);
            if total > PODS_MAX {
                let owner = &workload.identity;
                let problem = format!(
                    "asks for {} pods, which makes more than {PODS_MAX} in all; \
                     plan for fewer at a time",
                    workload.wanted
                );
                let error = ReadError::new(problem).at(workload.place.clone());
                return Err(error.of(format!("{} {}", owner.kind, owner.name)));
            }
            if count > 0 {
                missing.push(Missing {
                    workload: ix,
                    count,
                });
            }
        }
        Ok(missing)
    }

    /// For each workload, how many of its pods are live and how many have succeeded.
    fn present(&self, known: &HashMap<&Owner, usize>) -> HashMap<usize, (usize, usize)> {
        let mut by_namespace: HashMap<&str, Vec<usize>> = HashMap::new();
        for (ix, workload) in self.workloads.iter().enumerate() {
            let namespace = &self.drafts.get(workload.draft).shape.namespace;
            by_namespace.entry(namespace).or_default().push(ix);
        }
        let mut by_draft: HashMap<DraftIx, Option<usize>> = HashMap::new();
        let mut counts: HashMap<usize, (usize, usize)> = HashMap::new();
        for pod in &self.pods {
            let workload = match &pod.owner {
                Some(owner) => self.top_workload(owner, known),
                None => *by_draft.entry(pod.draft).or_insert_with(|| {
                    let shape = &self.drafts.get(pod.draft).shape;
                    let near = by_namespace.get(&*shape.namespace);
                    near.into_iter().flatten().copied().find(|ix| {
                        let workload = &self.workloads[*ix];
                        let owned = workload.owner.is_some();
                        let selector = workload.selector.as_ref();
                        !owned
                            && selector
                                .is_some_and(|s| !s.exprs().is_empty() && s.matches(&shape.labels))
                    })
                }),
            };
            let Some(workload) = workload else {
                continue;
            };
            let (live, done) = counts.entry(workload).or_default();
            match pod.stage {
                Stage::Live | Stage::Gated | Stage::Stray => *live += 1,
                Stage::Succeeded => *done += 1,
                Stage::Deleting | Stage::Failed => {}
            }
        }
        counts
    }

    /// The workload an owner stands for: itself, or the Deployment it belongs to. The ReplicaSet
    /// in between is often missing from the input; its name then says whose it is.
    fn top_workload(&self, owner: &Owner, known: &HashMap<&Owner, usize>) -> Option<usize> {
        if let Some(ix) = known.get(owner) {
            return Some(self.workloads[*ix].maker(known).unwrap_or(*ix));
        }
        if &*owner.kind != "ReplicaSet" {
            return None;
        }
        let (deployment, _hash) = owner.name.rsplit_once('-')?;
        let deployment = Owner {
            kind: "Deployment".into(),
            name: deployment.into(),
        };
        known.get(&deployment).copied()
    }
}

/// Why a pod with scheduling gates is not placed.
pub(crate) const GATED: &str = "it has scheduling gates, which must be removed first";

/// Pods at a time, and how many must succeed in all.
fn counts(kind: &str, spec: &WorkloadSpec<'_>) -> Result<(usize, Option<usize>), ReadError> {
    let count = |figure: Option<i32>, field: &str, default: usize| match figure {
        None => Ok(default),
        Some(figure) => usize::try_from(figure).map_err(|_| {
            ReadError::new(format!("{figure} is negative")).field(format!("spec.{field}"))
        }),
    };
    if kind != "Job" {
        return Ok((count(spec.replicas, "replicas", 1)?, None));
    }
    let parallelism = match spec.suspend {
        Some(true) => 0,
        _ => count(spec.parallelism, "parallelism", 1)?,
    };
    let completions = match spec.completions {
        None => None,
        given => Some(count(given, "completions", 1)?),
    };
    Ok((parallelism, completions))
}
