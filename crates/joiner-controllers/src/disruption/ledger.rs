//! What commands promised, and what came of it.
//!
//! When all members of a command are gone, or when it is undone, a record of kind `ledger` goes to
//! the decision log: what was to be saved an hour, what is saved (the price of the members when they
//! went, less what the machines that took their place cost: type, zone and capacity type as
//! launched), how many pods moved, and how long it took. Sums are in metrics and in every record.
//!
//! What is needed for that is on the claims, and noted here while they are there. A process that
//! starts in the middle of a command finds what is left of it; prices of members that went before
//! are not known then, and the record says so.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use joiner_api::labels::INSTANCE_TYPE;
use joiner_engine::Shared;
use joiner_model::{Name, NanoDollars};
use joiner_receipts::Decision;
use joiner_runtime::Metrics;
use joiner_runtime::metric_names::{
    LEDGER_COMMANDS, LEDGER_MOVES, LEDGER_PROMISED, LEDGER_REALIZED,
};
use joiner_state::live::{LiveClaim, Snapshot};
use serde_json::json;

use super::intent::Intent;
use crate::catalogs::Catalogs;

/// Commands that are followed; what goes beyond is carried out, too, but not recorded.
const COMMANDS_MAX: usize = 10_000;
/// Nano-dollars of a dollar.
const NANOS: f64 = 1e9;

/// Commands under way, and sums over those that are over.
pub(super) struct Ledger {
    shared: Shared,
    catalogs: Catalogs,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    open: BTreeMap<String, Account>,
    /// By reason.
    sums: BTreeMap<String, Sum>,
}

/// A command under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    intent: Intent,
    /// What members cost when they were last seen.
    members: BTreeMap<Name, NanoDollars>,
    /// What replacements cost when they were last seen.
    replacements: BTreeMap<Name, NanoDollars>,
}

/// What commands of one reason came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    /// Nano-dollars an hour.
    promised: i64,
    /// Nano-dollars an hour.
    realized: i64,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its members are gone.
    Done,
    /// It was given up, because of this.
    Undone(String),
}

impl Account {
    fn new(intent: Intent) -> Self {
        Self {
            intent,
            members: BTreeMap::new(),
            replacements: BTreeMap::new(),
        }
    }

    /// Notes what its machines cost now.
    fn note(&mut self, snapshot: &Snapshot, price: impl Fn(&LiveClaim) -> Option<NanoDollars>) {
        let both = [
            (&self.intent.members, &mut self.members),
            (&self.intent.replacements, &mut self.replacements),
        ];
        for (names, prices) in both {
            let claims = names.iter().filter_map(|name| snapshot.claim(name));
            for claim in claims {
                if let Some(price) = price(claim) {
                    prices.insert(claim.name().clone(), price);
                }
            }
        }
    }

    fn is_over(&self, snapshot: &Snapshot) -> bool {
        let mut members = self.intent.members.iter();
        members.all(|name| snapshot.claim(name).is_none())
    }

    /// Dollars an hour before and after. Of a command that was undone nothing went.
    fn prices(&self, end: &End) -> (NanoDollars, NanoDollars) {
        let before = match end {
            End::Done => self.members.values().copied().sum(),
            End::Undone(_) => NanoDollars::ZERO,
        };
        (before, self.replacements.values().copied().sum())
    }

    /// What it saves an hour, in nano-dollars; below zero when it costs.
    fn realized(&self, end: &End) -> i64 {
        let (before, after) = self.prices(end);
        signed(before.get()).saturating_sub(signed(after.get()))
    }

    /// Every machine's price is known.
    fn is_complete(&self) -> bool {
        self.members.len() == self.intent.members.len()
            && self.replacements.len() == self.intent.replacements.len()
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "prices are far below 2^53 nano-dollars"
)]
fn dollars(nanos: i64) -> f64 {
    nanos as f64 / NANOS
}

