//! A day with the load of a day and workloads that come and go: nodes follow, and yet nothing is moved
//! about for little, nothing is replaced by its like, and it comes to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use joiner_cloud_sim::{Delay, Delays, Settings as CloudSettings};
use joiner_controllers::disruption::{COMMAND, Intent};
use joiner_runtime::Clock;
use joiner_testkit::Random;
use kube::api::DynamicObject;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use joiner_testkit::stage::{BUDGETS, CLAIMS, DEPLOYMENTS, NODES, PODS, Setup, Stage, n_running};

/// The load changes this often.
const STEP: Duration = Duration::from_secs(1200);
/// Steps of the day.
const STEPS: u64 = 24 * 3;
/// Steps at the end of the day in which the load stays as it is.
const STILL: u64 = 6;
/// In the last hour of them nothing is to happen any more.
const REST: Duration = Duration::from_secs(3600);
/// Voluntary moves of a workload in a day, for each of its replicas.
const MOVES_EACH: usize = 2;

/// Instance type, zone and capacity type.
type Offering = (String, String, String);

/// A command, as its claims told of it.
#[derive(Clone, Debug)]
struct Seen {
    at: Timestamp,
    intent: Intent,
}

/// What was seen of a day.
#[derive(Debug, Default)]
struct Day {
    /// What every claim became.
    offerings: BTreeMap<String, Offering>,
    commands: BTreeMap<String, Seen>,
    /// Pods that were evicted, by workload.
    moved: BTreeMap<String, BTreeSet<String>>,
    n_claims: usize,
    /// Errors of the observers: there should be none.
    trouble: Vec<String>,
}

impl Day {
    fn claim(&mut self, claim: &Value, at: Timestamp) {
        let meta = &claim["metadata"];
        let name = meta["name"].as_str().unwrap().to_owned();
        let label = |key: &str| meta["labels"][key].as_str().map(ToOwned::to_owned);
        let offering = (
            label("node.kubernetes.io/instance-type"),
            label("topology.kubernetes.io/zone"),
            label("karpenter.sh/capacity-type"),
        );
        if let (Some(ty), Some(zone), Some(capacity_type)) = offering {
            let known = self.offerings.insert(name, (ty, zone, capacity_type));
            self.n_claims += usize::from(known.is_none());
        }
        let Some(text) = meta["annotations"][COMMAND].as_str() else {
            return;
        };
        let intent: Intent = serde_json::from_str(text).unwrap();
        let id = intent.id.clone();
        self.commands.entry(id).or_insert(Seen { at, intent });
    }

    fn pod(&mut self, pod: &Value) {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let evicted = conditions.any(|own| {
            own["type"] == "DisruptionTarget" && own["reason"] == "EvictionByEvictionAPI"
        });
        if evicted {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let app = text(&pod["metadata"]["labels"]["app"]);
            let pods = self.moved.entry(app).or_default();
            pods.insert(text(&pod["metadata"]["uid"]));
        }
    }

    /// Replacements that are what one of the nodes was that they replace.
    fn replaced_by_the_same(&self) -> Vec<String> {
        let mut found = Vec::new();
        for seen in self.commands.values() {
            let of = |name: &String| self.offerings.get(name);
            let members: Vec<_> = seen.intent.members.iter().filter_map(of).collect();
            let drifted = seen.intent.reason == "Drifted";
            for replacement in &seen.intent.replacements {
                let Some(offering) = of(replacement).filter(|own| members.contains(own)) else {
                    continue;
                };
                if !drifted {
                    let text = format!("{}: {offering:?} among {members:?}", seen.at);
                    found.push(format!("{text}, {:?}", seen.intent));
                }
            }
        }
        found
    }
}

/// Follows a kind; every change is told.
async fn follow(
    api: kube::Api<DynamicObject>,
    clock: Clock,
    day: Arc<Mutex<Day>>,
    tell: fn(&mut Day, &Value, Timestamp),
) {
    let mut events = watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let mut day = day.lock().unwrap();
        match event {
            Ok(
                watcher::Event::InitApply(own)
                | watcher::Event::Apply(own)
                | watcher::Event::Delete(own),
            ) => {
                let object = serde_json::to_value(own).unwrap();
                tell(&mut day, &object, clock.now());
            }
            Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
            Err(error) => day.trouble.push(error.to_string()),
        }
    }
}

