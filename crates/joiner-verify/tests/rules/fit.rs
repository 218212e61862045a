use joiner_model::{Effect, PodIx, Protocol, ResourceName, Resources, TypeIx, keys};
use joiner_verify::Rule;

use crate::support::*;

/// Two pods of one core on two cores.
fn case() -> Case {
    let mut case = Case::new();
    let pods = case.pods(2, &shape("web"));
    case.launch(&[SMALL, LARGE], &[], &pods);
    case.legal()
}

#[test]
fn every_type_left_holds_the_pods() {
    let case = case();
    let text = case.broken_by(Rule::Fit, "three on two cores", |c| {
        let third = c.pod(&shape("web"));
        c.plan.launches[0].pods.push(third);
        c.settle();
    });
    assert_eq!(
        text,
        "node new-0: small in a (on-demand) cannot hold its pods: they need 3 of cpu, and besides \
         daemons there is 2"
    );
    case.legal_with(|c| {
        let third = c.pod(&shape("web"));
        c.plan.launches[0].pods.push(third);
        c.plan.launches[0].types = vec![LARGE];
        c.settle();
    });
    case.broken_by(Rule::Fit, "system overhead", |c| {
        c.problem.types[0].overhead = Resources::new().with(ResourceName::Memory, 3 * GIB);
    });
    case.broken_by(
        Rule::Fit,
        "a resource that nobody asks for is overdrawn",
        |c| {
            let disk = ResourceName::EphemeralStorage;
            c.problem.types[1].overhead = Resources::new().with(disk, 1);
        },
    );
    case.broken_by(Rule::Fit, "number of pods", |c| {
        c.problem.types[0].capacity.set(ResourceName::Pods, 1);
    });
}

#[test]
fn special_resources_of_one_offering() {
    let gpu = ResourceName::parse("example.com/gpu");
    let mut case = Case::new();
    let mut web = shape("web");
    web.requests.set(gpu.clone(), 1);
    let pod = case.pod(&web);
    for ty in &mut case.problem.types {
        ty.offerings[1].extra_capacity = Resources::new().with(gpu.clone(), 1);
    }
    case.launch(&[SMALL, LARGE], &[is(ZONE, "b")], &[pod]);
    let case = case.legal();
    case.broken_by(Rule::Fit, "zone a has none", |c| {
        c.plan.launches[0].requirements.clear()
    });
    case.broken_by(Rule::Fit, "large has none", |c| {
        c.problem.types[1].offerings[1].extra_capacity = Resources::new();
    });
}

#[test]
fn daemons_take_their_part_where_they_land() {
    let case = case();
    let mut agent = shape("agent");
    agent.requests = resources(100, 0, 1);
    let with = |change: &dyn Fn(&mut joiner_model::PodShape)| {
        let mut agent = agent.clone();
        change(&mut agent);
        move |c: &mut Case| {
            c.daemon(agent);
        }
    };
    case.broken_by(Rule::Fit, "everywhere", with(&|_| ()));
    let large =
        |s: &mut joiner_model::PodShape| s.node_selector = vec![is(keys::INSTANCE_TYPE, "large")];
    case.legal_with(with(&large));
    let in_c = |s: &mut joiner_model::PodShape| s.node_selector = vec![is(ZONE, "c")];
    case.broken_by(Rule::Fit, "in one zone that is left", with(&in_c));
    let terms = |s: &mut joiner_model::PodShape| {
        s.node_terms = vec![vec![is(keys::ARCH, "arm64")], vec![is(keys::ARCH, "amd64")]];
    };
    case.broken_by(Rule::Fit, "by its second term", with(&terms));
    let wish = |s: &mut joiner_model::PodShape| {
        let term = vec![is(keys::ARCH, "arm64")];
        s.preferred_node_terms = vec![joiner_model::Preference { weight: 1, term }];
    };
    case.broken_by(Rule::Fit, "whatever it prefers", with(&wish));
    let elsewhere = |s: &mut joiner_model::PodShape| s.node_selector = vec![is("team", "red")];
    case.legal_with(with(&elsewhere));
    case.broken_by(Rule::Fit, "on a label of the pool's making", |c| {
        with(&elsewhere)(c);
        let team = rule("team", joiner_model::Operator::In, &["red", "blue"]);
        c.problem.pools[0].requirements.add(team);
    });
    case.legal_with(|c| {
        with(&elsewhere)(c);
        let team = rule("team", joiner_model::Operator::In, &["red", "blue"]);
        c.problem.pools[0].requirements.add(team);
        c.plan.launches[0].requirements.push(is("team", "blue"));
    });
}

