//! Workloads come, most of their pods go, and each time the cluster settles close to the least that it
//! could cost.

use std::collections::BTreeSet;
use std::time::Duration;

use joiner_catalog::ClassSettings;
use joiner_catalog::query::Query;
use joiner_cloud_sim::Settings as CloudSettings;
use joiner_model::{NanoDollars, Policy};
use joiner_state::live::Ask;
use joiner_testkit::Random;
use joiner_testkit::story::{N_DEPLOYMENTS, Rule, Workload, workloads};
use serde_json::{Value, json};

use joiner_testkit::stage::{DEPLOYMENTS, NODES, PODS, Setup, Stage, n_running};

/// The cluster has settled when nothing changes for this long.
const STILL: Duration = Duration::from_secs(90);
/// It must settle within this long.
const SETTLES_WITHIN: Duration = Duration::from_secs(1200);
/// How far above the least possible price it may settle, in percent.
const ABOVE_MAX: u64 = 5;
/// Replicas that stay when load goes, in percent.
const STAY: usize = 30;

/// The public story, with so many replicas of each.
fn public(n_pods: usize) -> Vec<(Workload, usize)> {
    let replicas = n_pods / N_DEPLOYMENTS;
    workloads().into_iter().map(|own| (own, replicas)).collect()
}

/// Deployments of any number and size.
fn any(seed: &str, n_pods: usize) -> Vec<(Workload, usize)> {
    let mut random = Random::new(seed);
    let n_workloads = random.between(8, 30) as usize;
    let of = |n: usize| {
        let milli = random.pick(&[
            50, 100, 200, 250, 400, 500, 900, 1000, 1500, 2000, 3000, 4000,
        ]);
        let each = random.pick(&[1, 2, 3, 4, 5, 8]);
        let replicas = random.between(1, 2 * (n_pods / n_workloads) as u64) as usize;
        let mebi = (milli * each).max(64);
        let rule = match random.below(6) {
            1 => Rule::Zones,
            2 => Rule::Arm,
            _ => Rule::None,
        };
        (Workload::new(n, (milli, mebi), rule), replicas)
    };
    (0..n_workloads).map(of).collect()
}

/// What there is at a moment.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    n_nodes: usize,
    price: NanoDollars,
    n_pods: usize,
    n_running: usize,
}

async fn look(stage: &Stage) -> Seen {
    let nodes = stage.list(NODES).await;
    let price = |node: &Value| {
        let text = &node["metadata"]["labels"]["eks-node-viewer/instance-price"];
        let dollars: f64 = text
            .as_str()
            .and_then(|own| own.parse().ok())
            .unwrap_or(0.0);
        NanoDollars::new((dollars * 1e9).round() as u64)
    };
    let pods = stage.list(PODS).await;
    Seen {
        n_nodes: nodes.len(),
        price: nodes.iter().map(price).sum(),
        n_pods: pods.len(),
        n_running: n_running(&pods),
    }
}

/// The least that the pods there are could cost.
fn floor(stage: &Stage) -> NanoDollars {
    let autoscaler = stage.autoscaler();
    let ask = Ask {
        catalogs: &autoscaler.catalogs().lists(),
        policy: Policy::default(),
        now: stage.clock.now(),
        planned: &BTreeSet::new(),
        headroom: &[],
    };
    let mut problem = autoscaler
        .shared()
        .world
        .snapshot()
        .problem(&ask)
        .unwrap()
        .problem;
    for pod in &mut problem.pods {
        pod.node = None;
    }
    problem.nodes.clear();
    joiner_solver::solve(&problem).cost.bound
}

/// Waits until so many pods run and nothing changes any more; tells how it went.
#[expect(clippy::print_stdout, reason = "how it went is worth knowing")]
async fn settles(stage: &Stage, what: &str, n_pods: usize) {
    let began = stage.clock.now();
    let since = |at| stage.clock.now().duration_since(at).unsigned_abs();
    let (mut last, mut changed, mut all_run) = (look(stage).await, began, None);
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let seen = look(stage).await;
        if (seen.n_pods, seen.n_running) == (n_pods, n_pods) {
            all_run.get_or_insert(since(began));
        }
        if seen != last {
            (last, changed) = (seen, stage.clock.now());
        }
        if all_run.is_some() && since(changed) > STILL {
            break;
        }
        if since(began) > SETTLES_WITHIN {
            break;
        }
    }
    let decisions = stage
        .autoscaler()
        .shared()
        .decisions
        .recent(&Default::default());
    for own in decisions.iter().filter(|own| own.time >= began) {
        let after = own.time.duration_since(began).as_secs_f64();
        println!("  {after:>5.1} s {}: {}", own.kind, own.outcome);
    }
    let floor = floor(stage);
    let above = last.price.get() as f64 / floor.get() as f64 * 100.0 - 100.0;
    println!(
        "{what}: all run after {:.1?}, settled after {:.1?}, {} nodes, ${}, {above:.1} % above {floor}",
        all_run.unwrap_or_default(),
        changed.duration_since(began).unsigned_abs(),
        last.n_nodes,
        last.price,
    );
    assert!(since(began) < SETTLES_WITHIN, "{what} does not settle");
    assert!(
        last.price.get() * 100 <= floor.get() * (100 + ABOVE_MAX),
        "{what} settles too dear"
    );
}

async fn story(setup: Setup, what: &str, workloads: &[(Workload, usize)]) {
    let stage = Stage::embedded(setup).await;
    let pool = json!({"spec": {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}],
        "consolidationPolicy": "WhenEmptyOrUnderutilized"}}});
    stage.pool("default", pool).await;
    let mut n_pods = 0;
    for (own, replicas) in workloads {
        let mut more = own.rules.clone();
        more["containers"] = json!([{"name": "c", "image": "pause", "resources": {"requests":
            {"cpu": format!("{}m", own.milli), "memory": format!("{}Mi", own.mebi)}}}]);
        stage.deployment(&own.name, *replicas, "0", more).await;
        n_pods += replicas;
    }
    settles(&stage, &format!("{what}, out"), n_pods).await;
    let mut n_pods = 0;
    for (own, replicas) in workloads {
        let replicas = replicas * STAY / 100;
        let patch = json!({"spec": {"replicas": replicas}});
        stage.patch(DEPLOYMENTS, &own.name, patch).await;
        n_pods += replicas;
    }
    settles(&stage, &format!("{what}, in"), n_pods).await;
}

/// Types c, m and r of EC2 in three zones.
fn ec2() -> Setup {
    let region = joiner_catalog::ec2("us-east-1", &ClassSettings::default()).unwrap();
    let query = Query {
        categories: ["c", "m", "r"].map(ToOwned::to_owned).to_vec(),
        zones: ["a", "b", "c"]
            .map(|zone| format!("us-east-1{zone}"))
            .to_vec(),
        ..Query::default()
    };
    Setup {
        cloud: CloudSettings {
            instance_types: Some(query.select(region.types).unwrap().types),
            ..CloudSettings::default()
        },
        ..Setup::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_pods_on_ec2_come_and_most_go() {
    story(ec2(), "ec2", &public(1000)).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_pods_come_and_most_go() {
    story(Setup::default(), "generic", &public(1000)).await;
}

#[tokio::test(start_paused = true)]
async fn any_workloads_come_and_most_go() {
    for n in 0..3 {
        let what = format!("any {n}");
        story(Setup::default(), &what, &any(&what, 400)).await;
    }
}
