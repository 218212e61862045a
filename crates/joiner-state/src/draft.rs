//! Pods as far as they can be understood alone.
//!
//! What a pod means depends on objects that may come later in the input: priority classes,
//! namespaces, runtime classes. A draft is the rest, shared by all pods that look the same, so
//! that the later steps run once per kind of pod and not once per pod.

use std::collections::HashMap;
use std::sync::Arc;

use joiner_model::{Name, PodShape, PodTerm, Preference, Resources, Selector};

use crate::containers::{ContainerLists, PodContainer};

/// Index of a draft in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DraftIx(pub(crate) u32);

/// A pod as far as it can be understood alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Draft {
    /// The shape, without what the other fields will add to it.
    pub(crate) shape: PodShape,
    /// Limits, `pods: 1` included: for metrics only.
    pub(crate) limits: Resources,
    /// The containers; kept of live pods only.
    pub(crate) containers: Arc<[PodContainer]>,
    /// Where the priority comes from.
    pub(crate) priority: Priority,
    /// The runtime class whose overhead has not been added.
    pub(crate) runtime_class: Option<Name>,
    /// Namespaces that terms select by label.
    pub(crate) namespaces: Vec<NamespaceRule>,
    /// Why the pod must not be placed.
    pub(crate) ignored: Option<Name>,
}

/// Where a priority comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Priority {
    /// The class that is the default, if there is one.
    #[default]
    Unset,
    /// The pod says.
    Given(i32),
    /// A class says.
    Class(Name),
}

/// Which list of terms a namespace rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TermList {
    Affinity,
    AntiAffinity,
    PreferredAffinity,
    PreferredAntiAffinity,
}

/// A term that looks at all namespaces with certain labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NamespaceRule {
    pub(crate) list: TermList,
    pub(crate) term_ix: usize,
    /// `None`: a selector that selects nothing.
    pub(crate) selector: Option<Selector>,
}

/// All distinct drafts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drafts {
    known: HashMap<Arc<Draft>, DraftIx>,
    all: Vec<Arc<Draft>>,
    /// Their containers: pods with labels of their own mostly have those of many others.
    pub(crate) containers: ContainerLists,
}

impl Drafts {
    /// The index of this draft.
    pub(crate) fn intern(&mut self, draft: Draft) -> DraftIx {
        if let Some(ix) = self.known.get(&draft) {
            return *ix;
        }
        let ix = DraftIx(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let draft = Arc::new(draft);
        self.all.push(draft.clone());
        self.known.insert(draft, ix);
        ix
    }

    /// A draft that is kept elsewhere too; it is not looked for among those that are here.
    pub(crate) fn push(&mut self, draft: Arc<Draft>) -> DraftIx {
        let ix = DraftIx(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(draft);
        ix
    }

    /// A draft, to be kept elsewhere too.
    pub(crate) fn shared(&self, ix: DraftIx) -> Arc<Draft> {
        self.all[ix.0 as usize].clone()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Throws away what is kept nowhere else. Indexes change.
    pub(crate) fn drop_unused(&mut self) {
        self.known.clear();
        self.all.retain(|draft| Arc::strong_count(draft) > 1);
        self.containers.drop_unused();
        for (ix, draft) in (0u32..).zip(&self.all) {
            self.known.insert(draft.clone(), DraftIx(ix));
        }
    }

    pub(crate) fn get(&self, ix: DraftIx) -> &Draft {
        &self.all[ix.0 as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Draft> {
        self.all.iter().map(|draft| &**draft)
    }
}

impl Draft {
    /// How many terms the list has so far.
    pub(crate) fn len_of(&self, list: TermList) -> usize {
        match list {
            TermList::Affinity => self.shape.affinity.len(),
            TermList::AntiAffinity => self.shape.anti_affinity.len(),
            TermList::PreferredAffinity => self.shape.preferred_affinity.len(),
            TermList::PreferredAntiAffinity => self.shape.preferred_anti_affinity.len(),
        }
    }

    /// Adds a term; the weight matters for wishes only.
    pub(crate) fn push_term(&mut self, list: TermList, weight: i32, term: PodTerm) {
        let shape = &mut self.shape;
        match list {
            TermList::Affinity => shape.affinity.push(term),
            TermList::AntiAffinity => shape.anti_affinity.push(term),
            TermList::PreferredAffinity => {
                shape.preferred_affinity.push(Preference { weight, term });
            }
            TermList::PreferredAntiAffinity => {
                shape
                    .preferred_anti_affinity
                    .push(Preference { weight, term });
            }
        }
    }
}

impl NamespaceRule {
    /// The term that this rule is about.
    pub(crate) fn term<'s>(&self, shape: &'s mut PodShape) -> Option<&'s mut PodTerm> {
        let ix = self.term_ix;
        match self.list {
            TermList::Affinity => shape.affinity.get_mut(ix),
            TermList::AntiAffinity => shape.anti_affinity.get_mut(ix),
            TermList::PreferredAffinity => shape
                .preferred_affinity
                .get_mut(ix)
                .map(|wish| &mut wish.term),
            TermList::PreferredAntiAffinity => shape
                .preferred_anti_affinity
                .get_mut(ix)
                .map(|wish| &mut wish.term),
        }
    }
}
