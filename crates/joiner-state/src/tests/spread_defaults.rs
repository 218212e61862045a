//! Default spread constraints: which configurations are taken, and which pods get them.

use joiner_model::{PodShape, Problem, SelectorOp, Spread};

use super::{TYPES, shape};
use crate::{Catalog, Objects, Source, SpreadDefaults, parse_instance_types};

/// A configuration with these constraints, in flow style.
fn config(constraints: &str) -> String {
    format!("podTopologySpread: {{defaultConstraints: [{constraints}]}}")
}

const ZONES: &str =
    "{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}";
const ZONES_SOFT: &str =
    "{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}";

#[test]
fn core_361_what_a_scheduler_config_may_say() {
    let hosts =
        "{maxSkew: 3, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}";
    for (text, n) in [
        (String::new(), 0),
        ("# nothing yet\n".to_owned(), 0),
        ("podTopologySpread: {}".to_owned(), 0),
        ("podTopologySpread:\n".to_owned(), 0),
        (config(""), 0),
        (config(ZONES), 1),
        (config(&format!("{ZONES}, {hosts}")), 2),
        // The same key with the other whenUnsatisfiable.
        (config(&format!("{ZONES}, {ZONES_SOFT}")), 2),
        (
            r#"{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 2, "minDomains": 3,
                "topologyKey": "example.com/rack", "whenUnsatisfiable": "DoNotSchedule",
                "nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore",
                "labelSelector": null, "matchLabelKeys": []}]}}"#
                .to_owned(),
            1,
        ),
    ] {
        let parsed = SpreadDefaults::parse("scheduler.yaml", &text);
        assert_eq!(parsed.map(|own| own.n()), Ok(n), "{text}");
    }
}

#[test]
fn core_361_what_a_scheduler_config_must_not_say() {
    let at = |rest: &str| format!("scheduler.yaml: podTopologySpread.defaultConstraints[0]{rest}");
    let with = |more: &str| config(&ZONES.replace('}', &format!(", {more}}}")));
    let without = |part: &str| config(&ZONES.replace(part, ""));
    let instead = |old: &str, new: &str| config(&ZONES.replace(old, new));
    let deduced = "must not be given here: which pods count follows from the Services and the owner \
                   of each pod; remove it";
    for (text, said) in [
        (
            "podTopologySpread: [".to_owned(),
            "malformed YAML".to_owned(),
        ),
        ("[]".to_owned(), "must be an object".to_owned()),
        (
            "podTopologySpreed: {}".to_owned(),
            "unknown field podTopologySpreed, expected podTopologySpread; remove it, or correct \
             its spelling"
                .to_owned(),
        ),
        (
            "podTopologySpread: {defaultingType: List}".to_owned(),
            "unknown field defaultingType, expected defaultConstraints".to_owned(),
        ),
        (
            with("skew: 1"),
            "unknown field skew, expected one of maxSkew".to_owned(),
        ),
        (
            "kind: KubeSchedulerConfiguration\nprofiles: []".to_owned(),
            "put the defaultConstraints of its PodTopologySpread plugin below podTopologySpread"
                .to_owned(),
        ),
        (
            instead("maxSkew: 1", "maxSkew: 0"),
            at(".maxSkew: 0 is not above zero"),
        ),
        (
            instead("maxSkew: 1", "maxSkew: -1"),
            at(".maxSkew: -1 is not above zero"),
        ),
        (without("maxSkew: 1,"), at(".maxSkew: 0 is not above zero")),
        (
            instead("maxSkew: 1", "maxSkew: one"),
            at(".maxSkew: must be a whole number, not \"one\""),
        ),
        (
            without("topologyKey: topology.kubernetes.io/zone,"),
            at(".topologyKey: there is no topologyKey"),
        ),
        (
            instead("topology.kubernetes.io/zone", "'a zone'"),
            at(".topologyKey: \"a zone\" is not a label key"),
        ),
        (
            with("labelSelector: {}"),
            at(&format!(".labelSelector: {deduced}")),
        ),
        (
            with("matchLabelKeys: [a]"),
            at(&format!(".matchLabelKeys: {deduced}")),
        ),
        (
            instead("DoNotSchedule", "Sometimes"),
            at(".whenUnsatisfiable: \"Sometimes\" is not one of DoNotSchedule, ScheduleAnyway"),
        ),
        (
            without(", whenUnsatisfiable: DoNotSchedule"),
            at(".whenUnsatisfiable: there is no whenUnsatisfiable"),
        ),
        (
            with("minDomains: 0"),
            at(".minDomains: 0 is not above zero"),
        ),
        (
            with("nodeTaintsPolicy: Maybe"),
            at(".nodeTaintsPolicy: \"Maybe\" is not one of Honor, Ignore"),
        ),
        (
            config(&format!("{ZONES_SOFT}, {ZONES}, {ZONES}")),
            "scheduler.yaml: podTopologySpread.defaultConstraints[2]: has the topologyKey and \
             whenUnsatisfiable of podTopologySpread.defaultConstraints[1]; remove one of them"
                .to_owned(),
        ),
        (
            "podTopologySpread: {}\npodTopologySpread: {}".to_owned(),
            "podTopologySpread: malformed YAML: is there twice in one object".to_owned(),
        ),
    ] {
        let refused = SpreadDefaults::parse("scheduler.yaml", &text).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.starts_with("scheduler.yaml"), "{text}: {refused}");
        assert!(refused.contains(&said), "{text}\n  {refused}\n  {said}");
    }
}

