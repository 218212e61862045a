//! Problems with many nodes, many shapes and many types, and legal plans for them.

use joiner_model::{Effect, Operator, PodIx, PodShape, ResourceName, Resources, TypeIx, keys};

use crate::support::*;

/// `n_nodes` new nodes of five pods each, of many shapes, with types by the hundred.
pub(crate) fn large(n_nodes: usize, n_types: u32) -> Case {
    let mut case = Case::new();
    case.problem.types.clear();
    for n in 0..n_types {
        let mut it = instance_type(&format!("t{n:03}"), 8000, 32, 100_000 + u64::from(n));
        let spot = it.offerings.iter().map(|o| {
            let mut spot = o.clone();
            spot.labels
                .insert(keys::CAPACITY_TYPE.into(), "spot".into());
            spot
        });
        let spot: Vec<_> = spot.collect();
        it.offerings.extend(spot);
        case.problem.types.push(it);
    }
    let all: Vec<TypeIx> = (0..n_types).map(TypeIx).collect();
    case.problem.pools[0].types.clone_from(&all);
    let mut agent = shape("agent");
    agent.requests = resources(100, 0, 1);
    case.daemon(agent);
    let shapes: Vec<PodShape> = (0..400).map(some_shape).collect();
    case.problem.shapes = shapes.clone();
    for node in 0..n_nodes {
        let pods: Vec<PodIx> = (0..5)
            .map(|i| {
                let pod = case.pod(&shapes[0]);
                let ix = (node * 7 + i * 11) % shapes.len();
                case.problem[pod].shape = joiner_model::ShapeIx(ix as u32);
                pod
            })
            .collect();
        // Nearly every node lists types of its own.
        let skip = node % (all.len() / 9);
        let mut types = all[skip..(skip + 600).min(all.len())].to_vec();
        types.remove(1 + node % (all.len() / 2));
        let zone = ["a", "b", "c"][node % 3];
        case.plan.launches.push(joiner_model::Launch {
            name: format!("new-{node}").into(),
            pool: GENERAL,
            requirements: vec![is(ZONE, zone)],
            offering: (types[0], joiner_model::OfferingIx((node % 3) as u32)),
            price: case.problem.types[types[0].0 as usize].offerings[0].price,
            types,
            pods,
            requests: Default::default(),
            min_values_relaxed: false,
        });
    }
    for launch in &mut case.plan.launches {
        for pod in &launch.pods {
            launch.requests.add(&case.problem.shape(*pod).requests);
        }
    }
    case.plan.cost.price = case.plan.launches.iter().map(|l| l.price).sum();
    case
}

/// Sizes, selections and topology rules of many kinds.
fn some_shape(n: usize) -> PodShape {
    let mut web = shape(&format!("app-{n}"));
    web.requests = resources(100 + n as u64, 1, 1);
    if n.is_multiple_of(3) {
        let mut zones = over(ZONE, &format!("app-{n}"));
        zones.max_skew = 200;
        let mut hosts = over(HOST, &format!("app-{n}"));
        hosts.max_skew = 5;
        web.spreads = vec![zones, hosts];
    }
    if n.is_multiple_of(5) {
        web.node_selector = vec![is(keys::ARCH, "amd64")];
    }
    if n.is_multiple_of(7) {
        web.anti_affinity = vec![near(HOST, &format!("app-{}", n + 1))];
    }
    web
}

/// The same among as many nodes that exist, with limits, weights and `minValues` to look at.
pub(crate) fn crowded(n_nodes: usize, n_types: u32) -> Case {
    let mut case = large(n_nodes, n_types);
    let mut heavy = pool("heavy", &case.problem.pools[0].types);
    heavy.weight = 10;
    heavy.taints = vec![taint("heavy", Effect::NoSchedule)];
    case.problem.pools.push(heavy);
    let nodes = ResourceName::parse("nodes");
    let general = &mut case.problem.pools[0];
    general.limits = Some(Resources::new().with(nodes, 2 * n_nodes as u64));
    let types = rule(keys::INSTANCE_TYPE, Operator::Exists, &[]).with_min_values(Some(15));
    general.requirements.add(types);
    for n in 0..n_nodes {
        let node = case.node(&format!("old-{n}"), ["a", "b", "c"][n % 3]);
        for i in 0..5 {
            let pod = case.bound(node, &case.problem.shapes[0].clone());
            let ix = (n * 13 + i * 17) % 400;
            case.problem[pod].shape = joiner_model::ShapeIx(ix as u32);
        }
    }
    case
}

