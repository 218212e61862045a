//! How many pending pods can go to which zone only: when a zone runs out, these wait.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_model::{Name, PodShape, PodTerm, Problem, Selector, ShapeIx, Spread, Terms, keys};
use joiner_runtime::Metrics;
use joiner_runtime::metric_names::SCHEDULER_PENDING_PODS_BY_ZONE;
use joiner_state::live::Asked;

use super::number;

/// Pods that may go to several zones.
const FLEXIBLE: &str = "flexible";
/// Pods that may go to none.
const NONE: &str = "none";

/// Shows where the pods of a problem may go.
pub(crate) fn show(metrics: &Metrics, controller: &str, asked: &Asked) {
    let counts = pending_by_zone(&asked.problem, &asked.headroom);
    let samples = counts.into_iter().map(|(zone, n)| {
        let labels = [("controller", controller), ("zone", &*zone)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        (labels.to_vec(), number(n))
    });
    metrics.replace(SCHEDULER_PENDING_PODS_BY_ZONE, samples.collect());
}

/// Pods without a node, by the one zone that is left to them.
fn pending_by_zone(problem: &Problem, headroom: &BTreeSet<Name>) -> BTreeMap<Name, usize> {
    let mut pending: BTreeMap<ShapeIx, usize> = BTreeMap::new();
    for pod in &problem.pods {
        if pod.node.is_none() && pod.ignored.is_none() && !headroom.contains(&pod.name) {
            *pending.entry(pod.shape).or_default() += 1;
        }
    }
    let zones = Zones::of(problem);
    let mut counts = BTreeMap::new();
    for (ix, n) in pending {
        let zone = zones.left_to(&problem.shapes[ix.0 as usize]);
        *counts.entry(zone).or_default() += n;
    }
    counts
}

/// Zones, and how many pods of each shape are in them.
struct Zones<'p> {
    problem: &'p Problem,
    all: BTreeSet<&'p Name>,
    bound: HashMap<ShapeIx, BTreeMap<&'p Name, u64>>,
}

impl<'p> Zones<'p> {
    fn of(problem: &'p Problem) -> Self {
        let offerings = problem.types.iter().flat_map(|types| &types.offerings);
        let sold = offerings.filter_map(|offering| offering.labels.get(keys::ZONE));
        let nodes = problem.nodes.iter();
        let there = nodes.filter_map(|node| node.labels.get(keys::ZONE));
        let mut bound: HashMap<ShapeIx, BTreeMap<&Name, u64>> = HashMap::new();
        for pod in problem.pods.iter().filter(|pod| !pod.terminating) {
            let node = pod.node.map(|ix| &problem.nodes[ix.0 as usize]);
            if let Some(zone) = node.and_then(|node| node.labels.get(keys::ZONE)) {
                *bound.entry(pod.shape).or_default().entry(zone).or_default() += 1;
            }
        }
        Self {
            problem,
            all: sold.chain(there).collect(),
            bound,
        }
    }

    /// The only zone that pods of a shape may go to, or what there is instead.
    fn left_to(&self, shape: &PodShape) -> Name {
        let is_open = |terms: &[Terms], zone: &Name| {
            terms.is_empty() || terms.iter().any(|term| admits(term, zone))
        };
        let is_chosen =
            |zone: &Name| admits(&shape.node_selector, zone) && is_open(&shape.node_terms, zone);
        let chosen: BTreeSet<&Name> = self.all.iter().copied().filter(|z| is_chosen(z)).collect();
        let mut left = chosen.clone();
        left.retain(|zone| is_open(&shape.volume_terms, zone));
        let of_zone = |key: &Name| &**key == keys::ZONE;
        let spreads = shape.spreads.iter().filter(|spread| spread.hard);
        for spread in spreads.filter(|spread| of_zone(&spread.key)) {
            self.keep_even(&mut left, &chosen, shape, spread);
        }
        for term in shape.affinity.iter().filter(|term| of_zone(&term.key)) {
            let counts = self.matching(term);
            // The first of those that want to be together may go anywhere.
            let is_first = counts.is_empty() && selects(term.selector.as_ref(), shape);
            left.retain(|zone| is_first || counts.contains_key(zone));
        }
        for term in shape.anti_affinity.iter().filter(|term| of_zone(&term.key)) {
            let counts = self.matching(term);
            left.retain(|zone| !counts.contains_key(zone));
        }
        let mut left = left.iter();
        match (left.next(), left.next()) {
            (None, _) => NONE.into(),
            (Some(_), None) if !is_bound_to_zones(shape) => FLEXIBLE.into(),
            (Some(zone), None) => (*zone).clone(),
            (Some(_), Some(_)) => FLEXIBLE.into(),
        }
    }

    /// Leaves the zones that another pod keeps within the skew.
    fn keep_even(
        &self,
        left: &mut BTreeSet<&Name>,
        counted: &BTreeSet<&Name>,
        shape: &PodShape,
        spread: &Spread,
    ) {
        let term = PodTerm {
            key: spread.key.clone(),
            namespaces: vec![shape.namespace.clone()],
            selector: spread.selector.clone(),
        };
        let counts = self.matching(&term);
        let n = |zone: &Name| counts.get(zone).copied().unwrap_or(0);
        let too_few = spread
            .min_domains
            .is_some_and(|min| counted.len() < min as usize);
        let fewest = match too_few {
            true => 0,
            false => counted.iter().map(|zone| n(zone)).min().unwrap_or(0),
        };
        let one = u64::from(selects(spread.selector.as_ref(), shape));
        left.retain(|zone| n(zone) + one <= fewest + u64::from(spread.max_skew));
    }

