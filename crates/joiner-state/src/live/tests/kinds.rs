//! Kinds that this crate does not know.

use joiner_model::Selector;

use super::*;

const WIDGETS: Kind = Kind::new(&KindApi {
    group: "example.com",
    kind: "Widget",
    version: "v1",
    plural: "widgets",
});
const ROLLOUTS: Kind = Kind::new(&KindApi {
    group: "argoproj.io",
    kind: "Rollout",
    version: "v1alpha1",
    plural: "rollouts",
});

/// All that there is to say about a kind.
#[derive(Debug)]
struct LiveWidget {
    meta: Meta,
    color: Name,
    selector: Option<Selector>,
}

impl Live for LiveWidget {
    const KINDS: &'static [Kind] = &[WIDGETS];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let color = object["spec"]["color"].as_str().ok_or("it has no color")?;
        Ok(Self {
            meta: reading.meta(object),
            color: reading.text(color),
            selector: reading.selector(&object["spec"]["selector"])?,
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }

    fn about(&self) -> Option<&Name> {
        Some(&self.color)
    }
}

fn widget(name: &str, version: u64, color: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string()},
        "spec": {"color": color, "selector": {"matchLabels": {"app": name}}}})
}

#[test]
fn a_kind_of_others_is_one_implementation() {
    let mut state = ClusterState::default().with::<LiveWidget>();
    let change = state.apply(WIDGETS, &widget("a", 1, json!("red"))).unwrap();
    assert_eq!((change.kind, &*change.name), (WIDGETS, "default/a"));
    assert_eq!(change.what, What::Appeared);
    assert_eq!(change.about.as_deref(), Some("red"));
    let before = state.snapshot();
    state.apply(WIDGETS, &widget("b", 2, json!("blue")));
    assert!(
        state
            .apply(WIDGETS, &widget("a", 1, json!("old")))
            .is_none(),
        "older news"
    );
    let now = state.snapshot();
    let colors = |now: &Snapshot| -> Vec<String> {
        let all = now.all::<LiveWidget>();
        all.map(|own| own.color.to_string()).collect()
    };
    assert_eq!(colors(&now), ["red", "blue"]);
    assert_eq!(colors(&before), ["red"], "a snapshot never changes");
    let own = now.get::<LiveWidget>("default/b").unwrap();
    let labels = Labels::from([("app".into(), "b".into())]);
    assert!(own.selector.as_ref().unwrap().matches(&labels));
    assert!(now.get::<LiveWidget>("default/c").is_none());
    assert!(
        now.get::<LivePool>("default/b").is_none(),
        "of another type"
    );
}

#[test]
fn lists_ends_and_faults_are_those_of_any_kind() {
    let mut state = ClusterState::default().with::<LiveWidget>();
    for name in ["a", "b"] {
        state.apply(WIDGETS, &widget(name, 1, json!("red")));
    }
    state.begin(WIDGETS, "");
    state.apply(WIDGETS, &widget("b", 1, json!("red")));
    let gone = state.finish(WIDGETS, "");
    assert_eq!(gone.len(), 1);
    assert_eq!((&*gone[0].name, gone[0].what), ("default/a", What::Gone));
    assert!(state.snapshot().is_listed(WIDGETS, ""));
    let gone = state.apply(WIDGETS, &widget("b", 2, json!(7))).unwrap();
    assert_eq!(gone.what, What::Gone, "half understood is not understood");
    assert_eq!(state.broken(WIDGETS, "default/b"), Some("it has no color"));
    state.apply(WIDGETS, &widget("b", 3, json!("red")));
    assert!(
        state
            .remove(WIDGETS, &widget("b", 4, json!("red")))
            .is_some()
    );
    assert_eq!(state.snapshot().all::<LiveWidget>().count(), 0);
}

#[test]
fn what_is_not_kept_is_told() {
    let mut state = ClusterState::default();
    assert!(
        state
            .apply(WIDGETS, &widget("a", 1, json!("red")))
            .is_none()
    );
    let why = state.broken(WIDGETS, "default/a").unwrap();
    assert!(why.contains("ClusterState::with"), "{why}");
    assert!(
        state
            .remove(WIDGETS, &widget("a", 2, json!("red")))
            .is_none()
    );
    assert!(state.finish(WIDGETS, "").is_empty());
}

#[test]
fn a_workload_of_others_is_one_that_has_a_scale() {
    let mut state = ClusterState::default().with_kind::<LiveScalable>(ROLLOUTS);
    let object = |kind: &str| {
        json!({"kind": kind, "metadata": {"name": "web", "namespace": "default", "uid": kind},
            "spec": {"replicas": 7}})
    };
    state.apply(ROLLOUTS, &object("Rollout"));
    state.apply(Kind::Deployment, &object("Deployment"));
    let now = state.snapshot();
    assert_eq!(now.scalable(ROLLOUTS, "default/web").unwrap().replicas, 7);
    let kinds: Vec<Kind> = now.scalables().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [Kind::Deployment, ROLLOUTS]);
    assert_eq!(now.workloads(Kind::Deployment).count(), 1);
}

#[test]
fn kinds_are_told_apart_by_group_and_kind() {
    let all = [Kind::ALWAYS, Kind::BUFFERS, Kind::SPREADING].concat();
    let all: BTreeSet<Kind> = all.into_iter().collect();
    let names: BTreeSet<_> = all
        .iter()
        .map(|own| {
            let (group, _, _, kind) = own.api();
            (group, kind)
        })
        .collect();
    assert_eq!(names.len(), all.len());
    let again = Kind::new(&KindApi {
        group: "",
        kind: "Pod",
        version: "v1",
        plural: "pods",
    });
    assert_eq!(again, Kind::Pod);
    assert!(matches!(again, Kind::Pod));
    assert_eq!(
        format!("{:?} {:?}", Kind::CsiNode, Kind::NodeClass),
        "CSINode NodeClass"
    );
}
