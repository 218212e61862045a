//! Rolls a Deployment's ReplicaSets from what runs to what its template says.
//!
//! One set per template; the newest gets the replicas, the others give them up, within
//! `maxSurge` and `maxUnavailable`. Pods are the business of the ReplicaSet controller: whatever is
//! needed of them is in the sets' statuses.

mod scale;
mod sets;
mod status;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use self::sets::{RolloutSet, Sets};
use super::owned::{Children, Owner, selector};
use super::replica_set::REPLICA_SETS;
use super::rests::Rests;
use crate::events::Recorder;
use crate::fields::{self, Rounding};
use crate::view::{Action, Controller, Resource, Step, View};

/// The kind.
pub(crate) const DEPLOYMENTS: Resource = ("apps", "deployments");
/// A deadline that means none.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// The controller of Deployments.
pub struct Deployments {
    sets: Children,
    rests: Rests,
}

impl Default for Deployments {
    fn default() -> Self {
        Self {
            sets: Children::new(REPLICA_SETS, "Deployment"),
            rests: Rests::default(),
        }
    }
}

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployment-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[DEPLOYMENTS, REPLICA_SETS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.sets.refresh(view);
        let mut recorder = Recorder::new(view, self.name());
        let children = &self.sets;
        let is_touched = |object: &Value| children.is_touched(object);
        self.rests.look(view, DEPLOYMENTS, is_touched, |object| {
            let Some(selector) = selector(object) else {
                return Step::default();
            };
            let owner = Owner {
                api_version: "apps/v1",
                kind: "Deployment",
                object,
            };
            let mut actions = Vec::new();
            let claimed = children.claim(&owner, &selector, |_| true, &mut actions);
            let mut rollout = Rollout::new(view, owner, Sets::of(object, &claimed), &mut recorder);
            rollout.actions = actions;
            rollout.sync();
            Step {
                actions: rollout.actions,
                wake: rollout.wake,
            }
        })
    }
}

/// One Deployment in one step.
struct Rollout<'a, 's> {
    view: &'s View<'a>,
    owner: Owner<'s>,
    deployment: &'s Value,
    sets: Sets<'s>,
    recorder: &'s mut Recorder<'a>,
    /// Wanted pods, pods above them and pods below them that the strategy allows.
    replicas: i64,
    surge: i64,
    unavailable: i64,
    is_rolling: bool,
    /// Conditions as this step leaves them.
    conditions: Vec<Value>,
    collisions: Option<i64>,
    actions: Vec<Action>,
    wake: Option<Timestamp>,
}

impl<'a, 's> Rollout<'a, 's> {
    fn new(
        view: &'s View<'a>,
        owner: Owner<'s>,
        sets: Sets<'s>,
        recorder: &'s mut Recorder<'a>,
    ) -> Self {
        let deployment = owner.object;
        let spec = &deployment["spec"];
        let replicas = fields::count(&spec["replicas"], 1);
        let is_rolling = spec["strategy"]["type"] != "Recreate";
        let (surge, unavailable) = match is_rolling {
            true => fenceposts(&spec["strategy"]["rollingUpdate"], replicas),
            false => (0, 0),
        };
        let conditions = deployment["status"]["conditions"].as_array();
        Self {
            view,
            owner,
            deployment,
            sets,
            recorder,
            replicas,
            surge,
            unavailable,
            is_rolling,
            conditions: conditions.cloned().unwrap_or_default(),
            collisions: deployment["status"]["collisionCount"].as_i64(),
            actions: Vec::new(),
            wake: None,
        }
    }

    fn sync(&mut self) {
        if meta::is_deleting(self.deployment) {
            self.write_status();
            return;
        }
        let paused = self.deployment["spec"]["paused"] == true;
        self.note_pause(paused);
        self.adjust_new_set();
        if paused || self.is_scaling() {
            self.scale();
            if paused {
                self.clean_up();
            }
            self.write_status();
        } else if self.is_rolling {
            self.roll();
        } else {
            self.recreate();
        }
    }

    /// True when the deployment was given another size since its sets last heard of it.
    fn is_scaling(&self) -> bool {
        let mut active = self.sets.all.iter().filter(|set| set.replicas > 0);
        active.any(|set| {
            set.desired()
                .is_some_and(|desired| desired != self.replicas)
        })
    }

    fn roll(&mut self) {
        let is_there = self.sets.new.is_some() || self.create_set();
        if is_there && !self.grow_new_set() && !self.shrink_old_sets() && self.was_complete() {
            self.clean_up();
        }
        self.estimate_progress();
        self.write_status();
    }

