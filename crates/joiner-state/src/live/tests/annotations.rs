//! What our own annotations say, read once.

use joiner_api::labels::ours::IN_TURN;

use super::*;

/// The time at which these tests begin.
fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + secs).unwrap()
}

/// So many hours after the start of things.
fn hours(n: i64) -> Timestamp {
    at(n * 3600)
}

#[test]
fn moves_count_for_a_day_and_take_little_room() {
    let mut tally = MoveTally::default();
    for hour in 0..100 {
        tally = tally.and(hours(hour), 2, 0);
    }
    assert_eq!(
        tally.used(hours(99), 9),
        50,
        "the hour a day ago counts as a whole"
    );
    assert_eq!(tally.used(hours(100), 9), 48);
    assert_eq!(tally.used(hours(125), 9), 0, "a day later nothing counts");
    let text = tally.text();
    assert!(text.len() <= 25 * 20, "{}: {text}", text.len());
    assert_eq!(
        MoveTally::parse(&text),
        tally,
        "it is read as it is written"
    );
}

#[test]
fn moves_within_an_hour_are_one_entry() {
    let tally = MoveTally::default().and(at(0), 1, 0).and(at(60), 3, 0);
    assert_eq!(tally.text(), "1970-01-12T13=4/0");
}

#[test]
fn moves_shrink_with_the_workload() {
    let tally = MoveTally::default()
        .and(hours(0), 40, 50)
        .and(hours(1), 10, 50);
    assert_eq!(tally.text(), "1970-01-12T13=40/50,1970-01-12T14=10/50");
    assert_eq!(tally.used(hours(1), 50), 50);
    assert_eq!(
        tally.used(hours(1), 100),
        50,
        "a workload that grew was not moved more"
    );
    assert_eq!(tally.used(hours(1), 15), 15, "one move of each replica");
    let later = tally.and(hours(1), 3, 15);
    assert_eq!(later.used(hours(1), 15), 18);
}

#[test]
fn what_cannot_be_read_counts_nothing() {
    for text in [
        "",
        "nonsense",
        "=",
        "2026-11-16T04=many",
        "2026-11-16T04",
        ",",
    ] {
        assert_eq!(MoveTally::parse(text), MoveTally::default(), "{text:?}");
    }
    let half = MoveTally::parse("1970-01-12T13=4,what");
    assert_eq!(half.used(at(0), 9), 4, "the rest does");
    let far = MoveTally::parse("2099-01-01T00=4");
    assert_eq!(far.used(at(0), 9), 0, "what has not happened yet does not");
}

#[test]
fn moves_that_did_not_happen_are_taken_back() {
    let tally = MoveTally::default().and(hours(0), 2, 0).and(hours(2), 3, 0);
    assert_eq!(tally.without(hours(2), 4).used(hours(2), 9), 1);
    assert_eq!(tally.without(hours(2), 9), MoveTally::default());
}

#[test]
fn hours_that_cannot_be_read_are_told() {
    assert!(MoveTally::is_clear("2026-11-16T04=3/10,2026-11-16T07=1"));
    assert!(!MoveTally::is_clear("2026-11-16T04=3,what"));
    let tally = MoveTally::default().and(hours(0), 2, 0).and(hours(5), 1, 0);
    let first = MoveTally::default().and(hours(5), 1, 0).last_hour();
    assert_eq!(tally.last_hour(), first);
    assert_eq!(MoveTally::default().last_hour(), None);
}

