//! Tests that every provider must pass, whatever is behind it.
//!
//! A provider brings a [`Subject`]: its cloud, and the means to crash it, to sell offerings out and
//! to let time pass. [`check`] returns what the provider does wrong; a test asserts that this is
//! nothing.

mod capacity;
mod hooks;
mod life;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use joiner_model::{
    InstanceType, Labels, Name, Offering, Requirement, ResourceName, Resources, keys,
};

use crate::{Cloud, Instance, NodeClass, Order, ProviderId, Termination};

/// Types that an order of the suite names.
const TYPES_PER_ORDER: usize = 3;
/// Calls of `terminate` after which a machine should be gone.
const TERMINATIONS_MAX: usize = 200;

/// A provider under test.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The cloud; another one after [`Self::crash`].
    fn cloud(&self) -> Arc<dyn Cloud>;

    /// Loses all that is only in memory and starts anew.
    async fn crash(&self);

    /// A class that sells.
    fn class(&self) -> NodeClass;

    /// The same class, not ready.
    fn unready_class(&self) -> NodeClass;

    /// Lets time pass.
    async fn pass(&self, time: Duration);

    /// Sells these offerings out, and no others: pairs of instance type and labels.
    async fn sell_out(&self, offerings: &[(Name, Labels)]);

    /// Answers every call with "too many calls", or no longer.
    async fn throttle(&self, on: bool);
}

/// Something that a provider does wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the check.
    pub check: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)
    }
}

type Outcome = Result<(), String>;
type Check = for<'s> fn(&'s dyn Subject) -> BoxFuture<'s, Outcome>;

const CHECKS: &[(&str, Check)] = &[
    ("the catalog is complete", |s| {
        Box::pin(capacity::catalog(s))
    }),
    ("the cheapest machine is launched", |s| {
        Box::pin(life::cheapest(s))
    }),
    ("an order gets one machine", |s| {
        Box::pin(life::one_machine(s))
    }),
    ("a crash changes nothing", |s| Box::pin(life::crash(s))),
    ("machines can be found", |s| Box::pin(life::found(s))),
    ("machines end", |s| Box::pin(life::end(s))),
    ("registration hooks have names and come to an end", |s| {
        Box::pin(hooks::registration(s))
    }),
    ("requirements are kept", |s| {
        Box::pin(capacity::requirements(s))
    }),
    ("what is sold out is not sold", |s| {
        Box::pin(capacity::sold_out(s))
    }),
    ("a class must be there and ready", |s| {
        Box::pin(capacity::classes(s))
    }),
    ("the catalog is answered from memory", |s| {
        Box::pin(capacity::from_memory(s))
    }),
    ("too many calls are told as such", |s| {
        Box::pin(capacity::throttled(s))
    }),
];

/// Puts a provider to the test; returns what it does wrong. The machines that it launches for that
/// are ended again.
pub async fn check(subject: &dyn Subject) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (check, run) in CHECKS {
        let outcome = run(subject).await;
        let cleaned = end_all(subject).await;
        for what in [outcome, cleaned].into_iter().filter_map(Result::err) {
            violations.push(Violation { check, what });
        }
    }
    violations
}

/// An error with what was tried.
fn failed(tried: &str, error: impl fmt::Display) -> String {
    format!("{tried} failed: {error}")
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(what()) }
}

async fn catalog_of(subject: &dyn Subject) -> Result<Arc<Vec<InstanceType>>, String> {
    let types = subject.cloud().instance_types(&subject.class()).await;
    types.map_err(|error| failed("instance_types", error))
}

/// Available offerings, cheapest first.
fn offerings(types: &[InstanceType]) -> Vec<(&InstanceType, &Offering)> {
    let mut all: Vec<_> = types
        .iter()
        .filter(|ty| ty.allocatable().is_ok())
        .flat_map(|ty| ty.offerings.iter().map(move |offering| (ty, offering)))
        .filter(|(_, offering)| offering.available && offering.reservation.is_none())
        .collect();
    all.sort_by(|a, b| {
        let rank = |(ty, offering): &(&InstanceType, &Offering)| (offering.price, ty.name.clone());
        rank(a).cmp(&rank(b))
    });
    all
}

/// An order for one of the cheapest types, which hold a pod of 100m.
async fn order(subject: &dyn Subject, claim: &str) -> Result<Order, String> {
    let types = catalog_of(subject).await?;
    let requests = Resources::new()
        .with(ResourceName::Cpu, 100)
        .with(ResourceName::Pods, 1);
    let mut named: BTreeSet<Name> = BTreeSet::new();
    let mut listed = Vec::new();
    for (ty, _) in offerings(&types) {
        let holds = ty.allocatable().is_ok_and(|room| requests.fits(&room));
        if holds && named.insert(ty.name.clone()) {
            listed.push(ty.name.clone());
        }
        if named.len() == TYPES_PER_ORDER {
            break;
        }
    }
    let requirement = Requirement::one_of(keys::INSTANCE_TYPE, named);
    Ok(Order {
        claim: claim.into(),
        claim_uid: format!("6b1f0a52-0000-4000-8000-{claim}").into(),
        pool: Some("default".into()),
        requirements: [requirement].into_iter().collect(),
        types: listed,
        requests,
        labels: Labels::from([(keys::NODE_POOL.into(), "default".into())]),
        class: Some(subject.class()),
    })
}

async fn launch(subject: &dyn Subject, order: &Order) -> Result<Instance, String> {
    let launched = subject.cloud().launch(order).await;
    launched.map_err(|error| failed("launch", error))
}

async fn list(subject: &dyn Subject) -> Result<Vec<Instance>, String> {
    let all = subject.cloud().instances().await;
    all.map_err(|error| failed("instances", error))
}

/// Ends a machine, as controllers do: again and again.
async fn terminate(subject: &dyn Subject, id: &ProviderId) -> Outcome {
    for _ in 0..TERMINATIONS_MAX {
        match subject.cloud().terminate(id).await {
            Ok(Termination::Gone) => return Ok(()),
            Ok(Termination::Going) => subject.pass(Duration::from_secs(5)).await,
            Err(error) => return Err(failed("terminate", error)),
        }
    }
    Err(format!("{id} is not gone after {TERMINATIONS_MAX} calls"))
}

async fn end_all(subject: &dyn Subject) -> Outcome {
    for instance in list(subject).await? {
        terminate(subject, &instance.id).await?;
    }
    let left = list(subject).await?;
    ensure(left.is_empty(), || {
        format!("{} machines are left", left.len())
    })
}
