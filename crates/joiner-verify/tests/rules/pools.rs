use joiner_model::{
    Effect, MinValuesPolicy, Operator, PodIx, PoolIx, Preference, PreferencePolicy, Protocol,
    ResourceName, Resources, keys,
};
use joiner_verify::Rule;

use crate::support::*;

/// Something that makes an apparent violation none.
type Excuse = fn(&mut Case);

fn limit(name: &str, amount: u64) -> Option<Resources> {
    Some(Resources::new().with(ResourceName::parse(name), amount))
}

#[test]
fn limits_hold_whatever_is_launched() {
    let mut case = Case::new();
    let pods = case.pods(2, &shape("web"));
    case.launch(&[SMALL, LARGE], &[], &pods[..1]);
    case.launch(&[SMALL], &[], &pods[1..]);
    case.problem.pools[0].limits = limit("cpu", 10_000);
    let case = case.legal();
    let text = case.broken_by(Rule::Limit, "one less", |c| {
        c.problem.pools[0].limits = limit("cpu", 9_999);
    });
    assert_eq!(
        text,
        "pool \"general\" is limited to 9999m of cpu and could come to 10"
    );
    case.broken_by(Rule::Limit, "two large ones", |c| {
        c.plan.launches[1].types = vec![SMALL, LARGE]
    });
    case.broken_by(Rule::Limit, "pods", |c| {
        c.problem.pools[0].limits = limit("pods", 39)
    });
    case.broken_by(Rule::Limit, "a resource with no room at all", |c| {
        c.problem.types[0].offerings[0].extra_capacity =
            Resources::new().with(ResourceName::parse("example.com/gpu"), 1);
        c.problem.pools[0].limits = limit("example.com/gpu", 1);
    });
    case.legal_with(|c| c.problem.pools[0].limits = limit("nodes", 2));
    case.broken_by(Rule::Limit, "nodes", |c| {
        c.problem.pools[0].limits = limit("nodes", 1)
    });
    for by_label in [false, true] {
        let owned = |c: &mut Case| {
            let node = c.node("old", "a");
            let node = &mut c.problem[node];
            if by_label {
                node.labels.insert(keys::NODE_POOL.into(), "general".into());
            } else {
                node.pool = Some("general".into());
            }
        };
        case.broken_by(Rule::Limit, "nodes there are", owned);
        case.broken_by(Rule::Limit, "number of nodes there are", |c| {
            owned(c);
            c.problem.pools[0].limits = limit("nodes", 2);
        });
    }
    case.legal_with(|c| {
        c.node("of another pool", "a");
    });
    // A pool over its limit is no fault of a plan that buys nothing from it.
    let mut idle = Case::new();
    let node = idle.node("old", "a");
    idle.problem.nodes[0].pool = Some("general".into());
    idle.problem.pools[0].limits = limit("nodes", 0);
    let pod = idle.pod(&shape("web"));
    idle.place(node, &[pod]);
    idle.legal();
}

