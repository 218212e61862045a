//! Packings of one problem that are known already: other hints often come to the same items.

use joiner_pack::Aim;

use crate::cells::Part;
use crate::classes::Class;
use crate::ledger::Ledger;

/// Most packings that are kept.
const KEPT_MAX: usize = 256;

/// All that a packing depends on besides the problem.
#[derive(PartialEq)]
struct Key {
    aim: Aim,
    /// Shape, level, number of pods, and whether they come last.
    classes: Vec<(u32, u16, u32, bool)>,
    parts: Vec<Part>,
}

/// Packings by what they depend on.
#[derive(Default)]
pub(crate) struct Memo(Vec<(Key, Ledger)>);

impl Memo {
    /// The packing of these items, if it is known.
    pub(crate) fn get(&self, aim: Aim, classes: &[Class], parts: &[Part]) -> Option<&Ledger> {
        let key = Key::new(aim, classes, parts);
        let known = self.0.iter().find(|(known, _)| *known == key);
        known.map(|(_, ledger)| ledger)
    }

    /// Keeps a packing, if there is room.
    pub(crate) fn keep(&mut self, aim: Aim, classes: &[Class], parts: &[Part], ledger: &Ledger) {
        if self.0.len() < KEPT_MAX {
            let key = Key::new(aim, classes, parts);
            self.0.push((key, ledger.clone()));
        }
    }
}

impl Key {
    fn new(aim: Aim, classes: &[Class], parts: &[Part]) -> Self {
        let class = |c: &Class| (c.shape, c.level, c.count(), c.comes_last);
        Self {
            aim,
            classes: classes.iter().map(class).collect(),
            parts: parts.to_vec(),
        }
    }
}