/// The problem of some objects, with a hard default spread over zones.
fn problem(objects: &str) -> Problem {
    problem_with(&config(ZONES), objects)
}

fn problem_with(config: &str, objects: &str) -> Problem {
    let defaults = SpreadDefaults::parse("scheduler.yaml", config).unwrap();
    let mut all = Objects::with_spread_defaults(defaults);
    all.add(&Source::new("in.yaml", objects)).unwrap();
    let types = parse_instance_types("types.json", TYPES).unwrap();
    all.problem(Catalog::shared(types)).unwrap().problem
}

/// What the spread constraints of a pod select, as `key=value` in order.
fn selected(shape: &PodShape) -> Vec<String> {
    let of = |spread: &Spread| {
        let exprs = spread.selector.iter().flat_map(|own| own.exprs());
        let exprs = exprs.map(|expr| {
            assert_eq!(expr.op, SelectorOp::In);
            let values: Vec<&str> = expr.values.iter().map(AsRef::as_ref).collect();
            format!("{}={}", expr.key, values.join("|"))
        });
        exprs.collect::<Vec<_>>().join(",")
    };
    shape.spreads.iter().map(of).collect()
}

/// A pod with these labels and this owner, in flow style.
fn pod(labels: &str, owner: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, labels: {{{labels}}}, \
         ownerReferences: [{owner}]}}\nspec: {spec}\n"
    )
}

fn owned_by(api_version: &str, kind: &str, name: &str) -> String {
    format!("{{apiVersion: {api_version}, kind: {kind}, name: {name}, uid: u, controller: true}}")
}

const OBJECTS: &str = "
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1}, spec: {replicas: 0, selector: {matchLabels: {app: web, pod-template-hash: one}}, template: {metadata: {labels: {app: web}}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 0, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: api}, spec: {replicas: 0, selector: {matchLabels: {app: api}}, template: {metadata: {labels: {app: api}}}}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: old}, spec: {selector: {app: old, tier: rc}}}
---
{apiVersion: v1, kind: Service, metadata: {name: front}, spec: {selector: {tier: front}}}
---
{apiVersion: v1, kind: Service, metadata: {name: gold}, spec: {selector: {class: gold}}}
---
{apiVersion: v1, kind: Service, metadata: {name: by-hand}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: away, namespace: other}, spec: {selector: {app: lone}}}
---
";