#[test]
fn min_values() {
    let mut case = Case::new();
    let pod = case.pod(&shape("web"));
    case.launch(&[SMALL, LARGE], &[], &[pod]);
    let two = rule(keys::INSTANCE_TYPE, Operator::Exists, &[]).with_min_values(Some(2));
    case.problem.pools[0].requirements.add(two.clone());
    let case = case.legal();
    let text = case.broken_by(Rule::MinValues, "one type", |c| {
        c.plan.launches[0].types.truncate(1)
    });
    assert_eq!(
        text,
        "node new-0: its pool asks for 2 values of node.kubernetes.io/instance-type, the listed \
         types have 1"
    );
    let arch = rule(keys::ARCH, Operator::Exists, &[]).with_min_values(Some(2));
    case.broken_by(Rule::MinValues, "another key", |c| {
        c.problem.pools[0].requirements.add(arch.clone());
    });
    case.legal_with(|c| {
        let both = vec!["amd64".into(), "arm64".into()];
        c.problem.types[0].labels.insert(keys::ARCH.into(), both);
        c.problem.pools[0].requirements.add(arch.clone());
    });
    let zones = rule(ZONE, Operator::Exists, &[]).with_min_values(Some(3));
    case.legal_with(|c| c.problem.pools[0].requirements.add(zones.clone()));
    case.broken_by(Rule::MinValues, "zones that are sold out", |c| {
        c.problem.pools[0].requirements.add(zones.clone());
        c.problem
            .types
            .iter_mut()
            .for_each(|t| t.offerings[2].available = false);
    });
    case.broken_by(Rule::MinValues, "the launch's own", |c| {
        c.plan.launches[0]
            .requirements
            .push(two.clone().with_min_values(Some(3)));
    });
    let relaxed = |c: &mut Case, policy| {
        c.problem.policy.min_values = policy;
        c.plan.launches[0].types.truncate(1);
        c.plan.launches[0].min_values_relaxed = true;
    };
    case.legal_with(|c| relaxed(c, MinValuesPolicy::BestEffort));
    case.broken_by(Rule::MinValues, "strict", |c| {
        relaxed(c, MinValuesPolicy::Strict)
    });
    case.broken_by(Rule::MinValues, "relaxed without saying so", |c| {
        relaxed(c, MinValuesPolicy::BestEffort);
        c.plan.launches[0].min_values_relaxed = false;
    });
}

#[test]
fn reservations_have_a_number_left() {
    let mut case = Case::new();
    let mut reserved = offering("a", "reserved", 1);
    reserved.reservation = Some(("cr-1".into(), 2));
    case.problem.types[0].offerings.push(reserved.clone());
    let pods = case.pods(3, &shape("web"));
    let pinned = [is(keys::CAPACITY_TYPE, "reserved")];
    case.launch(&[SMALL], &pinned, &pods[..1]);
    case.launch(&[SMALL], &[], &pods[1..2]);
    case.launch(
        &[SMALL],
        &[is(keys::CAPACITY_TYPE, "on-demand")],
        &pods[2..],
    );
    let case = case.legal();
    let text = case.broken_by(Rule::Reservation, "three holders", |c| {
        c.plan.launches[2].requirements.clear();
        c.settle();
    });
    assert_eq!(
        text,
        "3 new nodes may use reservation cr-1, which has 2 left"
    );
    case.broken_by(Rule::Reservation, "another pool and type share it", |c| {
        c.problem.types[1].offerings.push(reserved.clone());
        c.problem.pools.push(pool("other", &[LARGE]));
        c.plan.launches[2].pool = PoolIx(1);
        c.plan.launches[2].types = vec![LARGE];
        c.plan.launches[2].requirements = pinned.to_vec();
        c.settle();
    });
    case.broken_by(Rule::Reservation, "the least count holds", |c| {
        reserved.reservation = Some(("cr-1".into(), 1));
        c.problem.types[1].offerings.push(reserved.clone());
    });
}

/// A light pool, a heavy one, and a pod on the light one that only it can hold.
fn weighted() -> Case {
    let mut case = Case::new();
    let mut heavy = pool("heavy", &[SMALL]);
    heavy.weight = 10;
    case.problem.pools.push(heavy);
    let mut big = shape("big");
    big.requests = resources(3000, 1, 1);
    let pods = [case.pod(&big), case.pod(&shape("web"))];
    case.launch(&[LARGE], &[], &pods);
    case.legal()
}

