//! Random clusters with everything that couples pods. There is no answer to compare with: every
//! plan has to pass the verifier, and the order of the input must not cost a pod.

use std::panic::catch_unwind;

use joiner_testkit::{
    ARCH, CAPACITY_TYPE, HOSTNAME, Outcome, PodBuilder, Random, World, ZONE, instance_type, node,
    pod, pool,
};
use serde_json::{Value, json};

const CASES: u64 = 150;
const RACK: &str = "example.com/rack";
const APPS: [&str; 4] = ["red", "green", "blue", "gray"];
const KEYS: [&str; 7] = [ZONE, HOSTNAME, ZONE, HOSTNAME, CAPACITY_TYPE, RACK, ARCH];

/// A cluster that can be taken apart.
#[derive(Clone, Debug, Default)]
struct Case {
    objects: Vec<Value>,
}

impl Case {
    fn world(&self) -> World {
        let sizes = [
            ("small", "2", 0.1),
            ("medium", "4", 0.19),
            ("large", "8", 0.36),
        ];
        let types = sizes.map(|(name, cpu, dollars)| {
            let both = instance_type(name).cpu(cpu).price(dollars);
            both.spot_price(dollars * 0.4)
        });
        let arm = instance_type("arm").cpu("4").arch("arm64").price(0.15);
        let single = instance_type("single")
            .cpu("8")
            .zone_price("c", "spot", 0.05);
        let world = World::new().add(types).add([arm, single]);
        world.add(self.objects.clone())
    }
}

fn number(random: &mut Random, low: u64, high: u64) -> usize {
    usize::try_from(random.between(low, high)).expect("a small number")
}

fn case(seed: u64) -> Case {
    let mut random = Random::new(&format!("topology {seed}"));
    let random = &mut random;
    let mut objects = Vec::new();
    for ix in 0..number(random, 1, 3) {
        objects.push(pool_of(random, ix));
    }
    for ix in 0..number(random, 0, 4) {
        let name = format!("node-{ix}");
        let mut there = node(&name).zone(random.pick(&["a", "b", "c", "d"]));
        there = there.cpu(random.pick(&["1", "2", "4"]));
        there = there.capacity_type(random.pick(&["on-demand", "spot"]));
        if random.percent(50) {
            there = there.label(RACK, random.pick(&["r1", "r2", "r3"]));
        }
        if random.percent(10) {
            there = there.taint("team=x:NoSchedule");
        }
        if random.percent(10) {
            there = there.cordoned();
        }
        objects.extend(there.wire());
        for pod_ix in 0..number(random, 0, 3) {
            let bound = coupled(random, &format!("bound-{ix}-{pod_ix}")).cpu("100m");
            objects.extend(bound.on(&name).wire());
        }
    }
    for ix in 0..number(random, 1, 4) {
        let name = format!("kind-{ix}");
        let cpu = random.pick(&["100m", "500m", "900m", "1500m", "3"]);
        let pods = coupled(random, &name).cpu(cpu);
        objects.extend(pods.replicas(number(random, 1, 7)).wire());
    }
    Case { objects }
}

fn pool_of(random: &mut Random, ix: usize) -> Value {
    let mut pool = pool(&format!("pool-{ix}"));
    if random.percent(50) {
        pool = pool.zones(random.pick(&["a", "b c", "a b", "c"]));
    }
    if random.percent(40) {
        pool = pool.requirement(RACK, "In", random.pick(&["r1", "r1 r2", "r2 r3"]));
    }
    if random.percent(30) {
        pool = pool.capacity_types(random.pick(&["spot", "on-demand"]));
    }
    if random.percent(30) {
        pool = pool.weight(random.pick(&[1, 10, 50]));
    }
    if random.percent(15) {
        pool = pool.limit("cpu", random.pick(&["2", "8", "16"]));
    }
    if random.percent(15) {
        pool = pool.taint("team=x:NoSchedule");
    }
    pool.wire()
}