#[test]
fn core_172_which_pods_get_the_default_constraints() {
    let own = "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, \
               labelSelector: {matchLabels: {own: 'yes'}}}]}";
    let set = owned_by("apps/v1", "ReplicaSet", "web-1");
    let db = owned_by("apps/v1", "StatefulSet", "db");
    let job = owned_by("batch/v1", "Job", "j");
    let rc = owned_by("v1", "ReplicationController", "old");
    let made = owned_by("apps/v1", "ReplicaSet", "api-77");
    let gone = owned_by("apps/v1", "ReplicaSet", "gone");
    let foreign = owned_by("example.com/v1", "StatefulSet", "db");
    let loose = "{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u}";
    for (labels, owner, spec, wanted) in [
        // Owners.
        (
            "app: web",
            &*set,
            "{}",
            &["app=web,pod-template-hash=one"][..],
        ),
        ("app: db", &*db, "{}", &["app=db"]),
        ("app: old", &*rc, "{}", &["app=old,tier=rc"]),
        // A ReplicaSet that is not in the file, of a Deployment that is: its revision.
        (
            "app: api, pod-template-hash: '77'",
            &*made,
            "{}",
            &["app=api,pod-template-hash=77"],
        ),
        ("app: api", &*made, "{}", &["app=api"]),
        // Services, alone, together, and with an owner.
        ("tier: front", "", "{}", &["tier=front"]),
        (
            "tier: front, class: gold",
            "",
            "{}",
            &["class=gold,tier=front"],
        ),
        (
            "tier: front",
            &*set,
            "{}",
            &["app=web,pod-template-hash=one,tier=front"],
        ),
        ("tier: front", &*job, "{}", &["tier=front"]),
        // What a ReplicationController says wins over Services.
        ("tier: front", &*rc, "{}", &["app=old,tier=rc"]),
        // Nobody selects these.
        ("app: lone", "", "{}", &[]),
        ("app: lone", &*job, "{}", &[]),
        ("app: lone", &*gone, "{}", &[]),
        ("app: db", &*foreign, "{}", &[]),
        ("app: db", loose, "{}", &[]),
        // Their own constraints keep all others away.
        ("tier: front", &*set, own, &["own=yes"]),
    ] {
        let problem = problem(&format!("{OBJECTS}{}", pod(labels, owner, spec)));
        let shape = shape(&problem, "default/p");
        assert_eq!(selected(shape), wanted, "{labels} {owner}");
    }
}

#[test]
fn core_172_pods_to_be_made_get_them_too() {
    let objects = "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {metadata: {labels: {app: once}}}}}
";
    let problem = problem(objects);
    assert_eq!(selected(shape(&problem, "default/web-0")), ["app=web"]);
    assert_eq!(selected(shape(&problem, "default/db-0")), ["app=db"]);
    assert!(shape(&problem, "default/once-0").spreads.is_empty());
}

#[test]
fn core_173_constraints_are_carried_over() {
    let constraints = "{maxSkew: 2, minDomains: 3, topologyKey: topology.kubernetes.io/zone, \
        whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor}, {maxSkew: 5, \
        topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}";
    let pod = pod("tier: front", "", "{}");
    let problem = problem_with(&config(constraints), &format!("{OBJECTS}{pod}"));
    let spreads = &shape(&problem, "default/p").spreads;
    let figures = |own: &Spread| {
        let Spread {
            key,
            max_skew,
            hard,
            min_domains,
            ..
        } = own.clone();
        (
            key.to_string(),
            max_skew,
            hard,
            min_domains,
            own.honor_taints,
            own.honor_affinity,
        )
    };
    let zone = (
        "topology.kubernetes.io/zone".to_owned(),
        2,
        true,
        Some(3),
        true,
        true,
    );
    let host = (
        "kubernetes.io/hostname".to_owned(),
        5,
        false,
        None,
        false,
        true,
    );
    let found: Vec<_> = spreads.iter().map(figures).collect();
    assert_eq!(found, [zone, host]);
}

#[test]
fn pods_that_look_alike_and_have_different_owners_spread_apart() {
    let two = ["a", "b"].map(|name| {
        let owner = owned_by("apps/v1", "ReplicaSet", name);
        format!(
            "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: {name}}}, spec: {{replicas: 0, \
             selector: {{matchLabels: {{of: {name}}}}}, template: {{metadata: {{labels: {{}}}}}}}}}}\n---\n\
             {{apiVersion: v1, kind: Pod, metadata: {{name: p{name}, labels: {{app: web}}, \
             ownerReferences: [{owner}]}}}}\n---\n"
        )
    });
    let problem = problem(&two.concat());
    assert_eq!(selected(shape(&problem, "default/pa")), ["of=a"]);
    assert_eq!(selected(shape(&problem, "default/pb")), ["of=b"]);
}

#[test]
fn without_defaults_nothing_changes() {
    let pod = pod("tier: front", "", "{}");
    let problem = problem_with("podTopologySpread: {}", &format!("{OBJECTS}{pod}"));
    assert!(shape(&problem, "default/p").spreads.is_empty());
}