#[test]
fn heavier_pools_first() {
    let case = weighted();
    let needless = |c: &mut Case| {
        c.shape_of(PodIx(0)).requests = resources(1000, 1, 1);
        c.settle();
    };
    let text = case.broken_by(Rule::Weight, "nobody needs the light pool", needless);
    assert_eq!(
        text,
        "node new-0: each of its pods could be on a pool heavier than \"general\", such as \"heavy\""
    );
    let excused: [(&str, Excuse); 11] = [
        ("limits", |c| c.problem.pools[1].limits = limit("cpu", 0)),
        ("closed", |c| {
            c.problem.pools[1].closed = Some("not ready".into())
        }),
        ("taint", |c| {
            c.problem.pools[1].taints = vec![taint("gpu", Effect::NoSchedule)]
        }),
        ("wish of the pool", |c| {
            c.problem.pools[1].taints = vec![taint("gpu", Effect::PreferNoSchedule)];
        }),
        ("minValues", |c| {
            let two = rule(keys::INSTANCE_TYPE, Operator::Exists, &[]).with_min_values(Some(2));
            c.problem.pools[1].requirements.add(two);
        }),
        ("wish of the pod", |c| {
            let term = vec![is(keys::INSTANCE_TYPE, "large")];
            c.shape_of(PodIx(0)).preferred_node_terms = vec![Preference { weight: 1, term }];
        }),
        ("soft spread", |c| {
            let mut soft = over(ZONE, "web");
            soft.hard = false;
            c.shape_of(PodIx(0)).spreads = vec![soft];
        }),
        ("wish to be near", |c| {
            let term = near(ZONE, "web");
            c.shape_of(PodIx(0)).preferred_affinity = vec![Preference { weight: 1, term }];
        }),
        ("wish to be apart", |c| {
            let term = near(ZONE, "web");
            c.shape_of(PodIx(0)).preferred_anti_affinity = vec![Preference { weight: 1, term }];
        }),
        ("selection", |c| {
            c.shape_of(PodIx(0)).node_selector = vec![is(keys::NODE_POOL, "general")];
        }),
        ("topology", |c| {
            c.shape_of(PodIx(0)).anti_affinity = vec![near(HOST, "nobody")];
        }),
    ];
    for (_, excuse) in excused {
        case.legal_with(|c| {
            needless(c);
            excuse(c);
        });
    }
    case.broken_by(Rule::Weight, "wishes do not count", |c| {
        needless(c);
        excused[5].1(c);
        c.problem.policy.preferences = PreferencePolicy::Ignore;
    });
    case.legal_with(|c| {
        needless(c);
        c.problem.pools[1].weight = 0;
    });
}

#[test]
fn nobody_is_left_over_for_nothing() {
    let mut case = Case::new();
    let mut huge = shape("huge");
    huge.requests = resources(9000, 1, 1);
    let pod = case.pod(&huge);
    case.leave(pod);
    let case = case.legal();
    let fits = |c: &mut Case| c.shape_of(PodIx(0)).requests = resources(8000, 1, 1);
    let text = case.broken_by(Rule::LeftOver, "large would do", fits);
    assert_eq!(
        text,
        "pod web/pod-0 is left over, but a new node of pool \"general\" can hold it"
    );
    let excused: [Excuse; 7] = [
        |c| c.problem.pools[0].limits = limit("cpu", 1),
        |c| c.problem.pools[0].closed = Some("not ready".into()),
        |c| c.shape_of(PodIx(0)).affinity = vec![near(HOST, "nobody")],
        |c| c.shape_of(PodIx(0)).volume_terms = vec![vec![is(ZONE, "d")]],
        |c| {
            let mut agent = shape("agent");
            agent.requests = resources(1, 0, 1);
            c.daemon(agent);
        },
        |c| {
            let mut agent = shape("agent");
            agent.requests = resources(0, 0, 1);
            agent.ports = vec![port("0.0.0.0", 80, Protocol::Tcp)];
            c.shape_of(PodIx(0)).ports = agent.ports.clone();
            c.daemon(agent);
        },
        |c| {
            let node = c.node("old", "a");
            let mut hermit = shape("hermit");
            hermit.anti_affinity = vec![near(ZONE, "huge")];
            c.bound(node, &hermit);
        },
    ];
    for excuse in excused {
        case.legal_with(|c| {
            fits(c);
            excuse(c);
        });
    }
    case.broken_by(Rule::LeftOver, "PreferNoSchedule is but a wish", |c| {
        fits(c);
        c.problem.pools[0].taints = vec![taint("gpu", Effect::PreferNoSchedule)];
    });
    case.broken_by(Rule::LeftOver, "a value of the pool's making", |c| {
        fits(c);
        c.problem.pools[0]
            .requirements
            .add(rule("team", Operator::Exists, &[]));
        c.shape_of(PodIx(0)).node_selector = vec![is("team", "red")];
    });
}
