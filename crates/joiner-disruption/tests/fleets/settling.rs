//! The public story, decided only: most pods of a fleet go, and it settles close to what the others
//! would cost if they were planned afresh.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use joiner_testkit::story::workloads;
use joiner_testkit::{Random, World, pool};

use crate::stage::Stage;

const REPLICAS: usize = 50;
/// Replicas that stay.
const STAY: usize = 15;
/// How far above the price afresh it may settle, in thousandths.
const ABOVE_MAX: u64 = 15;
/// A fleet settles within so many passes.
const PASSES_MAX: usize = 30;

/// All pods of the story, on the nodes that they need.
fn full() -> Stage {
    let mut text = String::new();
    for own in workloads() {
        let (name, milli, mebi) = (&own.name, own.milli, own.mebi);
        let rules = own.rules.as_object().expect("an object").iter();
        let rules: String = rules
            .map(|(key, rule)| format!(", {key}: {rule}"))
            .collect();
        for n in 0..REPLICAS {
            let _ = write!(
                text,
                "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}-{n}, labels: {{app: {name}}}}}\n\
                 spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: {milli}m, \
                 memory: {mebi}Mi}}}}}}]{rules}}}\n"
            );
        }
    }
    let pool = pool("default").capacity_types("on-demand");
    let pool = pool.requirement("karpenter.k8s.aws/instance-category", "In", "c m r");
    let mut stage = Stage::of(&World::ec2().add(pool).add(text.as_str()));
    stage.provision();
    stage
}

/// Any of the replicas go, until so many of each workload are left.
fn scale_in(stage: &mut Stage, seed: &str) {
    let mut random = Random::new(seed);
    let mut replicas: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, pod) in stage.problem.pods.iter().enumerate() {
        let (owner, _) = pod.name.rsplit_once('-').expect("a number");
        replicas.entry(owner).or_default().push(at);
    }
    let mut stay = BTreeSet::new();
    for mut own in replicas.into_values() {
        for _ in 0..STAY {
            stay.insert(own.swap_remove(random.below(own.len() as u64) as usize));
        }
    }
    let mut at = 0..;
    let mut stays = |_: &_| at.next().is_some_and(|at| stay.contains(&at));
    stage.problem.pods.retain(&mut stays);
    stage.seat();
}

#[test]
fn it_settles_close_to_what_its_pods_cost_afresh() {
    let before = full();
    for seed in ["settling/1", "settling/2", "settling/3"] {
        let mut stage = before.clone();
        scale_in(&mut stage, seed);
        let afresh = stage.price_afresh();
        let mut told = format!("${} before, ${afresh} afresh", stage.price());
        for _ in 0..PASSES_MAX {
            for command in stage.decide().commands {
                let _ = write!(told, "\n{}", command.why);
                stage.apply(&command);
            }
        }
        let price = stage.price();
        assert!(stage.decide().commands.is_empty(), "{seed}: no end: {told}");
        assert!(
            price.get() * 1000 <= afresh.get() * (1000 + ABOVE_MAX),
            "{seed}: ${price} in the end: {told}"
        );
    }
}
