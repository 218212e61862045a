//! Writing a plan down: pods get names, nodes get alternatives, leftovers get reasons.

use std::collections::BTreeMap;
use std::thread::ScopedJoinHandle;

use joiner_model::{
    Cost, Launch, Name, NanoDollars, NodeIx, Placement, Plan, PodIx, Problem, Refusal,
    ResourceName, Resources, Unplaced,
};

use crate::cells::Part;
use crate::classes::Classes;
use crate::finish::Finisher;
use crate::floor;
use crate::ground::Ground;
use crate::refuse::Refuser;
use crate::rounds::Attempt;
use crate::select::Choices;

impl Attempt {
    /// A price that no legal placement of these pods can undercut. It asks for other selections than
    /// the plan, and has its own choices.
    pub(crate) fn floor(&self, ground: &Ground<'_>, placed: &[PodIx]) -> NanoDollars {
        let planned = NanoDollars::new(self.ledger.price(ground));
        let mut choices = Choices::default();
        floor::bound(ground, &mut choices, placed, &self.values(), planned)
    }

    /// Writes the plan: names pods, ranks alternatives, bounds the price, gives reasons. `floor` is
    /// the bound for all pods there are, if it is known.
    pub(crate) fn plan(
        &self,
        ground: &Ground<'_>,
        choices: &mut Choices,
        floor: Option<NanoDollars>,
    ) -> Plan {
        let problem = ground.problem;
        let mut pods = PodDealer::new(&self.classes);
        let on_new: Vec<Vec<PodIx>> = self
            .ledger
            .opened
            .iter()
            .map(|node| pods.deal(&self.parts, &node.parts))
            .collect();
        let placements = self.placements(problem, &mut pods);
        let on_old = placements.iter().flat_map(|placement| &placement.pods);
        let mut placed: Vec<PodIx> = on_new.iter().flatten().chain(on_old).copied().collect();
        let n_pending = problem.pending().count();
        let known = floor.filter(|_| placed.len() == n_pending);
        // The bound rests on what is placed and on nothing else that is written here, so it is
        // computed beside.
        let bound = |placed: &[PodIx]| known.unwrap_or_else(|| self.floor(ground, placed));
        let ((mut launches, shapeless), mut bound_of_all) = std::thread::scope(|scope| {
            let helper = std::thread::Builder::new().spawn_scoped(scope, || bound(&placed));
            let launches = self.launches(ground, choices, on_new);
            let bound = match helper.map(ScopedJoinHandle::join) {
                Ok(Ok(bound)) => bound,
                Ok(Err(cause)) => std::panic::resume_unwind(cause),
                // No thread to be had.
                Err(_) => bound(&placed),
            };
            (launches, bound)
        });
        if !shapeless.is_empty() {
            placed.retain(|pod| !shapeless.contains(pod));
            bound_of_all = self.floor(ground, &placed);
        }
        name_launches(problem, &mut launches);
        let price: NanoDollars = launches.iter().map(|l| l.price).sum();
        let mut rest = pods.rest();
        rest.extend(shapeless);
        let unplaced = self.unplaced(ground, choices, rest, bought(problem, &launches));
        Plan {
            launches,
            placements,
            unplaced,
            cost: Cost {
                price,
                bound: bound_of_all.min(price),
            },
        }
    }

    /// New nodes with their alternatives, and the pods of nodes that have none; `pods` are those
    /// of each node.
    fn launches(
        &self,
        ground: &Ground<'_>,
        choices: &Choices,
        pods: Vec<Vec<PodIx>>,
    ) -> (Vec<Launch>, Vec<PodIx>) {
        let problem = ground.problem;
        let opened = &self.ledger.opened;
        let mut finisher = Finisher::new(ground, choices, &self.classes, &self.parts, opened);
        let mut launches = Vec::with_capacity(opened.len());
        let mut shapeless = Vec::new();
        for (node, mut own) in opened.iter().zip(pods) {
            // Nodes without a final shape were taken apart before.
            let Some(shaped) = finisher.shape(node) else {
                shapeless.extend(own);
                continue;
            };
            sort_by_name(problem, &mut own);
            let mut requests = Resources::new();
            own.iter()
                .for_each(|p| requests.add(&problem.shape(*p).requests));
            launches.push(shaped.launch(Name::from(""), own, requests));
        }
        (launches, shapeless)
    }