fn annotated(annotations: Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

fn known(object: &Value) -> Arc<LiveClaim> {
    let mut state = ClusterState::default();
    state.apply(Kind::NodeClaim, object);
    Arc::clone(state.snapshot().claim("c").unwrap())
}

#[test]
fn a_claim_says_what_it_is_to_become_and_what_becomes_of_it() {
    let intent = CommandIntent {
        id: "command-1".to_owned(),
        reason: "Drifted".to_owned(),
        method: String::new(),
        started: at(0),
        members: vec!["c".to_owned()],
        replacements: Vec::new(),
        saves: 7,
        moves: 3,
    };
    let texts = json!({COMMAND: intent.text(), PLANNED: "small/a/on-demand", IN_TURN: "true"});
    let own = known(&claim("c", annotated(texts)));
    assert_eq!(CommandIntent::of(&own).as_deref(), Some(&intent));
    let planned = Planned::parse("small/a/on-demand").unwrap();
    assert_eq!(own.planned.as_deref(), Some(&planned));
    assert_eq!(&*planned.capacity_type, "on-demand");
    assert!(own.in_turn && own.is_planned() && own.is_going());
    let bare = known(&claim("c", json!({})));
    assert!(bare.command.is_none() && bare.planned.is_none());
    assert!(!bare.in_turn && !bare.is_planned() && !bare.is_going());
}

#[test]
fn what_a_claim_says_that_cannot_be_read_is_not_lost() {
    let texts = json!({COMMAND: "?", PLANNED: "small", IN_TURN: "1"});
    let own = known(&claim("c", annotated(texts)));
    assert!(own.command.is_none() && own.planned.is_none() && !own.in_turn);
    assert!(
        own.is_going() && own.is_planned(),
        "that there is something to be read counts all the same"
    );
    assert_eq!(own.meta.annotation(COMMAND), Some("?"));
}

#[test]
fn carriers_are_members_that_say_so() {
    let mut state = ClusterState::default();
    let intent = |id: &str| CommandIntent {
        id: id.to_owned(),
        reason: "Empty".to_owned(),
        method: "empty".to_owned(),
        started: at(0),
        members: vec!["a".to_owned(), "b".to_owned(), "gone".to_owned()],
        replacements: vec!["new".to_owned()],
        saves: 0,
        moves: 0,
    };
    for (name, id) in [("a", "1"), ("b", "2")] {
        let text = intent(id).text();
        state.apply(
            Kind::NodeClaim,
            &claim(name, annotated(json!({COMMAND: text}))),
        );
    }
    let names = |id: &str| -> Vec<String> {
        let now = state.snapshot();
        let (intent, mut names) = (intent(id), Vec::new());
        names.extend(intent.carriers(&now).map(|own| own.name().to_string()));
        names
    };
    assert_eq!(names("1"), ["a"]);
    assert_eq!(names("2"), ["b"]);
    assert!(!intent("1").is_visible(&state.snapshot()));
    let new = claim("new", annotated(json!({PLANNED: "small/a/on-demand"})));
    state.apply(Kind::NodeClaim, &new);
    assert!(intent("1").is_visible(&state.snapshot()));
    assert_eq!(intent("1").decision(), "replace");
}

fn deployment(annotations: Value) -> Value {
    json!({"kind": "Deployment", "metadata": {"name": "web", "namespace": "default", "uid": "u",
        "annotations": annotations}})
}

#[test]
fn a_workload_says_how_far_its_surge_has_come() {
    let surge = Surge {
        pod: "uid-old".into(),
        stage: SurgeStage::Wait,
        from: 1,
        to: 2,
        since: at(0),
    };
    let moves = MoveTally::default().and(at(0), 3, 9);
    let texts = json!({SURGE: surge.text(), SURGE_ON_MOVE: "true", MOVES: moves.text()});
    let own = scalable(Kind::Deployment, &deployment(texts));
    assert_eq!(Surge::of(&own), Some(&surge));
    assert_eq!((own.surge_on_move, &own.moves), (Some(true), &moves));
    assert_eq!(surge.at(SurgeStage::Late).stage, SurgeStage::Late);
    let odd = deployment(json!({SURGE: "{", SURGE_ON_MOVE: "yes", MOVES: "?"}));
    let own = scalable(Kind::Deployment, &odd);
    assert_eq!(Surge::of(&own), None);
    assert_eq!(
        (own.surge_on_move, &own.moves),
        (Some(false), &MoveTally::default())
    );
    let own = scalable(Kind::Deployment, &deployment(json!({})));
    assert_eq!(own.surge_on_move, None);
}

fn scalable(kind: Kind, object: &Value) -> Arc<LiveScalable> {
    let mut state = ClusterState::default();
    state.apply(kind, object);
    Arc::clone(state.snapshot().scalable(kind, "default/web").unwrap())
}

#[test]
fn a_workload_says_what_it_selects_and_how_many_there_are() {
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}]}});
    let mut object = deployment(json!({}));
    merge(
        &mut object,
        json!({"spec": spec, "status": {"replicas": 2}}),
    );
    let own = scalable(Kind::Deployment, &object);
    assert_eq!((own.replicas, own.status_replicas), (3, 2));
    assert_eq!(own.selector.as_deref(), Some("app=web,tier in (a,b)"));
    // Kinds of others have it in their status.
    merge(
        &mut object,
        json!({"spec": {"selector": "app=web"}, "status": {"selector": "app=other"}}),
    );
    let own = scalable(Kind::Deployment, &object);
    assert_eq!(own.selector.as_deref(), Some("app=other"));
    let own = scalable(Kind::Deployment, &deployment(json!({})));
    assert_eq!((own.status_replicas, own.selector.as_deref()), (0, None));
}