    fn recreate(&mut self) {
        let old: Vec<usize> = self.sets.old().collect();
        let mut scaled = false;
        for at in &old {
            scaled |= self.resize(*at, 0);
        }
        let is_running = old.iter().any(|at| self.sets.all[*at].may_run_pods());
        if !scaled && !is_running && (self.sets.new.is_some() || self.create_set()) {
            if let Some(new) = self.sets.new {
                self.resize(new, self.replicas);
            }
            if self.was_complete() {
                self.clean_up();
            }
        }
        self.estimate_progress();
        self.write_status();
    }

    /// Gives the newest set the replicas that the surge leaves room for. True when it changed.
    fn grow_new_set(&mut self) -> bool {
        let Some(new) = self.sets.new else {
            return false;
        };
        let now = self.sets.all[new].replicas;
        let goal = match now.cmp(&self.replicas) {
            std::cmp::Ordering::Equal => return false,
            std::cmp::Ordering::Greater => self.replicas,
            std::cmp::Ordering::Less => now + self.room(now),
        };
        self.resize(new, goal)
    }

    /// Replicas that a new set of this size may gain.
    fn room(&self, size: i64) -> i64 {
        if !self.is_rolling {
            return self.replicas - size;
        }
        let free = self.replicas + self.surge - self.sets.total();
        free.clamp(0, (self.replicas - size).max(0))
    }

    /// Takes replicas from old sets: first those that are not available anyway, then as many as
    /// `maxUnavailable` leaves. True when any changed.
    fn shrink_old_sets(&mut self) -> bool {
        let Some(new) = self.sets.new.map(|new| &self.sets.all[new]) else {
            return false;
        };
        let least = self.replicas - self.unavailable;
        let not_up = new.replicas - new.available;
        let mut spare = self.sets.total() - least - not_up;
        let old: Vec<usize> = self.sets.old().collect();
        let mut changed = false;
        for at in &old {
            let set = &self.sets.all[*at];
            let sick = (set.replicas - set.available).clamp(0, spare.max(0));
            if set.replicas > 0 && sick > 0 {
                spare -= sick;
                changed |= self.resize(*at, set.replicas - sick);
            }
        }
        // A set that was just made smaller still reports its old pods: never trust it beyond what
        // the sizes allow.
        let mut surplus = match spare {
            1.. => (self.sets.available() - least).min(spare),
            _ => 0,
        };
        for at in &old {
            let size = self.sets.all[*at].replicas;
            let less = size.min(surplus.max(0));
            if less > 0 {
                surplus -= less;
                changed |= self.resize(*at, size - less);
            }
        }
        changed
    }

    /// Gives a set another size, tells it the deployment's, and says so. True when it changed.
    fn resize(&mut self, at: usize, size: i64) -> bool {
        let set = &mut self.sets.all[at];
        let before = set.replicas;
        if before == size {
            return false;
        }
        set.replicas = size;
        let Some(object) = set.object else {
            return false;
        };
        let name = set.name.clone();
        let annotations = self.size_annotations();
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": size}});
        self.actions
            .push(fields::patch(REPLICA_SETS, object, patch));
        let direction = if size > before { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {name} from {before} to {size}");
        self.tell_scaling(&message);
        true
    }

    fn tell_scaling(&mut self, message: &str) {
        let event = self
            .recorder
            .normal(self.deployment, "ScalingReplicaSet", message);
        self.actions.push(event);
    }

    /// Deletes the oldest sets without pods beyond the history that is to be kept.
    fn clean_up(&mut self) {
        let Some(limit) = self.deployment["spec"]["revisionHistoryLimit"].as_i64() else {
            return;
        };
        let mut old: Vec<&RolloutSet<'_>> = self.sets.old().map(|at| &self.sets.all[at]).collect();
        old.retain(|set| set.object.is_some_and(|object| !meta::is_deleting(object)));
        old.sort_by_key(|set| set.revision());
        let surplus = usize::try_from(old.len() as i64 - limit).unwrap_or(0);
        let gone = old.into_iter().take(surplus).filter(|set| set.is_idle());
        let deletions = gone.filter_map(|set| set.object);
        let deletions = deletions.map(|object| fields::delete(REPLICA_SETS, object, None));
        self.actions.extend(deletions);
    }
}

/// `maxSurge`, rounded up, and `maxUnavailable`, rounded down; both zero would get nowhere.
fn fenceposts(strategy: &Value, replicas: i64) -> (i64, i64) {
    let quarter = json!("25%");
    let or_quarter = |value: &Value, rounding| {
        let given = fields::scaled(value, replicas, rounding);
        given
            .or_else(|| fields::scaled(&quarter, replicas, rounding))
            .unwrap_or(0)
    };
    let surge = or_quarter(&strategy["maxSurge"], Rounding::Up);
    let unavailable = match (
        surge,
        or_quarter(&strategy["maxUnavailable"], Rounding::Down),
    ) {
        (0, 0) => 1,
        (_, unavailable) => unavailable,
    };
    (surge, unavailable.min(replicas))
}
