//! What dual prices are found for: classes and slots, those that are alike taken together.

use std::collections::BTreeMap;

use crate::model::{Model, NO};

/// Items that are so similar that they share their value.
pub(crate) struct Points {
    pub(crate) need: Vec<f64>,
    pub(crate) count: Vec<f64>,
    label: Vec<u32>,
    pub(crate) caps: Vec<Box<[u32]>>,
}

/// Slots that are so similar that they share their weights.
pub(crate) struct Slots {
    pub(crate) room: Vec<f64>,
    pub(crate) sig: Vec<u32>,
    /// How many there are of a bin; zero for kinds.
    pub(crate) copies: Vec<f64>,
    /// Per real slot its place here.
    pub(crate) place: Vec<u32>,
}

const POINTS_MAX: usize = 600;
const BINS_MAX: usize = 300;

impl Points {
    /// The slots that can hold an item of the point.
    pub(crate) fn fitting(&self, model: &Model, slots: &Slots, point: usize) -> Vec<u32> {
        let nd = model.n_dims;
        let need = &self.need[point * nd..][..nd];
        let label = self.label[point] as usize;
        (0..slots.sig.len())
            .filter(|&slot| {
                let sig = slots.sig[slot] as usize;
                let room = &slots.room[slot * nd..][..nd];
                model.allowed[sig * model.n_labels + label] != NO
                    && need.iter().zip(room).all(|(n, r)| n <= r)
            })
            .map(|slot| slot as u32)
            .collect()
    }
}

/// A place on a logarithmic scale with four marks per doubling.
fn mark(x: u64) -> u32 {
    if x < 4 {
        return x as u32;
    }
    let top = 63 - x.leading_zeros();
    top * 4 + ((x >> (top - 2)) & 3) as u32
}

/// The classes of a model as points.
pub(crate) fn points(model: &Model) -> Points {
    let nd = model.n_dims;
    let mut key_of: BTreeMap<(u32, &[u32], Vec<u32>), usize> = BTreeMap::new();
    let mut points = Points {
        need: Vec::new(),
        count: Vec::new(),
        label: Vec::new(),
        caps: Vec::new(),
    };
    for class in 0..model.n_classes {
        let n = model.count[class] as f64;
        let next = points.count.len();
        let at = if model.n_classes <= POINTS_MAX {
            next
        } else {
            let marks = model.need(class).iter().map(|&x| mark(x)).collect();
            *key_of
                .entry((model.label[class], &model.caps[class], marks))
                .or_insert(next)
        };
        if at == next {
            points.need.resize((next + 1) * nd, 0.0);
            points.count.push(0.0);
            points.label.push(model.label[class]);
            points.caps.push(model.caps[class].clone());
        }
        points.count[at] += n;
        for (sum, need) in points.need[at * nd..][..nd]
            .iter_mut()
            .zip(model.need_f(class))
        {
            *sum += n * need;
        }
    }
    for (ix, need) in points.need.iter_mut().enumerate() {
        *need /= points.count[ix / nd];
    }
    points
}

/// The slots of a model, bins taken together where there are many.
pub(crate) fn slots(model: &Model) -> Slots {
    let nd = model.n_dims;
    let n_kinds = model.n_kinds;
    let mut slots = Slots {
        room: model.room_f[..n_kinds * nd].to_vec(),
        sig: model.sig[..n_kinds].to_vec(),
        copies: vec![0.0; n_kinds],
        place: (0..n_kinds as u32).collect(),
    };
    let mut key_of: BTreeMap<(u32, Vec<u32>), usize> = BTreeMap::new();
    for slot in n_kinds..model.n_slots() {
        let next = slots.sig.len();
        let at = if model.n_bins <= BINS_MAX {
            next
        } else {
            let marks = model.room(slot).iter().map(|&x| mark(x)).collect();
            *key_of.entry((model.sig[slot], marks)).or_insert(next)
        };
        if at == next {
            slots.room.resize((next + 1) * nd, 0.0);
            slots.sig.push(model.sig[slot]);
            slots.copies.push(0.0);
        }
        slots.copies[at] += 1.0;
        slots.place.push(at as u32);
        for (sum, room) in slots.room[at * nd..][..nd]
            .iter_mut()
            .zip(model.room_f(slot))
        {
            *sum += room;
        }
    }
    for (slot, copies) in slots.copies.iter().enumerate().skip(n_kinds) {
        for room in &mut slots.room[slot * nd..][..nd] {
            *room /= copies;
        }
    }
    slots
}
