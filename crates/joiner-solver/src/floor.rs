//! The lower bound on the price.
//!
//! The packer's bound holds for every packing of the rows it is given, so the rows here carry hard
//! rules only, and of those only what no legal placement can escape: node selection, size, rules
//! between nodes, and the share of a spread that every domain must take.

use std::collections::BTreeMap;

use joiner_model::{Name, NanoDollars, PodIx};
use joiner_pack as pack;

use crate::cells::{Item, Limits, Part};
use crate::classes::{Classes, Demand};
use crate::ground::Ground;
use crate::rows::{RowMaker, Todo};
use crate::select::Choices;
use crate::stock::Stock;
use crate::wish;

/// A price that no legal placement of `placed` can undercut.
pub(crate) fn bound(
    ground: &Ground<'_>,
    choices: &mut Choices,
    placed: &[PodIx],
    values: &Values,
    price: NanoDollars,
) -> NanoDollars {
    let problem = ground.problem;
    let mut groups: BTreeMap<(u32, u16), Vec<PodIx>> = BTreeMap::new();
    for pod in placed {
        let s = problem[*pod].shape.0;
        let level = wish::levels(problem, &problem.shapes[s as usize]);
        groups.entry((s, level)).or_default().push(*pod);
    }
    for pods in groups.values_mut() {
        pods.sort_by(|a, b| problem[*a].name.cmp(&problem[*b].name));
    }
    let classes = Classes::new(ground, choices, &groups);
    let parts: Vec<Part> = (0u32..)
        .take(classes.all.len())
        .flat_map(|c| forced_parts(&classes, c))
        .collect();
    let mut stock = Stock::new(ground, true);
    let mut maker = RowMaker::new((ground, &mut stock), choices, &classes, &parts);
    let todo: Vec<Todo> = (0u32..)
        .zip(&parts)
        .map(|(part, x)| Todo {
            part,
            count: x.count,
            stage: 0,
        })
        .collect();
    let rows = maker.rows(&todo, &|_, _| false, &[]);
    // Values of the packing help only if it was about the same rows.
    let hints: Option<Vec<f64>> = rows
        .sources
        .iter()
        .map(|source| values.of(&classes, &parts[source.first()?.part as usize]))
        .collect();
    let hints = hints.filter(|_| values.within.len() == parts.len());
    let settings = pack::Settings {
        enough: price.get(),
        steps_max: problem.policy.steps_max.0,
        ..pack::Settings::default()
    };
    let low = pack::bound(&rows.problem, hints.as_deref(), &settings);
    let low = match low {
        0 => 0,
        // Some node must be bought, so at least the cheapest that can hold anything at all.
        _ => low.max(cheapest(&rows.problem)),
    };
    NanoDollars::new(low)
}

/// The price of the cheapest kind that can hold an item of some row.
fn cheapest(problem: &pack::Problem) -> u64 {
    let of_row = |row: &pack::Row| {
        let groups = [Some(row.home), row.also].into_iter().flatten();
        let kinds = groups.flat_map(|group| problem.groups[group as usize].kinds.ones());
        let kinds = kinds.map(|kind| &problem.kinds[kind]);
        let fits = |kind: &&pack::Kind| row.need.iter().zip(&kind.room).all(|(q, r)| q <= r);
        kinds.filter(fits).map(|kind| kind.price).min()
    };
    problem.rows.iter().filter_map(of_row).min().unwrap_or(0)
}

/// What a pod of a shape, kept within limits, is worth at the margin of a packing.
#[derive(Debug, Default)]
pub(crate) struct Values {
    within: BTreeMap<(u32, Limits), f64>,
}

impl Values {
    /// Notes a value.
    pub(crate) fn note(&mut self, shape: u32, limits: Limits, value: f64) {
        self.within.insert((shape, limits), value);
    }

    fn of(&self, classes: &Classes, part: &Part) -> Option<f64> {
        let (c, _) = part.item.members.first()?;
        let shape = classes.all[*c as usize].shape;
        self.within.get(&(shape, part.limits.clone())).copied()
    }
}

/// The pods of a class: so many are forced into each domain, the rest are free.
fn forced_parts(classes: &Classes, c: u32) -> Vec<Part> {
    let class = &classes.all[c as usize];
    let item = Item {
        members: vec![(c, 1)],
        only_hosts: None,
    };
    let mut parts = Vec::new();
    let mut free = class.count();
    if let Some((key, values, each)) = forced_share(classes, c) {
        for value in &values {
            let limits = vec![(key.clone(), vec![value.clone()])];
            parts.push(Part {
                item: item.clone(),
                count: each,
                limits,
                pins: Vec::new(),
            });
            free -= each;
        }
    }
    if free > 0 {
        parts.push(Part {
            item,
            count: free,
            limits: Vec::new(),
            pins: Vec::new(),
        });
    }
    parts
}

/// The key, the domains and the number of pods that a spread forces into each of them. Only for a
/// rule that counts this class and nothing else, so that the count of a domain is the class's own.
fn forced_share(classes: &Classes, c: u32) -> Option<(Name, Vec<Name>, u32)> {
    let class = &classes.all[c as usize];
    let mut best: Option<(Name, Vec<Name>, u32)> = None;
    for r in class.owned.iter().filter(|r| class.is_counted(**r)) {
        let rule = &classes.book.rules[*r as usize];
        let Demand::Spread {
            max_skew,
            min_domains,
            ..
        } = rule.demand
        else {
            continue;
        };
        let domains = &classes.book.domains[*r as usize];
        let alone = classes.book.n_counted[*r as usize] == u64::from(class.count());
        if rule.is_host()
            || domains.len() < 2
            || domains.len() < min_domains as usize
            || !alone
            || !classes.book.bound[*r as usize].counts.is_empty()
        {
            continue;
        }
        // With `low` in the emptiest domain the others hold at most low + skew.
        let n = u64::from(class.count());
        let d = domains.len() as u64;
        let spare = u64::from(max_skew) * (d - 1);
        let low = u32::try_from(n.saturating_sub(spare).div_ceil(d)).unwrap_or(0);
        if low > 0 && best.as_ref().is_none_or(|(_, _, each)| low > *each) {
            best = Some((rule.key.clone(), domains.clone(), low));
        }
    }
    best
}
