//! What is in the simulated account: subnets, security groups, reservations, placement groups.
//!
//! The account has whatever is asked for, so that classes made for a real account work: a selector by
//! tags finds a subnet in every zone of the region, an id that EC2 could have given is there. Ids
//! derive from names and never change. There is nothing behind a name, tag or profile that starts
//! with one of [`ABSENT`], nor behind an id of another shape: with those a class can be made to fail.

use std::collections::BTreeMap;

use joiner_api::types::{
    CapacityReservation, CapacityReservationTerm, MatchCriteria, PlacementGroupSelector,
    ReservationState, ReservationType, SecurityGroup, SecurityGroupTerm, Subnet, SubnetTerm,
};
use joiner_catalog::Zone;
use joiner_cluster::{Digest, hex};

/// How names of things start that the account does not have.
pub(crate) const ABSENT: [&str; 6] = [
    "missing",
    "no-such",
    "nonexistent",
    "does-not-exist",
    "doesnotexist",
    "nothing",
];
/// The account.
pub(crate) const ACCOUNT: &str = "111122223333";
/// Lengths of the part of an id behind its prefix.
const ID_LENS: [usize; 2] = [8, 17];
/// Type that reservations hold.
const RESERVED_TYPE: &str = "m5.large";

/// True for a name of something that the account has.
pub(crate) fn is_there(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !ABSENT.iter().any(|absent| name.starts_with(absent))
}

/// True for an id that EC2 could have given.
pub(crate) fn is_id(id: &str, prefix: &str) -> bool {
    let Some(digits) = id.strip_prefix(prefix) else {
        return false;
    };
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    ID_LENS.contains(&digits.len()) && digits.bytes().all(is_digit)
}

/// An id that derives from these words.
pub(crate) fn id_of(prefix: &str, words: &[&str]) -> String {
    let mut digest = Digest::default().text(prefix);
    for word in words {
        digest = digest.text(word);
    }
    format!("{prefix}0{}", hex(digest.finish()))
}

/// Tags as one word; none when the account has nothing that is tagged so.
fn tagged(tags: &BTreeMap<String, String>) -> Option<String> {
    let there = tags
        .iter()
        .all(|(key, value)| is_there(key) && is_there(value));
    let words = tags.iter().map(|(key, value)| format!("{key}={value}"));
    there.then(|| words.collect::<Vec<_>>().join(","))
}

/// Subnets of these terms: one in each zone by tags, and those that are named, in one zone after the
/// other.
pub(crate) fn subnets(terms: &[SubnetTerm], zones: &[Zone]) -> Vec<Subnet> {
    let mut found: BTreeMap<String, Subnet> = BTreeMap::new();
    let subnet = |id: String, zone: &Zone| Subnet {
        id,
        zone: zone.name.clone(),
        zone_id: Some(zone.id.to_owned()),
    };
    let named = terms.iter().filter_map(|term| term.id.as_deref());
    let named = named.filter(|id| is_id(id, "subnet-"));
    for (id, zone) in named.zip(zones.iter().cycle()) {
        found.insert(id.to_owned(), subnet(id.to_owned(), zone));
    }
    for term in terms.iter().filter(|term| term.id.is_none()) {
        let Some(tags) = term.tags.as_ref().and_then(tagged) else {
            continue;
        };
        for zone in zones {
            let id = id_of("subnet-", &[&tags, &zone.name]);
            found.insert(id.clone(), subnet(id, zone));
        }
    }
    found.into_values().collect()
}

/// Security groups of these terms: one for each.
pub(crate) fn security_groups(terms: &[SecurityGroupTerm]) -> Vec<SecurityGroup> {
    let mut found: BTreeMap<String, SecurityGroup> = BTreeMap::new();
    for term in terms {
        let group = match (&term.id, &term.name, &term.tags) {
            (Some(id), _, _) if is_id(id, "sg-") => Some((id.clone(), format!("group-of-{id}"))),
            (Some(_), _, _) => None,
            (None, Some(name), _) => {
                let plain = name.replace('*', "node");
                is_there(name).then(|| (id_of("sg-", &[name]), plain))
            }
            (None, None, Some(tags)) => tagged(tags).map(|own| {
                let owner = tags
                    .values()
                    .find(|value| !value.is_empty() && *value != "*");
                let owner = owner.map_or("cluster", String::as_str);
                (id_of("sg-", &[&own]), format!("{owner}-node"))
            }),
            (None, None, None) => None,
        };
        if let Some((id, name)) = group {
            let name = Some(name);
            found.insert(id.clone(), SecurityGroup { id, name });
        }
    }
    found.into_values().collect()
}

