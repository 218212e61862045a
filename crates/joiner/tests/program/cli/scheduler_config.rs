//! `--scheduler-config`: spread constraints for pods that declare none.

use crate::cli::support::{TempFile, joiner};

const CONFIG: &str = "podTopologySpread:
  defaultConstraints:
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: DoNotSchedule
";

const CLUSTER: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: pause, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}}
";

#[test]
fn core_173_a_plan_spreads_pods_that_say_nothing_about_it() {
    let cluster = TempFile::new("cluster.yaml", CLUSTER);
    let config = TempFile::new("scheduler.yaml", CONFIG);
    let n_nodes = |more: &[&str]| {
        let mut args = vec!["plan", "-o", "json", "-f", cluster.path()];
        args.extend(more);
        let run = joiner(&args).exits(0);
        run.json()["newNodes"].as_array().unwrap().len()
    };
    assert_eq!(n_nodes(&[]), 1);
    assert_eq!(n_nodes(&["--scheduler-config", config.path()]), 3);
    // The text itself, as upstream has it.
    assert_eq!(n_nodes(&["--scheduler-config", CONFIG]), 3);
    let soft = CONFIG.replace("DoNotSchedule", "ScheduleAnyway");
    assert_eq!(n_nodes(&["--scheduler-config", &soft]), 3);
    let ignored = ["--preference-policy", "Ignore", "--scheduler-config", &soft];
    assert_eq!(n_nodes(&ignored), 1);
}

#[test]
fn core_361_a_bad_scheduler_config_is_told_at_once() {
    let config = TempFile::new("scheduler.yaml", CONFIG.replace("maxSkew: 1", "maxSkew: 0"));
    for command in [&["plan", "-f", "-"][..], &["run", "--cloud", "simulated"]] {
        let mut args = command.to_vec();
        args.extend(["--scheduler-config", config.path()]);
        let field = "podTopologySpread.defaultConstraints[0].maxSkew: 0 is not above zero";
        joiner(&args).fails_in_one_line(&[config.path(), field]);
    }
}
