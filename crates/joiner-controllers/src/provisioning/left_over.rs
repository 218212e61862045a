//! Pods that stay pending: why, and what would help, written down and told once for each change of
//! the reason.
//!
//! The answer takes a few solves on changed copies of the problem ([`joiner_solver::remedies`]), so
//! it is worked out beside the planner, one plan at a time; pods that look alike share it. What is
//! not explained in one go is explained after the next plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use joiner_model::{Name, Plan, PodIx, Problem, Refusal, ResourceName, Resources, Ruling};
use joiner_receipts::{
    Decision, FunnelStep, Helps, LeftOver, PoolFunnel, UNSCHEDULABLE, in_dollars,
};
use joiner_state::live::{Asked, LivePod, Snapshot};
use tokio::task::JoinSet;

use super::{Planner, report};

/// Groups of pods that are explained after one plan.
const GROUPS_MAX: usize = 4;
/// Pods that are remembered; those beyond are explained again.
const REMEMBERED_MAX: usize = 10_000;
/// Pods in one record.
const PODS_MAX: usize = 500;
/// Pools in one funnel.
const POOLS_MAX: usize = 20;
/// Changes in one answer.
const CHANGES_MAX: usize = 5;
/// A pod is explained this often at most, however often the reason changes.
const EVERY: SignedDuration = SignedDuration::from_mins(1);

/// What pods were told. It is memory on purpose: after a restart everything is told once more.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// Pods whose place is written down, by uid.
    placed: BTreeSet<Name>,
    left_over: Arc<Mutex<BTreeMap<Name, Told>>>,
    /// The explanation under way.
    work: JoinSet<()>,
}

/// What a pod without a place was told.
#[derive(Clone, Debug)]
struct Told {
    says: Arc<str>,
    why: Arc<LeftOver>,
    at: Timestamp,
}

/// Pods that look alike and are left over for the same reasons.
struct Group {
    /// Where they are in the problem.
    pods: Vec<PodIx>,
    /// The reasons.
    says: Arc<str>,
    /// What is known already.
    why: Option<Arc<LeftOver>>,
}

impl Fates {
    /// True when it is news that this pod has a place.
    pub(super) fn is_new_place(&mut self, pod: &LivePod) -> bool {
        self.placed.insert(pod.uid.clone())
    }

    /// Forgets pods that no longer wait.
    pub(super) fn forget(&mut self, now: &Snapshot) {
        let waiting = now.provisionable().chain(now.fresh());
        let waiting: BTreeSet<&Name> = waiting.map(|pod| &pod.uid).collect();
        self.placed.retain(|uid| waiting.contains(uid));
        let mut told = lock(&self.left_over);
        told.retain(|uid, _| waiting.contains(uid));
        while told.len() > REMEMBERED_MAX {
            told.pop_first();
        }
    }

    /// Reports all pods that a plan leaves over. Those whose reason is new are explained first, beside
    /// the planner.
    pub(super) fn report(
        &mut self,
        planner: &Planner,
        now: Arc<Snapshot>,
        asked: Asked,
        plan: Plan,
    ) {
        while self.work.try_join_next().is_some() {}
        let problem = &asked.problem;
        let at = planner.shared.clock.now();
        let mut unexplained = Vec::new();
        let may_explain = self.work.is_empty();
        for (alike, says) in groups(problem, &plan) {
            let group = self.news(&now, problem, &alike, says, at);
            match group {
                Group { pods, .. } if pods.is_empty() => {}
                Group { why: Some(_), .. } => {
                    note(planner, &self.left_over, &now, problem, &group);
                }
                _ if may_explain && unexplained.len() < GROUPS_MAX => {
                    // These hear of it when it is known what would help.
                    unexplained.push(group);
                    continue;
                }
                // They may be explained now, and if not, it is their turn after the next plan.
                _ if !may_explain => continue,
                _ => {}
            }
            for pod in alike.iter().filter_map(|pod| live(&now, problem, *pod)) {
                let told = lock(&self.left_over).get(&pod.uid).cloned();
                report::refused(
                    planner,
                    pod,
                    &reasons(&plan, alike[0]),
                    told.map(|own| own.why),
                );
            }
        }
        if unexplained.is_empty() {
            return;
        }
        let (planner, told) = (planner.clone(), Arc::clone(&self.left_over));
        self.work.spawn(async move {
            let work = move || {
                for group in &mut unexplained {
                    let n_pods = group.pods.len();
                    let why = explain(&asked.problem, &plan, group.pods[0], n_pods);
                    group.why = Some(Arc::new(why));
                }
                (asked, unexplained)
            };
            let Some((asked, explained)) = planner.background.run(work).await else {
                return;
            };
            for group in &explained {
                note(&planner, &told, &now, &asked.problem, group);
                let pods = group.pods.iter();
                for pod in pods.filter_map(|pod| live(&now, &asked.problem, *pod)) {
                    let reasons = group.why.as_ref().map_or(&[][..], |own| &own.reasons);
                    report::refused(&planner, pod, reasons, group.why.clone());
                }
            }
        });
    }

