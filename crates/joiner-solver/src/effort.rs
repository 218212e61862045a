//! How many steps a problem gets in all, and what packings are wanted for at the moment.
//!
//! Attempts that only have to know who fits are packed plainly ([`pack::Aim::Fit`]); the one that stays
//! is packed for price. All of them draw on one number of steps, so that many attempts cannot add up.

use joiner_model::Problem;
use joiner_pack as pack;

/// Steps of every problem, with and without limits, for each pod, and more for each beyond [`FEW`].
const STEPS_LIMITED: u64 = 120_000_000;
const STEPS: u64 = 150_000_000;
const STEPS_A_POD: u64 = 1_000_000;
const STEPS_MORE: u64 = 9_000_000;
const FEW: usize = 100;
const MORE_MAX: u64 = 4_000_000_000;
/// Where limits make several rounds, a packing for price leaves one part in so many to the others.
const OTHERS: u64 = 3;
/// What a packing for price gets even when no steps are left.
const STEPS_MIN: u64 = 5_000_000;
/// The most that a packing takes to know who fits.
const STEPS_FIT: u64 = 30_000_000;
/// With more pods than this, and without limits, the first attempt is packed for price at once: most
/// often it is the last.
const MANY: usize = 600;

/// Steps that are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// What packings are wanted for.
    pub(crate) aim: pack::Aim,
    left: u64,
    /// All that packings took, also beyond what was left.
    pub(crate) spent: u64,
    /// A packing for price leaves one part in so many to others.
    others: u64,
    /// What tries leave to the packing for price.
    kept: u64,
    /// The most for one packing.
    each_max: u64,
}

impl Effort {
    /// The steps for a problem, for packings with the aim of a first attempt.
    pub(crate) fn new(problem: &Problem) -> Self {
        let n_pods = problem.pending().count();
        let each = (n_pods as u64).saturating_mul(STEPS_A_POD);
        let many = (n_pods.saturating_sub(FEW) as u64).saturating_mul(STEPS_MORE);
        let more = each.saturating_add(many);
        let is_limited = problem.pools.iter().any(|pool| pool.limits.is_some());
        let first = if is_limited { STEPS_LIMITED } else { STEPS };
        let all = first.saturating_add(more.min(MORE_MAX));
        Self {
            aim: match n_pods > MANY && !is_limited {
                true => pack::Aim::Price,
                false => pack::Aim::Fit,
            },
            left: all,
            spent: 0,
            kept: all / 2,
            others: if is_limited { OTHERS } else { u64::MAX },
            each_max: problem.policy.steps_max.0,
        }
    }

    /// Spends steps.
    pub(crate) fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        self.spent += steps;
    }

    /// From now on tries may take all that is left.
    pub(crate) fn keep_nothing(&mut self) {
        self.kept = STEPS_MIN;
    }

    /// True when what is left is needed to pack for price.
    pub(crate) fn is_over(&self) -> bool {
        self.left < self.kept
    }

    /// Settings for the next packing.
    pub(crate) fn settings(&self) -> pack::Settings {
        pack::Settings {
            aim: self.aim,
            steps_max: match self.aim {
                pack::Aim::Fit => STEPS_FIT,
                pack::Aim::Price => (self.left - self.left / self.others)
                    .max(STEPS_MIN)
                    .min(self.each_max),
            },
            ..pack::Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rounds::solved;

    /// Small clusters that took seconds when every attempt was packed for price.
    const HARD: [u64; 6] = [13, 27, 30, 36, 49, 58];
    /// A little more than what a small problem gets: the last packings may go over.
    const SPENT_MAX: u64 = 300_000_000;

    #[test]
    fn many_attempts_do_not_add_up() {
        for seed in HARD {
            let problem = joiner_testkit::small(seed).problem();
            let (_, effort) = solved(&problem);
            assert!(effort.spent <= SPENT_MAX, "{seed}: {} steps", effort.spent);
        }
    }
}