/// Reservations of these terms: one for each, of one type, in one zone after the other.
pub(crate) fn reservations(
    terms: &[CapacityReservationTerm],
    zones: &[Zone],
) -> Vec<CapacityReservation> {
    let mut found: BTreeMap<String, CapacityReservation> = BTreeMap::new();
    for (term, zone) in terms.iter().zip(zones.iter().cycle()) {
        let criteria = term.instance_match_criteria;
        let id = match (&term.id, &term.tags) {
            (Some(id), _) => is_id(id, "cr-").then(|| id.clone()),
            (None, Some(tags)) => tagged(tags).map(|own| id_of("cr-", &[&own])),
            (None, None) => criteria.map(|own| id_of("cr-", &[own.as_str()])),
        };
        let Some(id) = id else { continue };
        found.insert(
            id.clone(),
            CapacityReservation {
                id,
                availability_zone: zone.name.clone(),
                instance_type: RESERVED_TYPE.to_owned(),
                instance_match_criteria: criteria.unwrap_or(MatchCriteria::Targeted),
                owner_id: term.owner_id.clone().unwrap_or_else(|| ACCOUNT.to_owned()),
                reservation_type: Some(ReservationType::Default),
                interruptible: None,
                state: Some(ReservationState::Active),
                end_time: None,
            },
        );
    }
    found.into_values().collect()
}

/// True when there is such a placement group.
pub(crate) fn has_placement_group(selector: &PlacementGroupSelector) -> bool {
    match (&selector.id, &selector.name) {
        (Some(id), _) => is_id(id, "pg-"),
        (None, Some(name)) => is_there(name),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use joiner_catalog::zones;

    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
        let pairs = pairs.iter();
        Some(
            pairs
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn tags_find_a_subnet_in_every_zone() {
        let zones = zones("eu-west-2").unwrap();
        let terms = |value: &str| {
            vec![SubnetTerm {
                tags: tags(&[("karpenter.sh/discovery", value)]),
                id: None,
            }]
        };
        let found = subnets(&terms("shop"), &zones);
        let mut seen: Vec<_> = found.iter().map(|own| own.zone.clone()).collect();
        seen.sort();
        let all: Vec<_> = zones.iter().map(|zone| zone.name.clone()).collect();
        assert_eq!(seen, all);
        assert!(
            found.iter().all(|own| is_id(&own.id, "subnet-")),
            "{found:?}"
        );
        assert!(found.iter().all(|own| own.zone_id.is_some()));
        assert_eq!(subnets(&terms("shop"), &zones), found, "the same again");
        assert_ne!(subnets(&terms("bank"), &zones), found);
        assert_eq!(subnets(&terms("missing-cluster"), &zones), []);
    }

    #[test]
    fn named_subnets_are_spread_over_zones() {
        let zones = zones("us-west-2").unwrap();
        let ids = ["subnet-0123456789abcdef0", "subnet-0a1b2c3d", "subnet-web"];
        let terms = ids.map(|id| SubnetTerm {
            tags: None,
            id: Some(id.to_owned()),
        });
        let found = subnets(&terms, &zones);
        let shown: Vec<_> = found.iter().map(|s| (&*s.id, &*s.zone)).collect();
        let expected = [(ids[0], "us-west-2a"), (ids[1], "us-west-2b")];
        assert_eq!(shown, expected, "the third has no id that EC2 gives");
    }

    #[test]
    fn groups_reservations_and_placement_groups() {
        let group = |id: Option<&str>, name: Option<&str>, own| SecurityGroupTerm {
            tags: own,
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        let found = security_groups(&[
            group(Some("sg-0123456789abcdef0"), None, None),
            group(Some("sg-nope"), None, None),
            group(None, Some("web-*"), None),
            group(None, Some("missing"), None),
            group(None, None, tags(&[("karpenter.sh/discovery", "shop")])),
        ]);
        let mut names: Vec<_> = found.iter().filter_map(|own| own.name.clone()).collect();
        names.sort();
        let expected = ["group-of-sg-0123456789abcdef0", "shop-node", "web-node"];
        assert_eq!(names, expected);

        let zones = zones("us-east-1").unwrap();
        let term = CapacityReservationTerm {
            tags: tags(&[("team", "a")]),
            ..CapacityReservationTerm::default()
        };
        let gone = CapacityReservationTerm {
            tags: tags(&[("team", "no-such-team")]),
            ..CapacityReservationTerm::default()
        };
        let found = reservations(&[term, gone], &zones);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].owner_id, ACCOUNT);

        let named = |name: &str| PlacementGroupSelector {
            name: Some(name.to_owned()),
            id: None,
        };
        assert!(has_placement_group(&named("near")));
        assert!(!has_placement_group(&named("does-not-exist")));
    }
}