    /// Zones with pods that a term is about, and how many.
    fn matching(&self, term: &PodTerm) -> BTreeMap<&Name, u64> {
        let mut counts = BTreeMap::new();
        for (ix, shape) in (0u32..).zip(&self.problem.shapes) {
            let selector = term.selector.as_ref();
            let is_meant = selector.is_none_or(|selector| selector.matches(&shape.labels));
            if !is_meant || !term.namespaces.contains(&shape.namespace) {
                continue;
            }
            for (zone, n) in self.bound.get(&ShapeIx(ix)).into_iter().flatten() {
                *counts.entry(*zone).or_default() += n;
            }
        }
        counts
    }
}

/// True when a pod of this shape is one of those that are counted.
fn selects(selector: Option<&Selector>, shape: &PodShape) -> bool {
    selector.is_some_and(|selector| selector.matches(&shape.labels))
}

/// True when what is asked of a node's zone holds in this one.
fn admits(terms: &Terms, zone: &Name) -> bool {
    let mut of_zone = terms.iter().filter(|term| &**term.key() == keys::ZONE);
    of_zone.all(|term| term.holds(Some(zone)))
}

/// True when a pod of this shape says something about zones.
fn is_bound_to_zones(shape: &PodShape) -> bool {
    let names_zone = |terms: &Terms| terms.iter().any(|term| &**term.key() == keys::ZONE);
    let rules = shape.affinity.iter().chain(&shape.anti_affinity);
    let spreads = shape.spreads.iter().filter(|spread| spread.hard);
    let mut topology = rules
        .map(|rule| &rule.key)
        .chain(spreads.map(|spread| &spread.key));
    names_zone(&shape.node_selector)
        || shape.node_terms.iter().any(names_zone)
        || shape.volume_terms.iter().any(names_zone)
        || topology.any(|key| &**key == keys::ZONE)
}

#[cfg(test)]
mod tests {
    use joiner_testkit::World;

    use super::*;

    const ZONE: &str = keys::ZONE;

    /// Pods that run in zones, as `app: zone`.
    fn running(pods: &[(&str, &str)]) -> String {
        let mut text = String::new();
        for zone in ["a", "b"] {
            text += &format!(
                "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {zone}, labels: {{{ZONE}: {zone}}}}}, \
                 status: {{allocatable: {{cpu: '64', memory: 64Gi, pods: '100'}}}}}}\n"
            );
        }
        for (ix, (app, zone)) in pods.iter().enumerate() {
            text += &format!(
                "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: r{ix}, labels: {{app: {app}}}}}, \
                 spec: {{nodeName: {zone}}}, status: {{phase: Running}}}}\n"
            );
        }
        text
    }

    /// The zone that is left to a pod of app `web` with this spec.
    fn left(spec: &str, pods: &[(&str, &str)]) -> String {
        let pod = format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p, labels: {{app: web}}}}, spec: {spec}}}\n"
        );
        let text = running(pods) + &pod;
        let problem = World::standard().add(text.as_str()).read().unwrap().problem;
        let counts = pending_by_zone(&problem, &BTreeSet::new());
        let shown: Vec<String> = counts
            .iter()
            .map(|(zone, n)| format!("{zone} {n}"))
            .collect();
        shown.join(", ")
    }

    #[test]
    fn pods_are_counted_by_the_zone_that_is_left_to_them() {
        let near = |kind: &str, app: &str| {
            format!(
                "{{affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: \
                 {ZONE}, labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}}}"
            )
        };
        let spread = |when: &str| {
            format!(
                "{{nodeSelector: {{}}, topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {ZONE}, \
                 whenUnsatisfiable: {when}, labelSelector: {{matchLabels: {{app: web}}}}}}]}}"
            )
        };
        let two = "{key: topology.kubernetes.io/zone, operator: In, values: [a, b]}";
        let within = format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: [{{matchExpressions: [{two}]}}]}}}}}}"
        );
        let in_two = spread("DoNotSchedule").replace("nodeSelector: {}", &within);
        let (a, b) = ("a", "b");
        let one = format!("{{nodeSelector: {{{ZONE}: {a}}}}}");
        let nowhere = format!("{{nodeSelector: {{{ZONE}: moon}}}}");
        for (spec, pods, expected) in [
            ("{}", &[][..], "flexible 1"),
            (&*one, &[], "a 1"),
            (&nowhere, &[], "none 1"),
            // Together, apart, even.
            (&near("podAffinity", "db"), &[("db", b)], "b 1"),
            (&near("podAffinity", "db"), &[], "none 1"),
            (&near("podAffinity", "web"), &[], "flexible 1"),
            (&near("podAntiAffinity", "db"), &[("db", b)], "flexible 1"),
            (&in_two, &[], "flexible 1"),
            (&in_two, &[("web", a)], "b 1"),
            (&in_two, &[("web", a), ("web", b)], "flexible 1"),
            (&spread("ScheduleAnyway"), &[("web", a)], "flexible 1"),
        ] {
            assert_eq!(left(spec, pods), expected, "{spec} {pods:?}");
        }
    }
}
