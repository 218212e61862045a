//! What comes out of which text.

mod catalog;
mod classes;
mod documents;
mod hostile;
mod nodes;
mod overlays;
mod pods;
mod pools;
mod selection;
mod spread_defaults;
mod volumes;
mod workloads;

use joiner_model::{InstanceType, Pod, PodShape, Problem, ResourceName};

use crate::{Catalog, Input, Objects, Source, parse_instance_types};

const TYPES: &str = r#"[
  {"name": "small", "architecture": "amd64", "resources": {"cpu": "2", "memory": "4Gi"},
   "labels": {"example.com/tier": "gold"},
   "offerings": [
     {"Price": 0.1, "Requirements": [
       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]},
     {"Price": 0.04, "Requirements": [
       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}]}]},
  {"name": "large", "architecture": "arm64", "resources": {"cpu": "8", "memory": "16Gi", "pods": 30},
   "overhead": {"cpu": "100m"},
   "offerings": [
     {"Price": 0.4, "Available": false, "Requirements": [
       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}
]"#;

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}
";

fn types() -> Vec<InstanceType> {
    parse_instance_types("types.json", TYPES).unwrap()
}

fn try_read(text: &str) -> Result<Input, String> {
    let objects = Objects::read([Source::new("in.yaml", text)]).map_err(|e| e.to_string())?;
    objects
        .problem(Catalog::shared(types()))
        .map_err(|e| e.to_string())
}

fn read(text: &str) -> Input {
    try_read(text).unwrap()
}

fn refused(text: &str) -> String {
    try_read(text).unwrap_err()
}

/// A pod called `default/p` with this spec, in flow style.
fn pod_with(spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, labels: {{app: web, rev: r1}}}}\nspec: {spec}\n"
    )
}

/// The shape of `default/p`.
fn shape_of(spec: &str) -> PodShape {
    let input = read(&pod_with(spec));
    shape(&input.problem, "default/p").clone()
}

fn pod<'p>(problem: &'p Problem, name: &str) -> &'p Pod {
    let found = problem.pods.iter().find(|pod| &*pod.name == name);
    found.unwrap_or_else(|| panic!("no pod {name} among {:?}", names(problem)))
}

fn shape<'p>(problem: &'p Problem, name: &str) -> &'p PodShape {
    &problem[pod(problem, name).shape]
}

fn names(problem: &Problem) -> Vec<&str> {
    problem.pods.iter().map(|pod| &*pod.name).collect()
}

/// Why `default/p` with this spec is not placed.
fn ignored(objects: &str, spec: &str) -> Option<String> {
    let input = read(&format!("{objects}\n---\n{}", pod_with(spec)));
    let pod = pod(&input.problem, "default/p");
    pod.ignored.as_ref().map(ToString::to_string)
}

fn cpu(shape: &PodShape) -> u64 {
    shape.requests.get(&ResourceName::Cpu)
}
