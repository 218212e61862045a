//! Which single changes are worth a question.

use joiner_model::{
    Operator, PodIx, PodShape, Pool, Problem, Requirement, Requirements, ResourceName, Taint, keys,
};

use crate::ground::Ground;
use crate::remedy_changes::Change;
use crate::select::{Asks, Choices};

/// Taints that say what state a node is in: tolerating them helps nobody.
const STATE_TAINTS: [&str; 4] = [
    "karpenter.sh/",
    "node.kubernetes.io/",
    "node-role.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
];
/// Domains of labels that are not for pools to invent.
const RESERVED: [&str; 4] = [
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
];
/// Keys of a pool's requirements that say what its nodes can run: a pod that does not ask for them
/// counts on them all the same.
const PLATFORM: [&str; 4] = [keys::OS, keys::ARCH, keys::WINDOWS_BUILD, keys::NODE_POOL];

/// Changes worth a question, those of different kinds in turns: a bound on their number then leaves
/// out none of the kinds.
pub(crate) fn candidates(problem: &Problem, pod: PodIx) -> Vec<Change> {
    let shape = problem.shape(pod);
    let mut kinds = vec![
        tolerations(problem, shape),
        selection(shape),
        limits(problem),
        company(shape),
        smaller(problem, pod),
        widened(problem, shape),
        opened(problem),
        loosened(problem),
    ];
    let mut all = Vec::new();
    for kind in &mut kinds {
        kind.reverse();
    }
    while kinds.iter().any(|kind| !kind.is_empty()) {
        for change in kinds.iter_mut().filter_map(Vec::pop) {
            if !all.contains(&change) {
                all.push(change);
            }
        }
    }
    all
}

/// Pools by weight, as they are tried.
fn by_weight(problem: &Problem) -> Vec<&Pool> {
    let mut pools: Vec<&Pool> = problem.pools.iter().collect();
    pools.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
    pools
}

/// The one taint that keeps the pod off a pool or a node.
fn tolerations(problem: &Problem, shape: &PodShape) -> Vec<Change> {
    let pools = by_weight(problem).into_iter().map(|pool| &pool.taints);
    let nodes = problem.nodes.iter().filter(|node| !node.closed);
    let mut found: Vec<Change> = Vec::new();
    for taints in pools.chain(nodes.map(|node| &node.taints)) {
        let hard = |taint: &&Taint| taint.effect != joiner_model::Effect::PreferNoSchedule;
        let refused = |taint: &&Taint| !shape.tolerations.iter().any(|own| own.tolerates(taint));
        let mut in_the_way = taints.iter().filter(hard).filter(refused);
        let (Some(taint), None) = (in_the_way.next(), in_the_way.next()) else {
            continue;
        };
        let change = Change::Tolerate(taint.clone());
        let is_state = STATE_TAINTS.iter().any(|own| taint.key.starts_with(own));
        if !is_state && !found.contains(&change) {
            found.push(change);
        }
    }
    found
}

fn selection(shape: &PodShape) -> Vec<Change> {
    let selector = shape.node_selector.iter().cloned();
    let affinity = shape.node_terms.iter().flatten().cloned();
    let mut all: Vec<Change> = selector.map(Change::DropSelector).collect();
    all.extend(affinity.map(Change::DropAffinity));
    all
}

fn limits(problem: &Problem) -> Vec<Change> {
    let limited = by_weight(problem)
        .into_iter()
        .filter_map(|pool| Some((pool, pool.limits.as_ref()?)));
    let all = limited.flat_map(|(pool, limits)| {
        limits.iter().map(|(resource, from)| Change::RaiseLimit {
            pool: pool.name.clone(),
            resource: resource.clone(),
            from,
            to: from,
        })
    });
    all.collect()
}

fn company(shape: &PodShape) -> Vec<Change> {
    let spreads = shape.spreads.iter().filter(|own| own.hard);
    let mut all: Vec<Change> = Vec::new();
    all.extend(spreads.map(|own| Change::SoftenSpread(own.key.clone())));
    let terms = shape.anti_affinity.iter();
    all.extend(terms.map(|own| Change::SoftenPodAntiAffinity(own.key.clone())));
    let terms = shape.affinity.iter();
    all.extend(terms.map(|own| Change::SoftenPodAffinity(own.key.clone())));
    all.extend(shape.ports.iter().map(|own| Change::DropPort(own.port)));
    if !shape.volume_terms.is_empty() {
        all.push(Change::MoveVolumes);
    }
    all
}

