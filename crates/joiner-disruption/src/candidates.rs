//! Which nodes may go, and which must stay, because of what.

use joiner_model::keys;

use crate::fleet::{Fleet, Member, Policy};
use crate::why::Why;

/// How much a method minds what pods say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Pods that say no keep their node.
    Graceful,
    /// The same, unless the claim has a termination grace period: then they go in the end.
    Eventual,
}

/// Why no method of this class may touch a member.
pub(crate) fn blocked(member: &Member, class: Class) -> Option<Why> {
    let first = [
        (member.in_command, Why::InCommand),
        (!member.initialized, Why::NotInitialized),
        (member.deleting, Why::Deleting),
        (member.nominated, Why::Nominated),
        (member.do_not_disrupt, Why::DoNotDisrupt),
    ];
    if let Some((_, why)) = first.into_iter().find(|(holds, _)| *holds) {
        return Some(why);
    }
    if class == Class::Eventual && member.grace_period {
        return None;
    }
    let pod = member.protected_pod.clone().map(Why::ProtectedPod);
    let budget = || member.blocking_budget.clone().map(Why::PodBudget);
    let several = || member.several_budgets.clone().map(Why::SeveralPodBudgets);
    pod.or_else(budget).or_else(several)
}

/// Why a member is not given back even if it is empty.
pub(crate) fn not_for_emptiness(fleet: &Fleet<'_>, member: &Member) -> Option<Why> {
    let terms = fleet.terms(member);
    if terms.static_replicas.is_some() {
        return Some(Why::Static(terms.title()));
    }
    if terms.consolidate_after_never {
        return Some(Why::ConsolidationOff(terms.title()));
    }
    if member.has_buffer_pods {
        return Some(Why::Buffer);
    }
    (!member.consolidatable).then_some(Why::NotQuiet)
}

/// Why a member that is not empty is not consolidated.
pub(crate) fn not_for_consolidation(fleet: &Fleet<'_>, member: &Member) -> Option<Why> {
    let terms = fleet.terms(member);
    if terms.static_replicas.is_some() {
        return Some(Why::Static(terms.title()));
    }
    let labels = [
        (keys::INSTANCE_TYPE, &member.type_name),
        (keys::CAPACITY_TYPE, &member.capacity_type),
        (keys::ZONE, &member.zone),
    ];
    if let Some((key, _)) = labels.into_iter().find(|(_, value)| value.is_empty()) {
        return Some(Why::MissingLabel(key));
    }
    if member.price.is_none() {
        return Some(Why::UnknownType(member.type_name.clone()));
    }
    if terms.consolidate_after_never {
        return Some(Why::ConsolidationOff(terms.title()));
    }
    if terms.policy == Policy::WhenEmpty {
        return Some(Why::OnlyWhenEmpty(terms.title()));
    }
    (!member.consolidatable).then_some(Why::NotQuiet)
}

/// True when a member is inside the quiet time of its pool: pods are not moved there for money.
pub(crate) fn is_no_destination(fleet: &Fleet<'_>, member: &Member) -> bool {
    let terms = fleet.terms(member);
    let waits = !terms.consolidate_after_never && terms.static_replicas.is_none();
    waits && member.initialized && !member.consolidatable
}

/// What keeps every member, as far as it can be said without asking what would happen: for empty
/// ones from emptiness, for others from consolidation.
pub(crate) fn stays(fleet: &Fleet<'_>) -> Vec<Option<Why>> {
    let of = |member: &Member| {
        blocked(member, Class::Graceful).or_else(|| {
            if member.is_empty() {
                not_for_emptiness(fleet, member)
            } else {
                not_for_consolidation(fleet, member)
            }
        })
    };
    fleet.members.iter().map(of).collect()
}
