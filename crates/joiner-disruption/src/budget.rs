//! How many nodes of a pool may be disrupted at this moment.
//!
//! A budget that cannot be read allows nothing: a typo must not empty a cluster.

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use jiff::{SignedDuration, Timestamp};

use crate::command::Reason;
use crate::fleet::{Fleet, Member, PoolTerms};
use crate::why::Why;

/// What a pool without a budget in force allows: upstream's largest number.
pub const UNLIMITED: u32 = i32::MAX.unsigned_abs();

/// One budget of a pool, as its owner wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// A number of nodes, or a percentage such as `10%`.
    pub nodes: String,
    /// What it is about; `None` is everything, an empty list is nothing.
    pub reasons: Option<Vec<Reason>>,
    /// When it is in force, as a cron expression in UTC; `None` is always.
    pub schedule: Option<String>,
    /// For how long after each firing.
    pub duration: Option<SignedDuration>,
}

impl Budget {
    /// How many of `n_nodes` it lets go at `now`: `None` while it is not in force.
    ///
    /// # Errors
    /// What cannot be read, in words; nothing is allowed then.
    pub fn allows(&self, n_nodes: u32, now: Timestamp) -> Result<Option<u32>, String> {
        if !self.in_force(now)? {
            return Ok(None);
        }
        let unreadable = |_| format!("budget of {:?} nodes cannot be read", self.nodes);
        let number = |text: &str| text.parse::<u32>().map_err(unreadable);
        let Some(percent) = self.nodes.strip_suffix('%') else {
            return number(&self.nodes).map(Some);
        };
        let share = (u64::from(n_nodes) * u64::from(number(percent)?)).div_ceil(100);
        Ok(Some(u32::try_from(share).unwrap_or(UNLIMITED)))
    }

    /// True when it has something to say about `reason`.
    #[must_use]
    pub fn is_about(&self, reason: Reason) -> bool {
        self.reasons
            .as_ref()
            .is_none_or(|all| all.contains(&reason))
    }

    fn in_force(&self, now: Timestamp) -> Result<bool, String> {
        match (&self.schedule, self.duration) {
            (None, None) => Ok(true),
            (Some(schedule), Some(duration)) => {
                let since = (now.checked_sub(duration))
                    .map_err(|error| format!("budget lasts too long: {error}"))?;
                let next = Schedule::parse(schedule)?.next_after(since);
                Ok(next.is_some_and(|next| next <= now))
            }
            _ => Err("budget needs both a schedule and a duration".to_owned()),
        }
    }
}

/// How many of `n_nodes` may go for `reason`: the least of the budgets in force.
#[must_use]
pub fn allowed(budgets: &[Budget], reason: Reason, n_nodes: u32, now: Timestamp) -> u32 {
    let about = budgets.iter().filter(|budget| budget.is_about(reason));
    about
        .filter_map(|budget| budget.allows(n_nodes, now).unwrap_or(Some(0)))
        .min()
        .unwrap_or(UNLIMITED)
}

/// What is wrong with budgets, for the log.
#[must_use]
pub fn complaints(budgets: &[Budget], now: Timestamp) -> Vec<String> {
    let errors = budgets
        .iter()
        .filter_map(|budget| budget.allows(0, now).err());
    errors.collect()
}

/// A parsed schedule.
enum Schedule {
    /// By the calendar.
    Calendar(Box<Crontab>),
    /// Again and again.
    Every(SignedDuration),
}

impl Schedule {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |error: String| format!("schedule {text:?} cannot be read: {error}");
        if let Some(interval) = text.trim().strip_prefix("@every ") {
            let interval: SignedDuration = (interval.trim())
                .parse()
                .map_err(|error: jiff::Error| wrong(error.to_string()))?;
            return Ok(Self::Every(interval));
        }
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if fields.split_whitespace().count() != 5 {
            return Err(wrong("it does not have five fields".to_owned()));
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        // Upstream takes a question mark for an asterisk.
        cronexpr::parse_crontab_with(&fields.replace('?', "*"), options)
            .map(|crontab| Self::Calendar(Box::new(crontab)))
            .map_err(|error| wrong(error.to_string()))
    }

    /// The first firing after `time`; none for a day that never comes.
    fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Calendar(crontab) => {
                let next = crontab.find_next(MakeTimestamp(time)).ok()?;
                Some(next.timestamp())
            }
            Self::Every(interval) => time.checked_add(*interval).ok(),
        }
    }
}

/// What is left of all budgets of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct Allowances {
    pools: Vec<[Share; 3]>,
    /// Nodes of each pool that count against its budgets.
    consuming: Vec<u32>,
    /// How many more nodes each may lose; node groups keep a minimum, whatever the reason.
    spare: Vec<u32>,
}

/// One pool, one reason.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// What the budgets say, before anything is subtracted.
    raw: u32,
    /// What is left of it.
    left: u32,
}

impl Allowances {
    /// Budgets of all pools, less the nodes that are being disrupted or out of order.
    pub(crate) fn new(fleet: &Fleet<'_>) -> Self {
        let mut counted = vec![0u32; fleet.pools.len()];
        let mut consuming = vec![0u32; fleet.pools.len()];
        for member in &fleet.members {
            if !member.initialized || member.terminating_instance {
                continue;
            }
            counted[member.pool] += 1;
            let out = !member.ready || member.deleting || member.in_command;
            consuming[member.pool] += u32::from(out);
        }
        let share = |pool: usize, reason: Reason| {
            let raw = allowed(&fleet.pools[pool].budgets, reason, counted[pool], fleet.now);
            let left = raw.saturating_sub(consuming[pool]);
            Share { raw, left }
        };
        let pools = (0..fleet.pools.len())
            .map(|pool| Reason::ALL.map(|reason| share(pool, reason)))
            .collect();
        let spare = |terms: &PoolTerms| {
            let min = terms.group_min;
            min.map_or(UNLIMITED, |min| terms.n_staying.saturating_sub(min))
        };
        Self {
            pools,
            consuming,
            spare: fleet.pools.iter().map(spare).collect(),
        }
    }

    /// Nodes of each pool that count against its budgets.
    pub(crate) fn consuming(&self) -> &[u32] {
        &self.consuming
    }

    /// What the budgets of a pool allow, before nodes being disrupted are subtracted.
    pub(crate) fn raw(&self, pool: usize, reason: Reason) -> u32 {
        self.pools[pool][reason.index()].raw
    }

    /// How many more nodes of a pool may go.
    pub(crate) fn left(&self, pool: usize, reason: Reason) -> u32 {
        let left = self.pools[pool][reason.index()].left;
        left.min(self.spare[pool])
    }

    /// True for a node group that has no more nodes than it keeps.
    pub(crate) fn is_at_minimum(&self, pool: usize) -> bool {
        self.spare[pool] == 0
    }

    /// What keeps a member when nothing is left.
    pub(crate) fn why(&self, fleet: &Fleet<'_>, member: &Member, reason: Reason) -> Why {
        let terms = fleet.terms(member);
        match self.is_at_minimum(member.pool) {
            true => Why::GroupMinimum(terms.name.clone()),
            false => Why::Budget(terms.title(), reason),
        }
    }

    /// Takes one node of a pool, if it may go.
    pub(crate) fn take(&mut self, pool: usize, reason: Reason) -> bool {
        let may = self.left(pool, reason) > 0;
        let share = &mut self.pools[pool][reason.index()];
        share.left = share.left.saturating_sub(1);
        self.spare[pool] = self.spare[pool].saturating_sub(1);
        may
    }
}