/// Smaller requests, one resource at a time: as much as the largest node that can be had, or can be
/// had within the limits, or is there, has of it next to everything else that the pod asks for.
fn smaller(problem: &Problem, pod: PodIx) -> Vec<Change> {
    let shape = problem.shape(pod);
    let ground = Ground::new(problem);
    let mut choices = Choices::default();
    let choice = choices.of(&ground, Asks::new(shape, None, true));
    let choice = &choices.all[choice as usize];
    let need = ground.amounts(&shape.requests);
    let sold = || {
        let allowed = ground.kinds.iter();
        allowed.filter(|kind| choice.alternatives.iter().any(|sel| sel.has(kind)))
    };
    let nothing = Default::default();
    let within = |kind: &&crate::ground::Kind| {
        let p = ground.pool_of(kind);
        let capacity = &problem.types[kind.ty as usize].capacity;
        let mut limits = problem.pools[p].limits.iter().flat_map(|own| own.iter());
        limits.all(|(name, limit)| {
            let used = crate::funnel::used(problem, &nothing, p, name);
            let has = if name.as_str() == "nodes" {
                1
            } else {
                capacity.get(name)
            };
            has <= limit.saturating_sub(used)
        })
    };
    let mut all = Vec::new();
    for (d, resource) in ground.dims.iter().enumerate() {
        if need[d] == 0 || *resource == ResourceName::Pods {
            continue;
        }
        let beside = |room: &&[u64]| (0..need.len()).all(|e| e == d || need[e] <= room[e]);
        let most = |rooms: &mut dyn Iterator<Item = &[u64]>| {
            rooms.filter(|room| beside(room)).map(|room| room[d]).max()
        };
        // The largest node is worth a word however small it is; a hole is not.
        let half = need[d] / 2;
        let found = [
            (most(&mut sold().map(|kind| ground.room_of(kind))), 0),
            (
                most(&mut sold().filter(within).map(|kind| ground.room_of(kind))),
                half,
            ),
            (
                most(&mut choice.hosts.ones().map(|n| ground.hosts[n].room.as_slice())),
                half,
            ),
        ];
        let found = found
            .into_iter()
            .filter_map(|(most, least)| Some((most?, least)));
        for (most, least) in found.filter(|(most, _)| *most < need[d]) {
            let to = round_down(resource, most);
            if to > least {
                all.push(Change::Shrink {
                    resource: resource.clone(),
                    from: need[d],
                    to,
                });
            }
        }
    }
    all
}

/// What people write in a request.
fn round_down(resource: &ResourceName, amount: u64) -> u64 {
    let step = match resource {
        ResourceName::Cpu if amount >= 10_000 => 1000,
        ResourceName::Cpu if amount >= 1_000 => 100,
        ResourceName::Cpu => 10,
        ResourceName::Memory | ResourceName::EphemeralStorage if amount >= 16 << 30 => 1 << 30,
        ResourceName::Memory | ResourceName::EphemeralStorage if amount >= 1 << 30 => 128 << 20,
        ResourceName::Memory | ResourceName::EphemeralStorage => 1 << 20,
        ResourceName::Pods | ResourceName::Other(_) => 1,
    };
    amount - amount % step
}

/// Pools that exclude what the pod asks for in one point, or lack one label.
fn widened(problem: &Problem, shape: &PodShape) -> Vec<Change> {
    let asked: Requirements = {
        let first = shape.node_terms.first().into_iter().flatten();
        shape.node_selector.iter().chain(first).cloned().collect()
    };
    let mut all = Vec::new();
    for pool in by_weight(problem) {
        let mut template = pool.requirements.clone();
        for own in Requirements::from_labels(&pool.labels).iter() {
            template.add(own.clone());
        }
        for wanted in asked.iter() {
            if [keys::NODE_POOL, keys::HOSTNAME].contains(&&**wanted.key()) {
                continue;
            }
            match template.get(wanted.key()) {
                Some(own) if own.intersects(wanted) => {}
                Some(_) => all.push(Change::Widen {
                    pool: pool.name.clone(),
                    wanted: wanted.clone(),
                }),
                None => all.extend(label(problem, pool, wanted)),
            }
        }
    }
    all
}

/// The label that a pool lacks, if it is one that a pool can have.
fn label(problem: &Problem, pool: &Pool, wanted: &Requirement) -> Option<Change> {
    let key = wanted.key();
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_reserved = RESERVED
        .iter()
        .any(|own| domain == *own || domain.ends_with(&format!(".{own}")));
    let is_known = keys::WELL_KNOWN.contains(&&**key) || problem.well_known.contains(key);
    if is_reserved || is_known || wanted.operator() != Operator::In {
        return None;
    }
    Some(Change::Label {
        pool: pool.name.clone(),
        key: key.clone(),
        value: wanted.members()?.first()?.clone(),
    })
}

/// Pools that are out of use.
fn opened(problem: &Problem) -> Vec<Change> {
    let pools = by_weight(problem).into_iter();
    let closed = pools.filter_map(|pool| Some((pool, pool.closed.as_ref()?)));
    let able = closed.filter(|(pool, _)| !pool.types.is_empty());
    able.map(|(pool, why)| Change::Open {
        pool: pool.name.clone(),
        why: why.clone(),
    })
    .collect()
}

/// Requirements that pools could do without.
fn loosened(problem: &Problem) -> Vec<Change> {
    let mut all = Vec::new();
    for pool in by_weight(problem) {
        for requirement in pool.requirements.iter() {
            let (pool, key) = (pool.name.clone(), requirement.key());
            if requirement.min_values().is_some() {
                let (pool, key) = (pool.clone(), key.clone());
                all.push(Change::DropMinValues { pool, key });
            }
            if !PLATFORM.contains(&&**key) {
                all.push(Change::DropRequirement {
                    pool,
                    requirement: requirement.clone().with_min_values(None),
                });
            }
        }
    }
    all
}
