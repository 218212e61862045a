use super::*;
use crate::vpa::limits::proportional_limit;

fn named(value: &Value) -> std::collections::BTreeMap<String, Quantity> {
    let entries = value.as_object().unwrap().iter();
    entries
        .map(|(name, text)| (name.clone(), q(text.as_str().unwrap())))
        .collect()
}

/// The limit that goes with a request.
fn limit(
    resource: Resource,
    limit: Value,
    request: Value,
    new: &str,
    default: Option<&str>,
) -> Option<(String, bool)> {
    let (limits, requests) = (named(&limit), named(&request));
    let found = proportional_limit(resource, (&limits, &requests), q(new), default.map(q));
    found.map(|(limit, overflows)| (limit.to_string(), overflows))
}

fn cpu(old_limit: &str, old_request: &str, new: &str) -> Option<(String, bool)> {
    limit(
        Resource::Cpu,
        json!({"cpu": old_limit}),
        json!({"cpu": old_request}),
        new,
        None,
    )
}

#[test]
fn vpa_64_limits_keep_their_proportion() {
    assert_eq!(cpu("2", "1", "10"), Some(("20".to_owned(), false)));
    let none = || json!({});
    let default = limit(Resource::Cpu, none(), json!({"cpu": "1"}), "10", Some("2"));
    assert_eq!(default, Some(("20".to_owned(), false)));
    assert_eq!(
        limit(Resource::Cpu, none(), json!({"cpu": "1"}), "10", None),
        None
    );
    assert_eq!(cpu("2", "1", "0"), None);
}

#[test]
fn vpa_65_fractions_are_cut_off() {
    assert_eq!(cpu("2", "1500m", "1"), Some(("1333m".to_owned(), false)));
    let memory = limit(
        Resource::Memory,
        json!({"memory": "200"}),
        json!({"memory": "150"}),
        "100",
        None,
    );
    assert_eq!(memory, Some(("133".to_owned(), false)));
}

#[test]
fn vpa_66_without_a_request_the_limit_follows_it() {
    let without = limit(Resource::Cpu, json!({"cpu": "2"}), json!({}), "10", None);
    assert_eq!(without, Some(("10".to_owned(), false)));
    assert_eq!(cpu("2", "2", "7"), Some(("7".to_owned(), false)));
}

#[test]
fn vpa_67_too_much_to_count_is_the_most_there_is() {
    let most = limit(
        Resource::Memory,
        json!({"memory": "1000000000000000000"}),
        json!({"memory": "1"}),
        "10000000000",
        None,
    );
    assert!(most.unwrap().1);
}

#[test]
fn vpa_68_limit_ranges_count_together() {
    let range = |kind: &str, min: &str, max: &str, default: &str| {
        json!({"spec": {"limits": [{
            "type": kind, "min": {"cpu": min}, "max": {"cpu": max}, "default": {"cpu": default},
        }]}})
    };
    let objects = [
        range("Container", "1", "9", "3"),
        range("Container", "2", "8", "4"),
        range("Pod", "5", "6", "7"),
        range("PersistentVolumeClaim", "5", "6", "7"),
    ];
    let ranges = LimitRanges::read(&objects).unwrap();
    let cpu = |amounts: &Resources<Quantity>| amounts[&Resource::Cpu].to_string();
    assert_eq!(cpu(&ranges.container.min), "2");
    assert_eq!(cpu(&ranges.container.max), "8");
    assert_eq!(cpu(&ranges.container.default), "4");
    assert_eq!(
        (cpu(&ranges.pod.min), cpu(&ranges.pod.max)),
        ("5".to_owned(), "6".to_owned())
    );
}