#[test]
fn daemons_and_taints() {
    let case = case();
    let tainted = |effect, startup: bool| {
        move |c: &mut Case| {
            let mut agent = shape("agent");
            agent.requests = resources(100, 0, 1);
            c.daemon(agent);
            c.shape_of(PodIx(0))
                .tolerations
                .push(tolerating("dedicated"));
            let pool = &mut c.problem.pools[0];
            let taints = if startup {
                &mut pool.startup_taints
            } else {
                &mut pool.taints
            };
            taints.push(taint("dedicated", effect));
        }
    };
    case.legal_with(tainted(Effect::NoSchedule, false));
    case.broken_by(
        Rule::Fit,
        "a wish keeps no daemon out",
        tainted(Effect::PreferNoSchedule, false),
    );
    case.broken_by(
        Rule::Fit,
        "nor does a startup taint",
        tainted(Effect::NoSchedule, true),
    );
}

#[test]
fn host_ports() {
    let mut case = Case::new();
    let mut one = shape("one");
    one.ports = vec![port("0.0.0.0", 80, Protocol::Tcp)];
    let mut two = shape("two");
    two.ports = vec![port("10.0.0.1", 81, Protocol::Tcp)];
    let pods = [case.pod(&one), case.pod(&two)];
    case.launch(&[SMALL, LARGE], &[], &pods);
    let case = case.legal();
    for (what, clash) in [
        ("any address", port("10.0.0.1", 80, Protocol::Tcp)),
        ("any address in new notation", port("::", 80, Protocol::Tcp)),
    ] {
        let text = case.broken_by(Rule::Port, what, |c| {
            c.shape_of(pods[1]).ports = vec![clash]
        });
        assert_eq!(
            text,
            "node new-0: pods web/pod-0 and web/pod-1 both take host port 80"
        );
    }
    case.legal_with(|c| {
        c.shape_of(pods[1]).ports = vec![port("10.0.0.1", 80, Protocol::Udp)];
    });
    case.broken_by(Rule::Port, "the second of two", |c| {
        let two = [
            port("10.0.0.1", 90, Protocol::Tcp),
            port("10.0.0.1", 80, Protocol::Tcp),
        ];
        c.shape_of(pods[1]).ports = two.to_vec();
        c.shape_of(pods[0])
            .ports
            .insert(0, port("0.0.0.0", 91, Protocol::Tcp));
    });
    case.broken_by(Rule::Port, "two of a kind", |c| {
        c.problem.pods[pods[1].0 as usize].shape = c.problem.pods[pods[0].0 as usize].shape;
        c.settle();
    });
    let mut agent = shape("agent");
    agent.requests = resources(0, 0, 1);
    agent.ports = vec![port("0.0.0.0", 81, Protocol::Tcp)];
    case.broken_by(Rule::Port, "a daemon", |c| {
        c.daemon(agent.clone());
    });
    case.broken_by(Rule::Port, "a daemon on one type left", |c| {
        agent.node_selector = vec![is(keys::INSTANCE_TYPE, "large")];
        c.daemon(agent.clone());
    });
    case.legal_with(|c| {
        c.daemon(agent.clone());
        c.plan.launches[0].types = vec![TypeIx(0)];
    });
}

#[test]
fn host_ports_of_daemons_on_labels_of_the_pools_making() {
    let mut case = Case::new();
    let mut web = shape("web");
    web.ports = vec![port("0.0.0.0", 80, Protocol::Tcp)];
    let pod = case.pod(&web);
    web.node_selector = vec![is("team", "red")];
    web.requests = resources(0, 0, 1);
    case.daemon(web);
    let teams = rule("team", joiner_model::Operator::In, &["red", "blue"]);
    case.problem.pools[0].requirements.add(teams);
    case.launch(&[SMALL], &[is("team", "blue")], &[pod]);
    let case = case.legal();
    case.broken_by(Rule::Port, "red is left too", |c| {
        c.plan.launches[0].requirements.clear()
    });
}