    /// Pods for nodes that are there.
    fn placements(&self, problem: &Problem, pods: &mut PodDealer<'_>) -> Vec<Placement> {
        let mut by_host: BTreeMap<u32, Vec<PodIx>> = BTreeMap::new();
        for (host, p, n) in &self.ledger.on_hosts {
            by_host
                .entry(*host)
                .or_default()
                .extend(pods.deal(&self.parts, &[(*p, *n)]));
        }
        let placement = |(host, mut own): (u32, Vec<PodIx>)| {
            sort_by_name(problem, &mut own);
            Placement {
                node: NodeIx(host),
                pods: own,
            }
        };
        by_host.into_iter().map(placement).collect()
    }

    /// What single pods are worth at the margin.
    fn values(&self) -> floor::Values {
        let mut values = floor::Values::default();
        for (p, value) in &self.ledger.values {
            let part = &self.parts[*p as usize];
            if let [(c, 1)] = part.item.members[..] {
                let shape = self.classes.all[c as usize].shape;
                values.note(shape, part.limits.clone(), *value);
            }
        }
        values
    }

    /// Pods left over, with reasons; equal pods share them.
    fn unplaced(
        &self,
        ground: &Ground<'_>,
        choices: &mut Choices,
        mut rest: Vec<PodIx>,
        bought: Vec<Resources>,
    ) -> Vec<Unplaced> {
        let problem = ground.problem;
        let mut refuser = Refuser::new(ground, choices, &self.classes, bought);
        sort_by_name(problem, &mut rest);
        let mut all: Vec<Unplaced> = rest
            .into_iter()
            .map(|pod| Unplaced {
                pod,
                refusals: refuser.refusals(pod),
            })
            .collect();
        for (p, pod) in (0u32..).zip(&problem.pods) {
            if let (None, Some(why)) = (pod.node, &pod.ignored) {
                all.push(Unplaced {
                    pod: PodIx(p),
                    refusals: vec![Refusal::Ignored(why.clone())],
                });
            }
        }
        all
    }
}

/// Capacity that these launches add, by pool; `nodes` counts them.
fn bought(problem: &Problem, launches: &[Launch]) -> Vec<Resources> {
    let mut all = vec![Resources::new(); problem.pools.len()];
    for launch in launches {
        let sum = &mut all[launch.pool.0 as usize];
        sum.add(&problem[launch.offering.0].capacity);
        sum.add(&Resources::new().with(ResourceName::parse("nodes"), 1));
    }
    all
}

/// Hands out the pods of each class in name order.
struct PodDealer<'c> {
    classes: &'c Classes,
    dealt: Vec<usize>,
}

impl<'c> PodDealer<'c> {
    fn new(classes: &'c Classes) -> Self {
        Self {
            classes,
            dealt: vec![0; classes.all.len()],
        }
    }

    fn deal(&mut self, parts: &[Part], items: &[(u32, u32)]) -> Vec<PodIx> {
        let mut own = Vec::new();
        for (p, n) in items {
            for (c, m) in &parts[*p as usize].item.members {
                let from = self.dealt[*c as usize];
                let to = from + (*n as usize) * (*m as usize);
                own.extend(&self.classes.all[*c as usize].pods[from..to]);
                self.dealt[*c as usize] = to;
            }
        }
        own
    }

    fn rest(&self) -> Vec<PodIx> {
        let rest = self
            .classes
            .all
            .iter()
            .zip(&self.dealt)
            .flat_map(|(c, n)| &c.pods[*n..]);
        rest.copied().collect()
    }
}

fn sort_by_name(problem: &Problem, pods: &mut [PodIx]) {
    pods.sort_by(|a, b| problem[*a].name.cmp(&problem[*b].name));
}

/// Orders nodes by pool and size, and names them `pool-1`, `pool-2`, …
fn name_launches(problem: &Problem, launches: &mut [Launch]) {
    let pool = |l: &Launch| &problem[l.pool].name;
    let first = |l: &Launch| l.pods.first().map(|p| problem[*p].name.clone());
    launches.sort_by(|a, b| {
        pool(a)
            .cmp(pool(b))
            .then(b.price.cmp(&a.price))
            .then_with(|| first(a).cmp(&first(b)))
    });
    let mut numbers: BTreeMap<Name, u32> = BTreeMap::new();
    for launch in launches {
        let pool = pool(launch).clone();
        let number = numbers.entry(pool.clone()).or_default();
        *number += 1;
        launch.name = format!("{pool}-{number}").into();
    }
}
