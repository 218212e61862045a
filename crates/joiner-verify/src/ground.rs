//! What every check looks at and none changes.

use std::collections::BTreeSet;

use joiner_model::{
    InstanceType, Labels, Launch, Node, Plan, PodIx, PodShape, Pool, Problem, Requirement, Taint,
    TypeIx, keys, tolerates_all,
};

use crate::demands::{Demand, Demands};

/// Problem and plan, with what is worth knowing about both.
pub(crate) struct Ground<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) plan: &'p Plan,
    pub(crate) demands: Demands<'p>,
    /// Label keys that a pod, a daemon or a launch asks about: only their values matter.
    pub(crate) asked: BTreeSet<&'p str>,
    /// Label keys that some type or offering has: a type without one lacks the label.
    pub(crate) type_keys: BTreeSet<&'p str>,
    /// Label keys that some offering has.
    pub(crate) offering_keys: BTreeSet<&'p str>,
}

impl<'p> Ground<'p> {
    pub(crate) fn new(problem: &'p Problem, plan: &'p Plan) -> Self {
        let demands = Demands::new(problem);
        Self {
            asked: asked_keys(problem, plan, &demands),
            type_keys: type_keys(problem),
            offering_keys: offering_keys(problem),
            problem,
            plan,
            demands,
        }
    }

    pub(crate) fn shape(&self, pod: PodIx) -> &'p PodShape {
        &self.problem.shapes[self.shape_ix(pod)]
    }

    pub(crate) fn shape_ix(&self, pod: PodIx) -> usize {
        self.problem[pod].shape.0 as usize
    }

    pub(crate) fn demand(&self, pod: PodIx) -> Demand {
        self.demands.shapes[self.shape_ix(pod)]
    }

    pub(crate) fn pod_name(&self, pod: PodIx) -> &'p str {
        &self.problem[pod].name
    }

    /// The pool of a launch, if there is such a pool.
    pub(crate) fn pool_of(&self, launch: &Launch) -> Option<(usize, &'p Pool)> {
        let ix = launch.pool.0 as usize;
        self.problem.pools.get(ix).map(|pool| (ix, pool))
    }

    pub(crate) fn instance_type(&self, ty: TypeIx) -> Option<&'p InstanceType> {
        self.problem.types.get(ty.0 as usize)
    }

    /// The first hard taint that is not tolerated. `PreferNoSchedule` is a wish, never in the way.
    pub(crate) fn untolerated<'t>(&self, demand: Demand, taints: &'t [Taint]) -> Option<&'t Taint> {
        let tolerations = self.demands.tolerations(demand.tolerations);
        tolerates_all(tolerations, taints, true).err()
    }
}

/// The label of a node that exists.
pub(crate) fn node_label<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    let own = node.labels.get(key).map(AsRef::as_ref);
    own.or_else(|| (key == keys::HOSTNAME).then_some(node.name.as_ref()))
}

/// A label of something, as text.
pub(crate) fn label<'l>(labels: &'l Labels, key: &str) -> Option<&'l str> {
    labels.get(key).map(AsRef::as_ref)
}

fn asked_keys<'p>(
    problem: &'p Problem,
    plan: &'p Plan,
    demands: &Demands<'p>,
) -> BTreeSet<&'p str> {
    let key = |r: &'p Requirement| r.key().as_ref();
    let selections = demands
        .selections()
        .iter()
        .flat_map(|s| s.requirements().map(key));
    let volumes = demands
        .all_volumes()
        .iter()
        .flat_map(|any| any.iter().flatten().map(key));
    let launches = plan
        .launches
        .iter()
        .flat_map(|l| l.requirements.iter().map(key));
    let topology = problem.shapes.iter().flat_map(|s| {
        let terms = s
            .affinity
            .iter()
            .chain(&s.anti_affinity)
            .map(|t| t.key.as_ref());
        terms.chain(s.spreads.iter().map(|s| s.key.as_ref()))
    });
    selections
        .chain(volumes)
        .chain(launches)
        .chain(topology)
        .collect()
}

fn offering_keys(problem: &Problem) -> BTreeSet<&str> {
    let offerings = problem.types.iter().flat_map(|t| &t.offerings);
    let keys = offerings.flat_map(|o| o.labels.keys());
    keys.map(AsRef::as_ref).collect()
}

fn type_keys(problem: &Problem) -> BTreeSet<&str> {
    let always = [
        keys::ZONE,
        keys::CAPACITY_TYPE,
        keys::HOSTNAME,
        keys::OS,
        keys::INSTANCE_TYPE,
    ];
    let of_types = problem.types.iter().flat_map(|t| {
        let offerings = t.offerings.iter().flat_map(|o| o.labels.keys());
        t.labels.keys().chain(offerings).map(AsRef::as_ref)
    });
    always.into_iter().chain(of_types).collect()
}
