//! Slots of the model: kinds that no other kind makes superfluous, and bins that can hold
//! something. Thousands of offerings become the hundred or so that matter.

use std::cmp::Reverse;
use std::collections::HashMap;

use fixedbitset::FixedBitSet;

use crate::model::{FILLER, HOME, Label, Model, NO, Tokens};
use crate::problem::Problem;

/// Where each label may be, for one slot: `home` bits, then `home or also` bits.
type Words = Box<[u64]>;

#[derive(Default)]
struct Sigs {
    ids: HashMap<Words, u32>,
    words: Vec<Words>,
}

impl Sigs {
    fn id(&mut self, words: &[u64]) -> u32 {
        if let Some(&id) = self.ids.get(words) {
            return id;
        }
        let id = self.words.len() as u32;
        self.ids.insert(words.into(), id);
        self.words.push(words.into());
        id
    }
}

struct Candidate {
    source: u32,
    sig: u32,
    room: Box<[u64]>,
    price: u64,
    options: u32,
    spend: Vec<(u32, u64)>,
}

/// Adds kinds and bins to a model that has its classes.
pub(crate) fn add_slots(
    model: &mut Model,
    problem: &Problem,
    dims: &[usize],
    labels: &[Label],
    tokens: &Tokens,
) {
    let mut sigs = Sigs::default();
    let demand = Demand::new(model);
    let kinds = kind_candidates(problem, dims, labels, &demand, &mut sigs);
    let bins = bin_candidates(model, problem, dims, (labels, tokens), (&demand, &mut sigs));
    let kinds = undominated(kinds, &sigs.words);
    model.n_kinds = kinds.len();
    model.n_bins = bins.len();
    let used = std::mem::take(&mut model.bin_caps);
    model.bin_caps = bins
        .iter()
        .map(|bin| used.get(bin.source as usize).cloned().unwrap_or_default())
        .collect();
    let mut renamed: HashMap<u32, u32> = HashMap::new();
    for slot in kinds.into_iter().chain(bins) {
        let next = renamed.len() as u32;
        let sig = *renamed.entry(slot.sig).or_insert(next);
        if sig == next {
            let words = &sigs.words[slot.sig as usize];
            let half = words.len() / 2;
            model.allowed.extend((0..labels.len()).map(|l| {
                match (bit(&words[..half], l), bit(&words[half..], l)) {
                    (true, _) => HOME,
                    (false, true) => FILLER,
                    (false, false) => NO,
                }
            }));
        }
        model.room.extend_from_slice(&slot.room);
        model.sig.push(sig);
        model.price.push(slot.price);
        model.options.push(slot.options);
        model.source.push(slot.source);
        model.spend.push(slot.spend);
    }
}

fn bit(words: &[u64], ix: usize) -> bool {
    words[ix / 64] >> (ix % 64) & 1 == 1
}

/// Per label: what all its classes need together, and the least that one item needs.
struct Demand {
    n_dims: usize,
    total: Vec<u64>,
    least: Vec<u64>,
    /// The greatest common divisor of all needs.
    grain: Vec<u64>,
}

impl Demand {
    fn new(model: &Model) -> Self {
        let n_dims = model.n_dims;
        let mut total = vec![0_u64; model.n_labels * n_dims];
        let mut least = vec![u64::MAX; model.n_labels * n_dims];
        let mut grain = vec![0; model.n_labels * n_dims];
        for class in (0..model.n_classes).filter(|&c| model.limit[c] > 0) {
            let at = model.label[class] as usize * n_dims;
            for (dim, &need) in model.need(class).iter().enumerate() {
                let all = need.saturating_mul(model.count[class]);
                total[at + dim] = total[at + dim].saturating_add(all);
                least[at + dim] = least[at + dim].min(need);
                grain[at + dim] = common_divisor(grain[at + dim], need);
            }
        }
        Self {
            n_dims,
            total,
            least,
            grain,
        }
    }

    /// Whether some item of the label might fit, judged by the least needs.
    fn some_fit(&self, label: usize, room: &[u64]) -> bool {
        self.least[label * self.n_dims..]
            .iter()
            .zip(room)
            .all(|(need, room)| need <= room)
    }

    /// The labels of one word of bits of which some item might fit.
    fn kept(&self, word: u64, at: usize, room: &[u64]) -> u64 {
        let mut kept = word;
        let mut rest = word;
        while rest != 0 {
            let label = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if !self.some_fit(at * 64 + label, room) {
                kept &= !(1 << label);
            }
        }
        kept
    }

