//! One node to buy: does it work out, whatever it turns into?

use std::collections::BTreeSet;

use joiner_model::{Launch, MinValuesPolicy, PodIx, Resources, render_amount};

use crate::census::Seats;
use crate::classes::Market;
use crate::demands::{Amounts, Demand, Demands, add, shortage};
use crate::ground::Ground;
use crate::ports;
use crate::violation::{Report, Rule};
use crate::worlds::render_offering;

/// Checks every launch by itself.
pub(crate) fn check<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    seats: &Seats,
    report: &mut Report,
) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut tolerated: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (i, launch) in ground.plan.launches.iter().enumerate() {
        if report.is_full() {
            return;
        }
        let node = &launch.name;
        if !names.insert(node) {
            report.say(Rule::Launch, format_args!("two new nodes are named {node}"));
        }
        let (Some(class), Some((pool_ix, pool))) = (market.of_launch[i], ground.pool_of(launch))
        else {
            let text = format_args!("node {node}: there is no pool {}", launch.pool.0);
            report.say(Rule::Reference, text);
            continue;
        };
        if let Some(why) = &pool.closed {
            let text = format_args!("node {node}: pool {:?} is not in use: {why}", pool.name);
            report.say(Rule::ClosedPool, text);
        }
        let pods = &seats.launches[i];
        if launch.pods.is_empty() {
            report.say(Rule::Launch, format_args!("node {node}: it is for no pod"));
        }
        for pod in pods {
            let demand = ground.demand(*pod);
            if tolerated.contains(&(pool_ix, demand.tolerations)) {
                continue;
            }
            if let Some(taint) = ground.untolerated(demand, &pool.taints) {
                let name = ground.pod_name(*pod);
                let text = format_args!("node {node}: pod {name} does not tolerate {taint}");
                report.say(Rule::Taint, text);
            } else {
                tolerated.insert((pool_ix, demand.tolerations));
            }
        }
        for (rule, text) in &market.classes[class].faults {
            report.say(*rule, format_args!("node {node}: {text}"));
        }
        min_values(ground, market, launch, class, report);
        price(ground, market, launch, class, report);
        selection(ground, market, (launch, class), pods, report);
        fit(ground, market, (launch, class), pods, report);
        ports::check(
            ground,
            node,
            pods,
            &[],
            &market.classes[class].daemons,
            report,
        );
    }
}

fn min_values(
    ground: &Ground<'_>,
    market: &Market<'_>,
    launch: &Launch,
    class: usize,
    report: &mut Report,
) {
    let node = &launch.name;
    let strict = ground.problem.policy.min_values == MinValuesPolicy::Strict;
    if launch.min_values_relaxed && strict {
        let text = format_args!("node {node}: minValues are lowered, which the policy forbids");
        report.say(Rule::MinValues, text);
    }
    for few in &market.classes[class].few_values {
        if few.by_pool && launch.min_values_relaxed {
            continue;
        }
        let who = if few.by_pool { "its pool" } else { "it" };
        report.say(
            Rule::MinValues,
            format_args!(
                "node {node}: {who} asks for {} values of {}, the listed types have {}",
                few.needed, few.key, few.found
            ),
        );
    }
}

fn price(
    ground: &Ground<'_>,
    market: &Market<'_>,
    launch: &Launch,
    class: usize,
    report: &mut Report,
) {
    let class = &market.classes[class];
    let Some(cheapest) = class.cheapest else {
        return;
    };
    let (ty, offering) = launch.offering;
    let worlds = &market.views[class.pool].worlds;
    let mut left = class.left.iter_in(worlds.range(ty));
    let found = left.find(|world| worlds.list[*world].offering == offering);
    let (node, what) = (&launch.name, render_offering(ground, ty, offering));
    let Some(found) = found else {
        let text = format_args!("node {node}: its offering {what} is not one of those left");
        report.say(Rule::Price, text);
        return;
    };
    let true_price = worlds.list[found].price;
    if true_price != launch.price {
        let said = launch.price;
        let text = format_args!("node {node}: {what} costs {true_price} an hour, not {said}");
        report.say(Rule::Price, text);
    }
    if true_price != cheapest {
        let text = format_args!("node {node}: {what} is not the cheapest left, at {cheapest}");
        report.say(Rule::Price, text);
    }
}

fn selection<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    (launch, class): (&Launch, usize),
    pods: &[PodIx],
    report: &mut Report,
) {
    for pod in pods {
        let demand = ground.demand(*pod);
        let Some(world) = market.unserved(ground, class, demand) else {
            continue;
        };
        let pool = market.classes[class].pool;
        let what = market.views[pool].worlds.list[world].render(ground);
        let (node, name) = (&launch.name, ground.pod_name(*pod));
        let blind = Demand {
            volumes: Demands::NO_VOLUMES,
            ..demand
        };
        if market.unserved(ground, class, blind).is_some() {
            let text = format_args!("node {node}: pod {name} does not select {what}");
            report.say(Rule::Selection, text);
        } else {
            let text = format_args!("node {node}: pod {name} cannot reach its volumes on {what}");
            report.say(Rule::Volumes, text);
        }
    }
}

fn fit(
    ground: &Ground<'_>,
    market: &Market<'_>,
    (launch, class): (&Launch, usize),
    pods: &[PodIx],
    report: &mut Report,
) {
    let node = &launch.name;
    let mut need: Amounts = vec![0; ground.demands.resources.len()];
    for pod in pods {
        add(
            &mut need,
            ground.demands.amounts(ground.demand(*pod).amounts),
        );
    }
    if !same_requests(ground, &need, &launch.requests) {
        let text = format_args!("node {node}: its requests are not the sum of its pods'");
        report.say(Rule::Requests, text);
    }
    let class = &market.classes[class];
    let Some(short) = shortage(&need, &class.floor) else {
        return;
    };
    let resource = ground.demands.resources[short];
    let view = &market.views[class.pool];
    let worst = class.contexts.iter().find_map(|context| {
        let mut left = class.left.iter_in(0..view.worlds.list.len());
        left.find(|world| view.room(*context).of(*world)[short] < need[short])
    });
    let what = worst.map_or_else(String::new, |w| view.worlds.list[w].render(ground));
    let needed = u64::try_from(need[short]).unwrap_or(u64::MAX);
    report.say(
        Rule::Fit,
        format_args!(
            "node {node}: {what} cannot hold its pods: they need {} of {resource}, and besides \
             daemons there is {}",
            render_amount(resource, needed),
            render_amount(resource, u64::try_from(class.floor[short]).unwrap_or(0)),
        ),
    );
}

/// True when the recorded requests are those that were added up.
fn same_requests(ground: &Ground<'_>, need: &Amounts, said: &Resources) -> bool {
    let known = |name| ground.demands.resources.contains(&name);
    said.iter().all(|(name, amount)| amount == 0 || known(name))
        && ground.demands.amounts_of(said) == *need
}
