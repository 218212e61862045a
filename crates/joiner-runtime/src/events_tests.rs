//! Which events are news, and what they look like.

use super::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(secs).unwrap()
}

fn key(reason: &'static str, uid: &str, same: &str) -> Key {
    (reason.into(), uid.into(), same.to_owned())
}

fn pod(name: &str) -> About {
    About {
        kind: "Pod",
        api_version: "v1".into(),
        name: name.into(),
        uid: "u1".into(),
    }
}

#[test]
fn the_same_again_is_no_news_for_two_minutes() {
    let mut news = News::new(at(0));
    let one = key("FailedScheduling", "u1", "");
    assert_eq!(news.judge(&one, EVERY, at(0)), Verdict::Write);
    assert_eq!(news.judge(&one, EVERY, at(119)), Verdict::Known);
    assert_eq!(news.judge(&one, EVERY, at(120)), Verdict::Write);
    for other in [
        key("FailedScheduling", "u2", ""),
        key("FailedScheduling", "u1", "other"),
        key("Evicted", "u1", ""),
    ] {
        assert_eq!(
            news.judge(&other, EVERY, at(121)),
            Verdict::Write,
            "{other:?}"
        );
    }
}

#[test]
fn nominations_come_in_bursts_of_ten_and_five_a_second() {
    let mut news = News::new(at(0));
    let mut n_written = |from: usize, now: i64| {
        let uids = from..from + 100;
        let verdicts =
            uids.map(|n| news.judge(&key("Nominated", &n.to_string(), ""), EVERY, at(now)));
        verdicts
            .filter(|verdict| *verdict == Verdict::Write)
            .count()
    };
    assert_eq!(n_written(0, 0), 10);
    assert_eq!(n_written(100, 1), 5);
    assert_eq!(n_written(200, 60), 10);
    // One that was dropped may be told later.
    assert_eq!(
        news.judge(&key("Nominated", "99", ""), EVERY, at(70)),
        Verdict::Write
    );
    // Other reasons are not limited.
    for n in 0..100 {
        let evicted = key("Evicted", &n.to_string(), "");
        assert_eq!(news.judge(&evicted, EVERY, at(70)), Verdict::Write);
    }
}

#[test]
fn only_so_much_is_remembered() {
    let mut news = News::new(at(0));
    for n in 0..REMEMBERED_MAX + 50 {
        let key = key("Evicted", &n.to_string(), "");
        assert_eq!(
            news.judge(&key, EVERY, at(i64::try_from(n / 1000).unwrap())),
            Verdict::Write
        );
    }
    assert_eq!(news.until.len(), REMEMBERED_MAX);
    assert_eq!(
        news.judge(&key("Evicted", "9999", ""), EVERY, at(11)),
        Verdict::Known
    );
}

#[test]
fn an_event_as_kubectl_shows_it() {
    let mut event = Event::warning(pod("web/api-0"), "FailedScheduling", "no room".to_owned());
    let shown = object(5, at(1), &event);
    assert_eq!(shown["metadata"]["name"], "api-0.3b9aca05");
    assert_eq!(shown["metadata"]["namespace"], "web");
    assert_eq!(
        shown["involvedObject"],
        json!({"kind": "Pod", "apiVersion": "v1", "name": "api-0", "namespace": "web", "uid": "u1"})
    );
    assert_eq!(shown["type"], "Warning");
    assert_eq!(shown["source"]["component"], "karpenter");
    assert_eq!(shown["firstTimestamp"], "1970-01-01T00:00:01Z");

    event.about.name = "node-1".into();
    event.message = "ü".repeat(2000);
    let shown = object(5, at(1), &event);
    assert_eq!(shown["metadata"]["namespace"], "default");
    assert!(shown["involvedObject"].get("namespace").is_none());
    assert_eq!(shown["message"].as_str().unwrap().len(), 1024);
}