    /// What the allowed labels could use at most, and in multiples of what they use it.
    fn clip(&self, words: &[u64]) -> Vec<(u64, u64)> {
        let half = words.len() / 2;
        let n_labels = self.total.len() / self.n_dims.max(1);
        let mut clip = vec![(0_u64, 0_u64); self.n_dims];
        for label in (0..n_labels).filter(|&l| bit(&words[half..], l)) {
            for (dim, clip) in clip.iter_mut().enumerate() {
                let at = label * self.n_dims + dim;
                clip.0 = clip.0.saturating_add(self.total[at]);
                clip.1 = common_divisor(clip.1, self.grain[at]);
            }
        }
        clip
    }
}

/// Limits a room to what can be used of it.
fn clip_room(room: &mut [u64], clip: &[(u64, u64)]) {
    for (room, &(most, grain)) in room.iter_mut().zip(clip) {
        *room = (*room).min(most);
        if grain > 1 {
            *room -= *room % grain;
        }
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Per item of `sets`, one bit per label.
fn transpose(sets: &[(usize, &FixedBitSet)], n_items: usize, half: usize) -> Vec<u64> {
    let mut words = vec![0_u64; n_items * half];
    for &(label, set) in sets {
        for item in set.ones().filter(|&item| item < n_items) {
            words[item * half + label / 64] |= 1 << (label % 64);
        }
    }
    words
}

fn kind_candidates(
    problem: &Problem,
    dims: &[usize],
    labels: &[Label],
    demand: &Demand,
    sigs: &mut Sigs,
) -> Vec<Candidate> {
    let n = problem.kinds.len();
    let half = labels.len().div_ceil(64);
    let group = |g: u32| problem.groups.get(g as usize).map(|g| &g.kinds);
    let homes: Vec<_> = labels
        .iter()
        .enumerate()
        .filter_map(|(l, label)| Some((l, group(label.home)?)))
        .collect();
    let alsos: Vec<_> = labels
        .iter()
        .enumerate()
        .filter_map(|(l, label)| Some((l, group(label.also)?)))
        .collect();
    let home = transpose(&homes, n, half);
    let also = transpose(&alsos, n, half);
    let mut clips: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    let mut words = vec![0; 2 * half];
    let mut out = Vec::new();
    for (ix, kind) in problem.kinds.iter().enumerate() {
        let (home, also) = (&home[ix * half..][..half], &also[ix * half..][..half]);
        let mut room: Box<[u64]> = dims
            .iter()
            .map(|&d| kind.room.get(d).copied().unwrap_or(0))
            .collect();
        let mut some_home = false;
        for w in 0..half {
            words[w] = demand.kept(home[w], w, &room);
            words[half + w] = words[w] | demand.kept(also[w], w, &room);
            some_home |= words[w] != 0;
        }
        if !some_home {
            continue;
        }
        let sig = sigs.id(&words);
        clip_room(
            &mut room,
            clips.entry(sig).or_insert_with(|| demand.clip(&words)),
        );
        let spend = summed(&kind.spend, problem.budgets.len());
        if spend.iter().any(|&(b, s)| s > problem.budgets[b as usize]) {
            continue;
        }
        let (price, options) = (kind.price, kind.options);
        out.push(Candidate {
            source: ix as u32,
            sig,
            room,
            price,
            options,
            spend,
        });
    }
    out
}

/// Spend by budget, each budget once.
fn summed(spend: &[(u32, u64)], n_budgets: usize) -> Vec<(u32, u64)> {
    let mut sums: Vec<(u32, u64)> = spend
        .iter()
        .copied()
        .filter(|&(b, s)| s > 0 && (b as usize) < n_budgets)
        .collect();
    sums.sort_unstable();
    sums.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        if same {
            sum.1 = sum.1.saturating_add(next.1);
        }
        same
    });
    sums
}

