//! Terms of subnets, security groups and placement groups: what to ask for, and what the answers come to.
//!
//! Terms are alternatives, and the fields inside of one all apply; an id stands for itself.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use joiner_api::types::{
    Ec2NodeClassSpec, PlacementGroupSelector, SecurityGroup, SecurityGroupTerm, Subnet, SubnetTerm,
};
use joiner_catalog::{PlacementGroup, PlacementStrategy};

use crate::answer;
use crate::request::{Filter, Query};

/// Answers a page.
const PAGE: i32 = 500;

/// The questions about subnets: one for all ids, one for each term of tags.
#[must_use]
pub fn subnet_queries(terms: &[SubnetTerm]) -> Vec<Query> {
    let ids = terms.iter().filter_map(|term| term.id.clone());
    let tags = terms
        .iter()
        .filter(|term| term.id.is_none())
        .map(|term| term.tags.as_ref());
    queries([("subnet-id", ids.collect())], tags)
}

/// The questions about security groups: one for all ids, one for all names, one for each term of tags.
#[must_use]
pub fn security_group_queries(terms: &[SecurityGroupTerm]) -> Vec<Query> {
    let ids = terms.iter().filter_map(|term| term.id.clone());
    let without_id = || terms.iter().filter(|term| term.id.is_none());
    let names = without_id().filter_map(|term| term.name.clone());
    let tags = without_id().filter(|term| term.name.is_none());
    let tags = tags.map(|term| term.tags.as_ref());
    queries(
        [("group-id", ids.collect()), ("group-name", names.collect())],
        tags,
    )
}

fn queries<'t, const N: usize>(
    listed: [(&str, Vec<String>); N],
    tags: impl Iterator<Item = Option<&'t BTreeMap<String, String>>>,
) -> Vec<Query> {
    let listed = listed.into_iter().filter(|(_, values)| !values.is_empty());
    let listed = listed.map(|(name, values)| vec![Filter::new(name, values)]);
    let tagged = tags
        .flatten()
        .map(tag_filters)
        .filter(|filters| !filters.is_empty());
    let query = |filters| Query {
        filters,
        max_results: Some(PAGE),
        ..Query::default()
    };
    listed.chain(tagged).map(query).collect()
}

pub(crate) fn tag_filters(tags: &BTreeMap<String, String>) -> Vec<Filter> {
    tags.iter()
        .map(|(key, value)| Filter::tag(key, value))
        .collect()
}

/// The subnets of a class, most free addresses first.
#[must_use]
pub fn subnets(found: &[answer::Subnet]) -> Vec<Subnet> {
    let mut found: Vec<&answer::Subnet> = once_each(found, |subnet| &subnet.subnet_id);
    found.sort_by_key(|subnet| {
        (
            Reverse(subnet.available_ip_address_count),
            &subnet.subnet_id,
        )
    });
    let subnet = |subnet: &answer::Subnet| Subnet {
        id: subnet.subnet_id.clone(),
        zone: subnet.availability_zone.clone(),
        zone_id: Some(subnet.availability_zone_id.clone()).filter(|id| !id.is_empty()),
    };
    found.into_iter().map(subnet).collect()
}

/// Free addresses by subnet.
#[must_use]
pub fn free_addresses(found: &[answer::Subnet]) -> BTreeMap<String, u32> {
    let free =
        |subnet: &answer::Subnet| (subnet.subnet_id.clone(), subnet.available_ip_address_count);
    found.iter().map(free).collect()
}

/// The security groups of a class, by id.
#[must_use]
pub fn security_groups(found: &[answer::SecurityGroup]) -> Vec<SecurityGroup> {
    let group = |group: &answer::SecurityGroup| SecurityGroup {
        id: group.group_id.clone(),
        name: Some(group.group_name.clone()),
    };
    once_each(found, |group| &group.group_id)
        .into_iter()
        .map(group)
        .collect()
}

/// Each thing once, by its id.
fn once_each<'f, Found>(
    found: &'f [Found],
    id: impl Fn(&'f Found) -> &'f String,
) -> Vec<&'f Found> {
    let by_id: BTreeMap<&String, &Found> = found.iter().map(|thing| (id(thing), thing)).collect();
    by_id.into_values().collect()
}

/// The question about a class's placement group, if it selects one.
#[must_use]
pub fn placement_group_query(spec: &Ec2NodeClassSpec) -> Option<Query> {
    let PlacementGroupSelector { name, id } = spec.placement_group_selector.clone()?;
    Some(Query {
        filters: vec![Filter::new("state", ["available"])],
        group_ids: id.into_iter().collect(),
        group_names: name.into_iter().collect(),
        ..Query::default()
    })
}

/// The placement group of a class. One with a strategy that we do not know is none.
#[must_use]
pub fn placement_group(found: &[answer::PlacementGroup]) -> Option<PlacementGroup> {
    let mut available = found.iter().filter(|group| group.state == "available");
    let first = available.next()?;
    let strategy = match first.strategy.as_str() {
        "cluster" => PlacementStrategy::Cluster,
        "partition" => PlacementStrategy::Partition(first.partition_count.unwrap_or_default()),
        "spread" => PlacementStrategy::Spread,
        _ => return None,
    };
    Some(PlacementGroup {
        id: first.group_id.as_str().into(),
        strategy,
    })
}