/// One app on many nodes, zone by zone in turn: on each a pod that must be the first there, others
/// under a spread over zones alone, and a stranger that must be near them.
pub(crate) fn one_app(n_nodes: usize) -> Case {
    let mut case = Case::new();
    let zonal = over(ZONE, "web");
    let mut both = shape("web");
    both.requests = resources(100, 1, 1);
    both.spreads = vec![zonal.clone(), over(HOST, "web")];
    let mut plain = both.clone();
    plain.spreads = vec![zonal, over(keys::CAPACITY_TYPE, "web")];
    let mut near_them = shape("near");
    near_them.requests = both.requests.clone();
    near_them.affinity = vec![near(HOST, "web")];
    case.problem.shapes = vec![both, plain, near_them];
    for node in 0..n_nodes {
        let pods: Vec<PodIx> = [0, 1, 1, 1, 2]
            .into_iter()
            .map(|shape| push_pod(&mut case, shape))
            .collect();
        push_launch(&mut case, ["a", "b", "c"][node % 3], pods);
    }
    case.plan.cost.price = case.plan.launches.iter().map(|l| l.price).sum();
    case
}

fn push_pod(case: &mut Case, shape: u32) -> PodIx {
    let first = case.problem.shapes[0].clone();
    let pod = case.pod(&first);
    case.problem[pod].shape = joiner_model::ShapeIx(shape);
    pod
}

fn push_launch(case: &mut Case, zone: &str, pods: Vec<PodIx>) {
    let mut requests = Resources::new();
    for pod in &pods {
        requests.add(&case.problem.shape(*pod).requests);
    }
    let offering = joiner_model::OfferingIx(zone.as_bytes()[0] as u32 - u32::from(b'a'));
    case.plan.launches.push(joiner_model::Launch {
        name: format!("new-{}", case.plan.launches.len()).into(),
        pool: GENERAL,
        requirements: vec![is(ZONE, zone)],
        offering: (LARGE, offering),
        price: case.problem.types[1].offerings[0].price,
        types: vec![LARGE],
        pods,
        requests,
        min_values_relaxed: false,
    });
}

/// Many apps under two spreads each; five of them share a node, 48 nodes hold one of them.
pub(crate) fn many_apps(n_apps: usize) -> Case {
    let mut case = Case::new();
    let large = &mut case.problem.types[1];
    let price = large.offerings[0].price.get();
    let spot = ["a", "b", "c"].map(|zone| offering(zone, "spot", price));
    large.offerings.extend(spot);
    for app in 0..n_apps {
        let name = format!("app-{app}");
        let mut web = shape(&name);
        web.requests = resources(100, 1, 1);
        web.spreads = vec![over(ZONE, &name), over(keys::CAPACITY_TYPE, &name)];
        case.problem.shapes.push(web);
    }
    for five in 0..n_apps as u32 / 5 {
        for n in 0..48 {
            let pods = (five * 5..five * 5 + 5).map(|app| push_pod(&mut case, app));
            let pods = pods.collect();
            push_launch(&mut case, ["a", "b", "c"][n % 3], pods);
            let how = n / 3 % 2;
            let rule = is(keys::CAPACITY_TYPE, ["on-demand", "spot"][how]);
            let launch = case.plan.launches.last_mut().expect("one was pushed");
            launch.requirements.push(rule);
            launch.offering.1.0 += 3 * how as u32;
        }
    }
    case.plan.cost.price = case.plan.launches.iter().map(|l| l.price).sum();
    case
}