fn bin_candidates(
    model: &Model,
    problem: &Problem,
    dims: &[usize],
    (labels, tokens): (&[Label], &Tokens),
    (demand, sigs): (&Demand, &mut Sigs),
) -> Vec<Candidate> {
    let n = problem.bins.len();
    let half = labels.len().div_ceil(64);
    let group = |g: u32| problem.groups.get(g as usize).map(|g| &g.bins);
    let sets = bin_sets(labels, &group);
    let allowed = transpose(&sets, n, half);
    let mut clips: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    let mut words = vec![0; 2 * half];
    let mut out = Vec::new();
    for (ix, bin) in problem.bins.iter().enumerate() {
        let mut room: Box<[u64]> = dims
            .iter()
            .map(|&d| bin.room.get(d).copied().unwrap_or(0))
            .collect();
        let (emits, repels) = (tokens.of(&bin.emits), tokens.of(&bin.repels));
        let clash = |a: &[u32], b: &[u32]| a.iter().any(|t| b.contains(t));
        words.fill(0);
        for (l, label) in labels.iter().enumerate() {
            if bit(&allowed[ix * half..][..half], l)
                && demand.some_fit(l, &room)
                && !clash(&emits, &label.repels)
                && !clash(&repels, &label.emits)
            {
                words[l / 64] |= 1 << (l % 64);
                words[half + l / 64] |= 1 << (l % 64);
            }
        }
        if words.iter().all(|&w| w == 0) {
            continue;
        }
        let sig = sigs.id(&words);
        clip_room(
            &mut room,
            clips.entry(sig).or_insert_with(|| demand.clip(&words)),
        );
        out.push(Candidate {
            source: ix as u32,
            sig,
            room,
            price: 0,
            options: 0,
            spend: vec![],
        });
    }
    let used = |c: &Candidate| model.bin_caps.get(c.source as usize);
    out.sort_by(|a, b| {
        (
            Reverse(&a.room),
            &sigs.words[a.sig as usize],
            used(a),
            a.source,
        )
            .cmp(&(
                Reverse(&b.room),
                &sigs.words[b.sig as usize],
                used(b),
                b.source,
            ))
    });
    out
}

/// Per label the bins of its home and of its further group, whichever exist.
fn bin_sets<'a>(
    labels: &[Label],
    group: &impl Fn(u32) -> Option<&'a FixedBitSet>,
) -> Vec<(usize, &'a FixedBitSet)> {
    let mut sets = Vec::new();
    for (l, label) in labels.iter().enumerate() {
        sets.extend(group(label.home).map(|set| (l, set)));
        sets.extend(group(label.also).map(|set| (l, set)));
    }
    sets
}

/// With more signatures than this only kinds of the same one are compared.
const SIGNATURES_MAX: usize = 6_000;

/// Drops every kind that another one makes superfluous: allowed for no fewer labels, no less
/// room, no higher price, no more spend. Sorts by price, then by content.
fn undominated(mut kinds: Vec<Candidate>, words: &[Words]) -> Vec<Candidate> {
    kinds.sort_unstable_by(|a, b| {
        (a.price, Reverse(a.options), Reverse(&a.room), &a.spend)
            .cmp(&(b.price, Reverse(b.options), Reverse(&b.room), &b.spend))
            .then_with(|| words[b.sig as usize].cmp(&words[a.sig as usize]))
            .then(a.source.cmp(&b.source))
    });
    let mut supersets: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut kept_of: Vec<Vec<u32>> = vec![Vec::new(); words.len()];
    let mut kept: Vec<Candidate> = Vec::new();
    for kind in kinds {
        let above = supersets.entry(kind.sig).or_insert_with(|| {
            if words.len() > SIGNATURES_MAX {
                return vec![kind.sig];
            }
            let mine = &words[kind.sig as usize];
            (0..words.len() as u32)
                .filter(|&s| {
                    mine.iter()
                        .zip(&words[s as usize])
                        .all(|(a, b)| a & !b == 0)
                })
                .collect()
        });
        let dominated = above
            .iter()
            .flat_map(|&s| &kept_of[s as usize])
            .any(|&other| {
                let other = &kept[other as usize];
                other.room.iter().zip(&kind.room).all(|(o, k)| o >= k)
                    && spends_no_more(&other.spend, &kind.spend)
            });
        if !dominated {
            kept_of[kind.sig as usize].push(kept.len() as u32);
            kept.push(kind);
        }
    }
    kept
}

fn spends_no_more(a: &[(u32, u64)], b: &[(u32, u64)]) -> bool {
    a.iter().all(|&(budget, spend)| {
        b.iter()
            .any(|&(other, most)| other == budget && spend <= most)
    })
}