    /// Those of a group of pods that have not heard this reason, and what others of them have heard.
    fn news(
        &self,
        now: &Snapshot,
        problem: &Problem,
        alike: &[PodIx],
        says: Arc<str>,
        at: Timestamp,
    ) -> Group {
        let told = lock(&self.left_over);
        let mut group = Group {
            pods: Vec::new(),
            says,
            why: None,
        };
        for pod in alike {
            let Some(live) = live(now, problem, *pod) else {
                continue;
            };
            match told.get(&live.uid) {
                Some(known) if known.says == group.says => group.why = Some(Arc::clone(&known.why)),
                Some(known) if at.duration_since(known.at) < EVERY => {}
                Some(_) | None => group.pods.push(*pod),
            }
        }
        group
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn live<'s>(now: &'s Snapshot, problem: &Problem, pod: PodIx) -> Option<&'s Arc<LivePod>> {
    now.pod(&problem.pods[pod.0 as usize].name)
}

fn reasons(plan: &Plan, pod: PodIx) -> Vec<String> {
    let own = plan.unplaced.iter().find(|own| own.pod == pod);
    let refusals = own.map(|own| own.refusals.iter());
    refusals
        .into_iter()
        .flatten()
        .map(Refusal::to_string)
        .collect()
}

/// Pods that are left over, those of one shape with the same reasons together.
fn groups(problem: &Problem, plan: &Plan) -> Vec<(Vec<PodIx>, Arc<str>)> {
    let mut all: BTreeMap<(u32, String), Vec<PodIx>> = BTreeMap::new();
    for own in &plan.unplaced {
        let shape = problem.pods[own.pod.0 as usize].shape.0;
        let says: Vec<String> = own.refusals.iter().map(kind_of).collect();
        all.entry((shape, says.join("; ")))
            .or_default()
            .push(own.pod);
    }
    let all = all.into_iter();
    all.map(|((_, says), pods)| (pods, says.into())).collect()
}

/// What makes a reason another one: figures that change with every node that comes or goes do not.
fn kind_of(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Nodes { ruling, .. } => format!("nodes: {ruling}"),
        Refusal::Pool(own) => {
            if let Ruling::Limit { resource, .. } = &own.ruling {
                return format!("{}: limit of {resource}", own.pool);
            }
            format!("{}: {}", own.pool, own.ruling)
        }
        other @ (Refusal::Ignored(_) | Refusal::NoPools | Refusal::Absent { .. }) => {
            other.to_string()
        }
    }
}

/// How offerings are ruled out for a pod, and what would help.
fn explain(problem: &Problem, plan: &Plan, pod: PodIx, n_pods: usize) -> LeftOver {
    let step = |own: joiner_solver::FunnelStep| FunnelStep {
        after: own.question,
        offerings_left: own.n_left,
    };
    let funnel = joiner_solver::explain(problem, plan, pod).pools.into_iter();
    let changes = joiner_solver::remedies(problem, plan, pod).into_iter();
    // A pod that cannot be judged at all is not a question of offerings.
    let is_judged = problem.pods[pod.0 as usize].ignored.is_none();
    let funnel = funnel.filter(|_| is_judged);
    let named = problem.shape(pod).requests.iter();
    let named = named.filter(|(name, _)| **name != ResourceName::Pods);
    let requests: Resources = named.map(|(name, n)| (name.clone(), n)).collect();
    LeftOver {
        requests: requests.to_string(),
        reasons: reasons(plan, pod),
        funnel: funnel
            .take(POOLS_MAX)
            .map(|(pool, steps)| PoolFunnel {
                node_pool: pool.to_string(),
                steps: steps.into_iter().map(step).collect(),
            })
            .collect(),
        changes: changes
            .take(CHANGES_MAX)
            .map(|own| Helps {
                kind: own.change.kind().to_owned(),
                change: own.change.to_string(),
                place: own.place.to_string(),
                price_per_hour: in_dollars(own.price),
            })
            .collect(),
        pods: n_pods,
    }
}

/// Writes down why pods are left over, and remembers it.
fn note(
    planner: &Planner,
    told: &Mutex<BTreeMap<Name, Told>>,
    now: &Snapshot,
    problem: &Problem,
    group: &Group,
) {
    let Some(why) = &group.why else {
        return;
    };
    let at = planner.shared.clock.now();
    let pods: Vec<&Arc<LivePod>> = (group.pods.iter())
        .filter_map(|pod| live(now, problem, *pod))
        .collect();
    let mut known = lock(told);
    for pod in &pods {
        let told = Told {
            says: Arc::clone(&group.says),
            why: Arc::clone(why),
            at,
        };
        known.insert(pod.uid.clone(), told);
    }
    drop(known);
    let shown = match pods.as_slice() {
        [] => return,
        [pod] => pod.name.to_string(),
        [pod, ..] => format!("{} and {} more pods like it", pod.name, pods.len() - 1),
    };
    let mut why = LeftOver::clone(why);
    why.pods = pods.len();
    planner.shared.decisions.record(Decision {
        time: at,
        kind: UNSCHEDULABLE.to_owned(),
        generation: now.generation,
        outcome: format!("no place for {shown}"),
        price_before: None,
        price_after: None,
        reasons: why.reasons.clone(),
        alternatives: why.changes.iter().map(help).collect(),
        about: pods
            .iter()
            .take(PODS_MAX)
            .map(|pod| format!("pod/{}", pod.name))
            .collect(),
        details: serde_json::to_value(why).unwrap_or_default(),
    });
}

/// A change that would help, in a line.
pub(super) fn help(own: &Helps) -> String {
    let price = match own.price_per_hour {
        0.0 => "for nothing more".to_owned(),
        price => format!("for ${price:.4} an hour"),
    };
    format!("{}: it would go to {} {price}", own.change, own.place)
}