/// A workload of the day.
#[derive(Clone, Debug)]
struct Workload {
    name: String,
    cpu: String,
    /// Replicas at the height of the day.
    most: usize,
    /// It follows the sun; else it stays as it is.
    diurnal: bool,
    /// The step in which it goes.
    ends: u64,
    more: Value,
}

/// Replicas now; the night is a fifth of the day, and nobody comes exactly on time.
fn replicas(own: &Workload, step: u64, random: &mut Random) -> usize {
    if !own.diurnal {
        return own.most;
    }
    let share = (step as f64 / STEPS as f64 - 0.25) * TAU;
    let light = 0.2 + 0.8 * (1.0 + share.sin()) / 2.0;
    let noise = 0.9 + random.below(20) as f64 / 100.0;
    ((own.most as f64 * light * noise).round() as usize).max(1)
}

/// A workload with a size, rules and a life of its own.
fn workload(name: String, most: usize, ends: u64, random: &mut Random) -> Workload {
    let cpu = random.pick(&["150m", "250m", "500m", "700m", "1100m", "1900m", "3"]);
    let memory = random.pick(&["128Mi", "400Mi", "1Gi", "2500Mi"]);
    let labels = json!({"matchLabels": {"app": name}});
    let mut more = json!({"terminationGracePeriodSeconds": 10, "containers": [
        {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]});
    match random.below(5) {
        0 => {
            more["topologySpreadConstraints"] = json!([{"maxSkew": 1, "labelSelector": labels,
                "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}]);
        }
        1 => more["nodeSelector"] = json!({"karpenter.sh/capacity-type": "on-demand"}),
        _ => {}
    }
    Workload {
        name,
        cpu: cpu.to_owned(),
        most,
        diurnal: ends > STEPS,
        ends,
        more,
    }
}

async fn apply(stage: &Stage, own: &Workload, replicas: usize) {
    stage
        .deployment(&own.name, replicas, &own.cpu, own.more.clone())
        .await;
}

/// Lives through a day. Returns the most replicas that each workload had, and how many there are in
/// the end.
async fn live(stage: &Stage, seed: &str, n_workloads: usize) -> (BTreeMap<String, usize>, usize) {
    let mut random = Random::new(seed);
    let mut most: BTreeMap<String, usize> = BTreeMap::new();
    let mut all: Vec<Workload> = Vec::new();
    for n in 0..n_workloads {
        let peak = random.between(4, 16) as usize;
        let own = workload(format!("web-{n}"), peak, u64::MAX, &mut random);
        if n % 2 == 0 {
            let budget = json!({"metadata": {"name": own.name, "namespace": "default"},
                "spec": {"maxUnavailable": "30%", "selector": {"matchLabels": {"app": own.name}}}});
            stage.apply(BUDGETS, budget).await;
        }
        all.push(own);
    }
    let mut n_pods = 0;
    for step in 0..STEPS {
        if step < STEPS - STILL {
            if random.percent(35) {
                let (size, life) = (random.between(1, 6) as usize, random.between(1, 12));
                let name = format!("batch-{step}");
                let own = workload(name, size, step + life, &mut random);
                all.push(own);
            }
            let (gone, stay): (Vec<_>, Vec<_>) = all.into_iter().partition(|own| own.ends <= step);
            for own in gone {
                stage.delete(DEPLOYMENTS, &own.name).await;
            }
            all = stay;
            n_pods = 0;
            for own in &all {
                let n = replicas(own, step, &mut random);
                apply(stage, own, n).await;
                n_pods += n;
                let peak = most.entry(own.name.clone()).or_default();
                *peak = (*peak).max(n);
            }
        }
        tokio::time::sleep(STEP).await;
    }
    (most, n_pods)
}

fn between(min: u64, max: u64) -> Delay {
    Delay::Uniform {
        min: Duration::from_secs(min),
        max: Duration::from_secs(max),
    }
}

/// Twelve types in three zones, on demand and spot: few enough for a day to pass quickly.
fn types() -> String {
    let mut types = Vec::new();
    for cpu in [2, 4, 8, 16] {
        for (family, memory_each, price_each) in [("c", 2, 0.042), ("m", 4, 0.048), ("r", 8, 0.063)]
        {
            let sold = |zone: &str, capacity_type: &str, share: f64| {
                json!({"Price": price_each * f64::from(cpu) * share, "Available": true, "Requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]})
            };
            let mut offerings = Vec::new();
            for (zone, share) in [("zone-a", 0.38), ("zone-b", 0.41), ("zone-c", 0.35)] {
                offerings.push(sold(zone, "on-demand", 1.0));
                offerings.push(sold(zone, "spot", share));
            }
            types.push(
                json!({"name": format!("{family}-{cpu}x"), "architecture": "amd64",
                "operatingSystems": ["linux"], "offerings": offerings,
                "resources": {"cpu": cpu.to_string(), "memory": format!("{}Gi", memory_each * cpu),
                    "pods": "60", "ephemeral-storage": "20Gi"}}),
            );
        }
    }
    Value::from(types).to_string()
}

fn setup() -> Setup {
    let types = joiner_state::parse_instance_types("types", &types());
    Setup {
        cloud: CloudSettings {
            instance_types: Some(types.unwrap()),
            delays: Delays {
                launch: between(1, 3),
                boot: between(20, 40),
                shutdown: between(5, 20),
            },
            ..CloudSettings::default()
        },
        ..Setup::default()
    }
}

#[expect(clippy::print_stdout, reason = "what a day was like is worth knowing")]
async fn a_day(seed: &str, n_workloads: usize) {
    let stage = Stage::embedded(setup()).await;
    let requirements = json!([
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand", "spot"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]);
    let pool = json!({"spec": {
        "disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": "20%"}]},
        "template": {"spec": {"requirements": requirements}}}});
    stage.pool("general", pool).await;
    let day = Arc::new(Mutex::new(Day::default()));
    let mut observers = JoinSet::new();
    let clock = || stage.clock.clone();
    observers.spawn(follow(
        stage.api(CLAIMS, None),
        clock(),
        Arc::clone(&day),
        |day, claim, at| day.claim(claim, at),
    ));
    observers.spawn(follow(
        stage.api(PODS, None),
        clock(),
        Arc::clone(&day),
        |day, pod, _| day.pod(pod),
    ));
    let (most, n_pods) = live(&stage, seed, n_workloads).await;
    let day = std::mem::take(&mut *day.lock().unwrap());
    let n_moved: usize = day.moved.values().map(BTreeSet::len).sum();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for own in day.commands.values() {
        *reasons.entry(&own.intent.reason).or_default() += 1;
    }
    println!(
        "{seed}: {} claims, {} commands ({reasons:?}), {n_moved} moves of {} workloads, {} nodes for \
         {n_pods} pods at the end",
        day.n_claims,
        day.commands.len(),
        day.moved.len(),
        stage.list(NODES).await.len(),
    );
    assert!(day.trouble.is_empty(), "{:?}", day.trouble);
    assert!(day.commands.len() > 10, "nodes follow the load");
    let pods = stage.list(PODS).await;
    assert_eq!((pods.len(), n_running(&pods)), (n_pods, n_pods), "all run");
    stage.agrees().await;

    for (name, pods) in &day.moved {
        let limit = most[name] * MOVES_EACH;
        assert!(
            pods.len() <= limit,
            "{name}: {} moves of {limit}",
            pods.len()
        );
    }
    let same = day.replaced_by_the_same();
    assert!(
        same.is_empty(),
        "replaced by the same:\n{}",
        same.join("\n")
    );
    let rest = stage.clock.now() - REST;
    let late = day.commands.values().filter(|own| own.at > rest);
    let late: Vec<_> = late.map(|own| format!("{own:?}")).collect();
    assert!(late.is_empty(), "no rest:\n{}", late.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_day_without_churn() {
    a_day("a day", 4).await;
}

/// `cargo test --release -p joiner-controllers --test e2e -- --ignored days_without_churn`
#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn days_without_churn() {
    for n in 0..10 {
        a_day(&format!("day {n}"), 8).await;
    }
}
