use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;

fn metadata(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    entries.iter().map(owned).collect()
}

fn trigger(zone: &str, start: &str, end: &str) -> CronTrigger {
    let entries = [
        ("timezone", zone),
        ("start", start),
        ("end", end),
        ("desiredReplicas", "10"),
    ];
    CronTrigger::read(&metadata(&entries), jiff::tz::db()).unwrap()
}

/// What is wrong with metadata of which one entry is another.
fn wrong(name: &str, text: Option<&str>) -> String {
    let mut all = metadata(&[
        ("timezone", "Etc/UTC"),
        ("start", "0 0 * * Thu"),
        ("end", "59 23 * * Thu"),
        ("desiredReplicas", "10"),
    ]);
    match text {
        Some(text) => all.insert(name.to_owned(), text.to_owned()),
        None => all.remove(name),
    };
    let error = CronTrigger::read(&all, jiff::tz::db()).unwrap_err();
    error.to_string()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn value(trigger: &CronTrigger, time: &str) -> i64 {
    let window = trigger.window(at(time), jiff::tz::db()).unwrap();
    trigger.value(&window)
}

#[test]
fn keda_1_metadata_must_be_there() {
    let error = CronTrigger::read(&BTreeMap::new(), jiff::tz::db()).unwrap_err();
    assert_eq!(error.to_string(), "start: is missing; set it");
}

#[test]
fn keda_2_so_must_the_number_of_replicas() {
    assert_eq!(
        wrong("desiredReplicas", None),
        "desiredReplicas: is missing; set it"
    );
    for text in ["0", "1.5", "+3", "abc", "05"] {
        let error = wrong("desiredReplicas", Some(text));
        let expected = format!("must be a whole number other than 0, not {text:?}");
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn keda_3_and_the_time_zone() {
    assert_eq!(wrong("timezone", None), "timezone: is missing; set it");
    assert_eq!(wrong("timezone", Some("")), "timezone: is missing; set it");
}

#[test]
fn keda_4_ranges_are_fine() {
    let ranges = trigger("Etc/UTC", "30-33 * * * *", "40-45 * * * *");
    for (time, replicas) in [
        ("2026-03-05T10:32:30Z", 0),
        ("2026-03-05T10:33:00Z", 10),
        ("2026-03-05T10:44:30Z", 10),
        ("2026-03-05T10:45:00Z", 0),
    ] {
        assert_eq!(value(&ranges, time), replicas, "{time}");
    }
}

#[test]
fn keda_5_negative_minutes_are_not() {
    for name in ["start", "end"] {
        let error = wrong(name, Some("-30 * * * *"));
        assert!(error.contains("is no minute"), "{error}");
    }
}

#[test]
fn keda_6_nor_are_negative_months() {
    let error = wrong("end", Some("50 * * -3 *"));
    assert!(error.contains("is no month"), "{error}");
}

#[test]
fn keda_7_a_window_must_have_two_schedules() {
    let error = wrong("end", Some("0 0 * * Thu"));
    assert_eq!(error, "end: must be another schedule than start");
}

#[test]
fn keda_8_a_window_is_open_from_its_start_to_its_end() {
    let thursday = trigger("Etc/UTC", "0 0 * * Thu", "59 23 * * Thu");
    for (time, replicas) in [
        ("2026-03-04T23:59:59Z", 0),
        ("2026-03-05T00:00:00Z", 10),
        ("2026-03-05T12:00:00Z", 10),
        ("2026-03-05T23:58:59.9Z", 10),
        ("2026-03-05T23:59:00Z", 0),
        ("2026-03-06T12:00:00Z", 0),
    ] {
        assert_eq!(value(&thursday, time), replicas, "{time}");
    }
}

#[test]
fn keda_9_steps_make_windows_of_every_other_hour() {
    let even = trigger("Etc/UTC", "0 */2 * * *", "0 1-23/2 * * *");
    for hour in 0..24 {
        let time = format!("2026-03-05T{hour:02}:30:00Z");
        let expected = if hour % 2 == 0 { 10 } else { 0 };
        assert_eq!(value(&even, &time), expected, "{time}");
    }
}

#[test]
fn keda_10_metrics_are_named_after_zone_and_schedules() {
    for (index, start, end, name) in [
        (
            0,
            "0 0 * * Thu",
            "59 23 * * Thu",
            "s0-cron-Etc-UTC-00xxThu-5923xxThu",
        ),
        (
            1,
            "0 */2 * * *",
            "0 1-23/2 * * *",
            "s1-cron-Etc-UTC-0xSl2xxx-01-23Sl2xxx",
        ),
        (
            2,
            "0,30 * * * *",
            "15,45 * * * *",
            "s2-cron-Etc-UTC-0Cm30xxxx-15Cm45xxxx",
        ),
    ] {
        let trigger = trigger("Etc/UTC", start, end);
        assert_eq!(
            crate::keda::metric_name(index, &trigger.scaler_name()),
            name
        );
    }
}

#[test]
fn expressions_that_say_nothing() {
    for (text, why) in [
        ("* * * *", "it has 4 fields instead of five"),
        ("* * * * * *", "it has 6 fields instead of five"),
        ("@daily", "it has 1 fields instead of five"),
        ("5-1 * * * *", "\"5-1\" begins after its end"),
        ("* 24 * * *", "\"24\" is no hour: it goes from 0 to 23"),
        (
            "* * 0 * *",
            "\"0\" is no day of the month: it goes from 1 to 31",
        ),
        ("* * * * 7", "\"7\" is no weekday: it goes from 0 to 6"),
        ("*/0 * * * *", "\"*/0\" has a step of zero"),
        ("1-2-3 * * * *", "too many dashes"),
        ("1/2/3 * * * *", "too many slashes"),
        ("1- * * * *", "\"\" is no minute"),
        ("0 0 L * *", "\"L\" is no day of the month"),
        ("TZ=Mars/Olympus 0 0 * * *", "is no time zone"),
        ("TZ=UTC", "nothing follows the time zone"),
    ] {
        let error = Schedule::parse(text, jiff::tz::db())
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

/// The next firing of an expression on the clock of a zone.
fn next(expression: &str, zone: &str, time: &str) -> Option<String> {
    let schedule = Schedule::parse(expression, jiff::tz::db()).unwrap();
    let zone = TimeZone::get(zone).unwrap();
    let firing = schedule.next_after(at(time), &zone);
    firing.map(|firing| firing.to_string())
}

#[test]
fn firings_are_found_on_the_calendar() {
    for (expression, expected) in [
        ("* * * * *", "2026-03-05T10:31:00Z"),
        ("30 10 * * *", "2026-03-06T10:30:00Z"),
        ("0 0 1 jan *", "2027-01-01T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 31 * *", "2026-03-31T00:00:00Z"),
        ("0 0 * * Sun", "2026-03-08T00:00:00Z"),
        ("0 0 9 * 6", "2026-03-07T00:00:00Z"),
        ("0 0 */2 * 6", "2026-03-07T00:00:00Z"),
        ("0 0 */1 * 6", "2026-03-07T00:00:00Z"),
        ("50/5 * * * *", "2026-03-05T10:50:00Z"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-03-06T00:00:00Z"),
    ] {
        let found = next(expression, "UTC", "2026-03-05T10:30:00Z");
        assert_eq!(found.as_deref(), Some(expected), "{expression}");
    }
    for never in ["0 0 30 2 *", ", 0 * * *"] {
        assert_eq!(next(never, "UTC", "2026-03-05T10:30:00Z"), None, "{never}");
    }
}

#[test]
fn times_that_clocks_skip_do_not_fire_and_repeated_ones_fire_twice() {
    let spring = next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z");
    assert_eq!(spring.as_deref(), Some("2026-03-30T00:30:00Z"));
    let first = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z");
    assert_eq!(first.as_deref(), Some("2026-10-25T00:30:00Z"));
    let second = next("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z");
    assert_eq!(second.as_deref(), Some("2026-10-25T01:30:00Z"));
}

#[test]
fn where_clocks_change_at_half_hours_the_search_leaves_them() {
    // Chatham goes from 03:45 back to 02:45. The search passes 03:45 and stops at the minute 45 after it.
    let found = next("45 3 * * *", "Pacific/Chatham", "2030-04-06T14:00:01Z");
    assert_eq!(found.as_deref(), Some("2030-04-06T14:00:00Z"));
    let chatham = trigger("Pacific/Chatham", "45 3 * * *", "30 23 * * 4");
    assert_eq!(value(&chatham, "2030-04-06T14:00:01Z"), 10);
}

#[test]
fn what_never_fires_never_opens_or_never_closes() {
    let never = "0 0 30 2 *";
    let time = "2026-03-05T10:30:00Z";
    assert_eq!(value(&trigger("UTC", never, "0 9 * * *"), time), 10);
    assert_eq!(value(&trigger("UTC", "0 9 * * *", never), time), 0);
    assert_eq!(value(&trigger("UTC", never, "0 0 31 2 *"), time), 10);
}

#[test]
fn windows_go_over_midnight_and_say_when_they_change() {
    let night = trigger("Asia/Seoul", "0 22 * * *", "0 6 * * *");
    let window = |time| night.window(at(time), jiff::tz::db()).unwrap();
    let open = window("2026-03-05T16:00:00Z");
    assert!(open.is_open);
    assert_eq!(open.next_change(), Some(at("2026-03-05T21:00:00Z")));
    let closed = window("2026-03-05T22:00:00Z");
    assert!(!closed.is_open);
    assert_eq!(closed.next_change(), Some(at("2026-03-06T13:00:00Z")));
}

#[test]
fn a_zone_that_is_none_is_seen_when_it_is_looked_at() {
    for name in ["Mars/Olympus", "europe/berlin", "local"] {
        let trigger = trigger(name, "0 9 * * *", "0 17 * * *");
        let error = trigger.window(at("2026-03-05T16:00:00Z"), jiff::tz::db());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("is no time zone"), "{error}");
    }
    let local = trigger("Local", "0 9 * * *", "0 17 * * *");
    assert_eq!(value(&local, "2026-03-05T16:00:00Z"), 10);
}

#[test]
fn fewer_than_no_replicas_are_none() {
    let mut trigger = trigger("UTC", "0 9 * * *", "0 17 * * *");
    trigger.desired_replicas = -3;
    assert_eq!(value(&trigger, "2026-03-05T16:00:00Z"), 0);
}