/// A pod with some of everything.
fn coupled(random: &mut Random, name: &str) -> PodBuilder {
    let app = random.pick(&APPS);
    let mut pod = pod(name).label("app", app);
    let other = |random: &mut Random| {
        if random.percent(60) {
            app
        } else {
            random.pick(&APPS)
        }
    };
    if random.percent(15) {
        pod = pod.zone(random.pick(&["a", "b", "c"]));
    }
    if random.percent(15) {
        pod = pod.node_affinity(ZONE, random.pick(&["In", "NotIn"]), "a b");
    }
    if random.percent(10) {
        pod = pod.tolerate("team");
    }
    if random.percent(12) {
        pod = pod.host_port(random.pick(&[80, 8080]));
    }
    // At most one spread for each key, as the API server demands.
    let n_spreads = number(random, 0, 2);
    for key in random.sample(&KEYS[2..], n_spreads) {
        pod = spread(random, pod, app, key);
    }
    if random.percent(20) {
        pod = pod.affinity_to(random.pick(&KEYS), other(random));
    }
    if random.percent(20) {
        pod = pod.anti_affinity_to(random.pick(&KEYS), other(random));
    }
    if random.percent(10) {
        pod = pod.prefer_affinity_to(random.pick(&[1, 50]), random.pick(&KEYS), other(random));
    }
    if random.percent(10) {
        pod = pod.prefer_anti_affinity_to(random.pick(&[1, 50]), random.pick(&KEYS), other(random));
    }
    if random.percent(10) {
        pod = pod.prefer_node(random.pick(&[1, 50]), ZONE, "In", random.pick(&["a", "c"]));
    }
    pod
}

fn spread(random: &mut Random, pod: PodBuilder, app: &str, key: &str) -> PodBuilder {
    let counted = if random.percent(80) {
        app
    } else {
        random.pick(&APPS)
    };
    let mut fields = json!({"labelSelector": {"matchLabels": {"app": counted}}});
    if random.percent(25) {
        fields["whenUnsatisfiable"] = json!("ScheduleAnyway");
    } else if random.percent(15) {
        fields["minDomains"] = json!(random.between(1, 4));
    }
    if random.percent(15) {
        fields["nodeTaintsPolicy"] = json!("Honor");
    }
    if random.percent(15) {
        fields["nodeAffinityPolicy"] = json!("Ignore");
    }
    let skew = random.pick(&[1, 1, 2, 3]);
    pod.spread_with(key, skew, fields)
}

/// How a plan comes about, or why it does not.
fn solved(world: &World) -> Result<Outcome, String> {
    let problem = world.problem();
    let outcome = catch_unwind(move || Outcome::of(problem));
    outcome.map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

/// The first word of why there is no plan.
fn kind(fault: &str) -> String {
    let text = fault.replace("the verifier refuses the plan:\n", "");
    text.split(": ")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The same fault with as few objects as possible.
fn shrunk(mut case: Case, still: &dyn Fn(&Case) -> bool) -> Case {
    let mut ix = 0;
    while ix < case.objects.len() {
        let mut less = case.clone();
        less.objects.remove(ix);
        if still(&less) {
            case = less;
            ix = 0;
        } else {
            ix += 1;
        }
    }
    case
}

/// Objects one by one, and the plan.
fn report(seed: u64, fault: &str, case: &Case) -> String {
    let objects: Vec<String> = case.objects.iter().map(ToString::to_string).collect();
    format!("seed {seed}: {fault}\n{}", objects.join("\n"))
}

#[test]
fn random_plans_are_accepted() {
    let mut faults: Vec<String> = Vec::new();
    for seed in 0..CASES {
        let case = case(seed);
        if let Err(fault) = solved(&case.world()) {
            let fault = kind(&fault);
            let now = |less: &Case| solved(&less.world()).err().unwrap_or_default();
            let case = shrunk(case, &|less| kind(&now(less)) == fault);
            faults.push(report(seed, &now(&case), &case));
        }
    }
    let n_faults = faults.len();
    assert!(
        faults.is_empty(),
        "{n_faults} of {CASES}\n{}",
        faults.join("\n\n")
    );
}

#[test]
fn the_order_of_the_input_costs_no_pod() {
    let worse = |case: &Case| {
        let left = |world: World| solved(&world).map(|outcome| outcome.plan.unplaced.len());
        match (left(case.world()), left(case.world().reversed())) {
            (Ok(forth), Ok(back)) => forth != back,
            (Err(_), _) | (_, Err(_)) => false,
        }
    };
    let mut faults: Vec<String> = Vec::new();
    for seed in 0..CASES {
        let case = case(seed);
        if worse(&case) {
            faults.push(report(seed, "depends on the order", &shrunk(case, &worse)));
        }
    }
    let n_faults = faults.len();
    assert!(
        faults.is_empty(),
        "{n_faults} of {CASES}\n{}",
        faults.join("\n\n")
    );
}
