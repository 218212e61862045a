//! One look at all pods of a VPA: what to do, one action at a time, each after the last one is known to
//! have worked or not.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::groups::{Controller, Group, groups, is_pending};
use super::in_place::{self, InPlace, ResizeMemory};
use super::priority::{Accepted, in_order};
use super::settings::UpdaterSettings;
use crate::vpa::limits::LimitRanges;
use crate::vpa::pod::Pod;
use crate::vpa::resize::{Resized, completed};
use crate::vpa::spec::{UpdateMode, Vpa};

/// The annotation that marks a container with more CPU for its start; the container's name follows.
const BOOSTED: &str = "vpaCpuStartupBoost/";

/// All that a round rests on besides what is remembered.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The VPA, with its recommendation.
    pub vpa: &'a Vpa,
    /// Pods that it is about. Those that are being deleted do not count.
    pub pods: &'a [Pod],
    /// How many pods controllers are told to have.
    pub configured: BTreeMap<Controller, i64>,
    /// Limits of the namespace.
    pub ranges: LimitRanges,
    /// Settings of the updater.
    pub settings: UpdaterSettings,
}

/// Something to do with a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Change what its containers request and may use.
    Resize {
        /// The pod.
        pod: String,
        /// What each container gets.
        containers: BTreeMap<String, Resized>,
    },
    /// Evict it.
    Evict {
        /// The pod.
        pod: String,
    },
}

/// One look at all pods of a VPA.
#[derive(Clone, Debug)]
pub struct Round<'a> {
    situation: &'a Situation<'a>,
    now: Timestamp,
    order: Vec<Accepted<'a>>,
    groups: BTreeMap<Controller, Group>,
    memory: ResizeMemory,
    /// Places in the order of pods that may be resized.
    to_resize: VecDeque<usize>,
    /// Places in the order of pods that may be evicted.
    to_evict: VecDeque<usize>,
    /// What was returned last, and for which place in the order.
    last: Option<(usize, bool)>,
}

impl<'a> Round<'a> {
    /// Looks at the pods.
    #[must_use]
    pub fn new(situation: &'a Situation<'a>, memory: &ResizeMemory, now: Timestamp) -> Self {
        let (vpa, settings) = (situation.vpa, &situation.settings);
        let is_boosted = |pod: &Pod| settings.startup_boost && is_boosted(pod);
        let live = || situation.pods.iter().filter(|pod| !pod.deleting);
        let normal = live().filter(|pod| !is_boosted(pod));
        let mut round = Self {
            situation,
            now,
            order: in_order(vpa, normal, &situation.ranges, settings, now),
            groups: groups(vpa, live(), &situation.configured, settings, is_boosted),
            memory: memory.clone(),
            to_resize: VecDeque::new(),
            to_evict: VecDeque::new(),
            last: None,
        };
        for place in 0..round.order.len() {
            match vpa.mode {
                UpdateMode::Recreate | UpdateMode::Auto if round.can_evict(place) => {
                    round.to_evict.push_back(place);
                }
                UpdateMode::InPlaceOrRecreate | UpdateMode::InPlace
                    if round.in_place(place) != InPlace::Deferred =>
                {
                    round.to_resize.push_back(place);
                }
                UpdateMode::Off
                | UpdateMode::Initial
                | UpdateMode::Recreate
                | UpdateMode::Auto
                | UpdateMode::InPlaceOrRecreate
                | UpdateMode::InPlace => {}
            }
        }
        round
    }

    /// Pods that are worth an update, the most urgent first, whether they may be disturbed or not.
    #[must_use]
    pub fn order(&self) -> &[Accepted<'a>] {
        &self.order
    }

    /// What to do next; [`Self::report`] how it went before asking again.
    pub fn next_action(&mut self) -> Option<Action> {
        while let Some(place) = self.to_resize.pop_front() {
            match self.in_place(place) {
                InPlace::Deferred => {}
                InPlace::Evict => self.to_evict.push_back(place),
                InPlace::Infeasible => {
                    let accepted = &self.order[place];
                    let targets = in_place::targets(&accepted.capped);
                    self.memory
                        .infeasible
                        .insert(accepted.pod.name.clone(), targets);
                }
                InPlace::Approved => {
                    let containers = self.resized(place);
                    if !containers.is_empty() {
                        self.last = Some((place, true));
                        let pod = self.order[place].pod.name.clone();
                        return Some(Action::Resize { pod, containers });
                    }
                    self.fall_back(place);
                }
            }
        }
        while let Some(place) = self.to_evict.pop_front() {
            if self.can_evict(place) {
                self.last = Some((place, false));
                let pod = self.order[place].pod.name.clone();
                return Some(Action::Evict { pod });
            }
        }
        None
    }

    /// Says whether the last action worked.
    pub fn report(&mut self, worked: bool) {
        let Some((place, by_resize)) = self.last.take() else {
            return;
        };
        let pod = self.order[place].pod;
        let group = pod
            .owner
            .as_ref()
            .and_then(|owner| self.groups.get_mut(owner));
        match (group, worked, by_resize) {
            (Some(group), true, true) => {
                group.resize(pod);
                self.memory.since.insert(pod.name.clone(), self.now);
                self.memory.infeasible.remove(&pod.name);
            }
            (Some(group), true, false) => group.evict(pod),
            (_, false, true) => self.fall_back(place),
            (None, true, _) | (_, false, false) => {}
        }
    }

    /// What to remember for the next round.
    #[must_use]
    pub fn into_memory(mut self) -> ResizeMemory {
        let pods = self.situation.pods;
        self.memory
            .keep(|name| pods.iter().any(|pod| pod.name == name));
        self.memory
    }

    /// A pod that cannot be resized is evicted, where that is allowed.
    fn fall_back(&mut self, place: usize) {
        if self.situation.vpa.mode == UpdateMode::InPlaceOrRecreate {
            self.to_evict.push_back(place);
        }
    }

    fn resized(&self, place: usize) -> BTreeMap<String, Resized> {
        let accepted = &self.order[place];
        let (vpa, ranges) = (self.situation.vpa, &self.situation.ranges);
        completed(vpa, accepted.pod, &accepted.capped, ranges)
    }

    fn in_place(&mut self, place: usize) -> InPlace {
        let accepted = &self.order[place];
        let owner = accepted.pod.owner.as_ref();
        let group = owner.and_then(|owner| self.groups.get(owner));
        in_place::decide(
            accepted.pod,
            group,
            (self.situation.vpa.mode, &accepted.capped),
            &self.situation.settings,
            (&mut self.memory, self.now),
        )
    }

    fn can_evict(&mut self, place: usize) -> bool {
        let pod = self.order[place].pod;
        let owner = pod.owner.as_ref();
        let Some(group) = owner.and_then(|owner| self.groups.get(owner)) else {
            return false;
        };
        if is_pending(pod) {
            true
        } else if group.is_too_small {
            false
        } else if in_place::is_resizing(pod) {
            in_place::is_given_up(pod, group, &mut self.memory, self.now)
        } else {
            group.is_disruptable()
        }
    }
}

/// Whether a container of a pod has more CPU for its start.
fn is_boosted(pod: &Pod) -> bool {
    pod.annotations.keys().any(|name| name.starts_with(BOOSTED))
}