impl Ledger {
    /// Nothing is written down yet.
    pub(super) fn new(shared: &Shared, catalogs: &Catalogs) -> Self {
        Self {
            shared: shared.clone(),
            catalogs: catalogs.clone(),
            pages: Mutex::default(),
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when a claim belongs to a command that is followed.
    pub(super) fn knows(&self, claim: &str) -> bool {
        let pages = self.pages();
        let mut open = pages.open.values();
        open.any(|own| own.intent.members.iter().any(|name| name == claim))
    }

    /// A command is under way: what its machines cost now is noted.
    pub(super) fn note(&self, snapshot: &Snapshot, intent: &Intent) {
        let mut pages = self.pages();
        if pages.open.len() >= COMMANDS_MAX && !pages.open.contains_key(&intent.id) {
            return;
        }
        let account = pages.open.entry(intent.id.clone());
        let account = account.or_insert_with(|| Account::new(intent.clone()));
        account.note(snapshot, |claim| price(&self.catalogs, snapshot, claim));
    }

    /// A claim is gone: commands of which nothing is left are closed.
    pub(super) fn gone(&self, snapshot: &Snapshot, claim: &str) {
        let over: Vec<String> = {
            let mut pages = self.pages();
            let open = pages.open.iter_mut();
            let about = open.filter(|(_, own)| own.intent.members.iter().any(|name| name == claim));
            let mut over = Vec::new();
            for (id, account) in about {
                // What was launched is known at the end, if not before.
                account.note(snapshot, |claim| price(&self.catalogs, snapshot, claim));
                if account.is_over(snapshot) {
                    over.push(id.clone());
                }
            }
            over
        };
        for id in over {
            self.close(snapshot, &id, &End::Done);
        }
    }

    /// A command was given up.
    pub(super) fn undone(&self, snapshot: &Snapshot, intent: &Intent, why: &str) {
        self.note(snapshot, intent);
        let gone = |name: &Name| snapshot.claim(name).is_none();
        if let Some(account) = self.pages().open.get_mut(&intent.id) {
            // Nothing is paid for a machine that did not come up.
            account.replacements.retain(|name, _| !gone(name));
        }
        self.close(snapshot, &intent.id, &End::Undone(why.to_owned()));
    }

    fn close(&self, snapshot: &Snapshot, id: &str, end: &End) {
        let (account, sum, sums) = {
            let mut pages = self.pages();
            let Some(account) = pages.open.remove(id) else {
                return;
            };
            let sum = pages.sums.entry(account.intent.reason.clone()).or_default();
            sum.promised = sum.promised.saturating_add(signed(account.intent.saves));
            sum.realized = sum.realized.saturating_add(account.realized(end));
            let sum = *sum;
            let all = pages.sums.values().copied();
            let sums = all.fold(Sum::default(), |a, b| Sum {
                promised: a.promised.saturating_add(b.promised),
                realized: a.realized.saturating_add(b.realized),
            });
            (account, sum, sums)
        };
        measure(&self.shared.metrics, &account, end, sum);
        let now = self.shared.clock.now();
        let mut record = record(&account, end, now);
        record.generation = snapshot.generation;
        record.details["sums"] = json!({
            "promised": dollars(sums.promised),
            "realized": dollars(sums.realized),
        });
        self.shared.decisions.record(record);
    }
}

fn measure(metrics: &Metrics, account: &Account, end: &End, sum: Sum) {
    let reason = account.intent.reason.to_lowercase();
    let outcome = match end {
        End::Done => "done",
        End::Undone(_) => "undone",
    };
    let labels = [("reason", &*reason), ("outcome", outcome)];
    metrics.count(LEDGER_COMMANDS, &labels, 1.0);
    let labels = [("reason", &*reason)];
    metrics.gauge(LEDGER_PROMISED, &labels, dollars(sum.promised));
    metrics.gauge(LEDGER_REALIZED, &labels, dollars(sum.realized));
    if *end == End::Done {
        let n = f64::from(account.intent.moves);
        metrics.count(LEDGER_MOVES, &labels, n);
    }
}

/// What is written of a command that is over.
fn record(account: &Account, end: &End, now: Timestamp) -> Decision {
    let intent = &account.intent;
    let (before, after) = account.prices(end);
    let (promised, realized) = (
        dollars(signed(intent.saves)),
        dollars(account.realized(end)),
    );
    let secs = now.duration_since(intent.started).as_secs_f64();
    let moves = match end {
        End::Done => intent.moves,
        End::Undone(_) => 0,
    };
    let mut reasons = vec![format!(
        "{}: ${promised:.6} an hour were promised, ${realized:.6} are saved",
        intent.reason
    )];
    let outcome = match end {
        End::Done => format!("done: {} after {secs:.0} s", intent.id),
        End::Undone(why) => {
            reasons.push(why.clone());
            format!("undone: {} after {secs:.0} s", intent.id)
        }
    };
    let names = |names: &[String]| -> Vec<String> {
        names
            .iter()
            .map(|name| format!("nodeclaim/{name}"))
            .collect()
    };
    let mut about = names(&intent.members);
    about.extend(names(&intent.replacements));
    Decision {
        time: now,
        kind: "ledger".to_owned(),
        outcome,
        price_before: Some(before),
        price_after: Some(after),
        reasons,
        about,
        details: json!({
            "command": intent,
            "promised": promised,
            "realized": realized,
            "moves": moves,
            "secs": secs,
            "complete": *end != End::Done || account.is_complete(),
        }),
        ..Decision::default()
    }
}

/// What the machine of a claim costs, as it was launched.
fn price(catalogs: &Catalogs, snapshot: &Snapshot, claim: &LiveClaim) -> Option<NanoDollars> {
    claim.provider_id.as_ref()?;
    let pool = snapshot.pool(claim.pool()?)?;
    let types = catalogs.of(&pool.class)?;
    let label = |key: &str| claim.meta.label(key);
    let own = types
        .iter()
        .find(|own| Some(&*own.name) == label(INSTANCE_TYPE))?;
    crate::catalogs::price(own, label)
}

#[cfg(test)]
mod tests {
    use joiner_state::live::Kind;

    use super::*;
    use crate::nodeclaim::lifecycle::made::{Cluster, at, launched};

    fn intent() -> Intent {
        Intent {
            id: "command-1".to_owned(),
            reason: "Underutilized".to_owned(),
            method: "multi".to_owned(),
            started: at(0),
            members: vec!["old-1".to_owned(), "old-2".to_owned()],
            replacements: vec!["new".to_owned()],
            saves: 700_000_000,
            moves: 5,
        }
    }

    fn cluster(names: &[&str]) -> Snapshot {
        let mut cluster = Cluster::default();
        for name in names {
            let id = json!({"metadata": {"name": name, "uid": name}});
            cluster.put(Kind::NodeClaim, launched(&["Initialized"], &id));
        }
        cluster.snapshot()
    }

    /// Old machines cost half a dollar, new ones a quarter.
    fn half(claim: &LiveClaim) -> Option<NanoDollars> {
        let old = claim.name().starts_with("old");
        Some(NanoDollars::new(if old {
            500_000_000
        } else {
            250_000_000
        }))
    }

    fn seen(names: &[&str]) -> Account {
        let mut account = Account::new(intent());
        account.note(&cluster(names), half);
        account
    }

    #[test]
    fn what_came_of_it_is_what_machines_really_cost() {
        let account = seen(&["old-1", "old-2", "new"]);
        assert_eq!(account.realized(&End::Done), 750_000_000);
        let record = record(&account, &End::Done, at(60));
        assert_eq!(
            (&*record.kind, &*record.outcome),
            ("ledger", "done: command-1 after 60 s")
        );
        assert_eq!(record.price_before, Some(NanoDollars::new(1_000_000_000)));
        assert_eq!(record.price_after, Some(NanoDollars::new(250_000_000)));
        let details = &record.details;
        assert_eq!(details["promised"], 0.7);
        assert_eq!(details["realized"], 0.75);
        assert_eq!(details["moves"], 5);
        assert_eq!(details["complete"], true);
        assert_eq!(details["command"]["id"], "command-1");
        assert!(record.about.contains(&"nodeclaim/old-2".to_owned()));
    }

    #[test]
    fn a_command_that_was_undone_saves_nothing_and_pays_for_what_came() {
        let account = seen(&["old-1", "old-2", "new"]);
        let end = End::Undone("its replacements are not up".to_owned());
        assert_eq!(account.realized(&end), -250_000_000);
        let record = record(&account, &end, at(600));
        assert_eq!(record.details["moves"], 0);
        assert!(record.outcome.starts_with("undone: command-1"));
        assert!(record.reasons[1].contains("not up"));
    }

    #[test]
    fn prices_of_machines_that_are_gone_are_remembered() {
        let mut account = seen(&["old-1", "old-2"]);
        account.note(&cluster(&["old-2", "new"]), half);
        assert!(!account.is_over(&cluster(&["old-2", "new"])));
        assert!(account.is_over(&cluster(&["new"])));
        assert_eq!(account.realized(&End::Done), 750_000_000);
        assert!(account.is_complete());
    }

    #[test]
    fn a_process_that_came_late_says_that_it_does_not_know_all() {
        let account = seen(&["old-2", "new"]);
        let record = record(&account, &End::Done, at(60));
        assert_eq!(record.details["complete"], false);
        assert_eq!(record.details["realized"], 0.25);
    }
}
