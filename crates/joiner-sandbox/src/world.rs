//! The loop that runs the rest of the cluster: controllers, scheduler and kubelets look at the
//! objects whenever something they read has changed, and act through the API.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use joiner_cluster::{Action, Controller, Resource, Step, View, told_in};
use joiner_machinery::{ApiError, Subresource, meta, patch};

use crate::registry::{Registry, Served};
use crate::server::Server;
use crate::store::packed;
use crate::verbs::About;
use crate::verbs::create::{By, store_new};
use crate::verbs::remove::{How, delete_one};
use crate::verbs::special::{bind_pod, evict_pod};
use crate::verbs::update::{Mode, store_change};

/// Changes within this time are looked at together.
const PAUSE: Duration = Duration::from_millis(5);
/// Rounds in a row after which others get a turn, whatever is left to do.
const ROUNDS_MAX: usize = 200;
/// How long a controller rests that has panicked.
const AFTER_PANIC: SignedDuration = SignedDuration::from_secs(10);

/// Controllers with what each has seen.
pub struct World {
    server: Arc<Server>,
    seed: u64,
    members: Vec<Member>,
    kinds: Kinds,
    /// What was logged.
    logged: BTreeSet<String>,
}

/// Lines of the log that are remembered, so as not to be written again.
const LOGGED_MAX: usize = 1_000;

struct Member {
    controller: Box<dyn Controller>,
    /// The kinds it reads, as the store numbers them.
    reads: Vec<usize>,
    /// Revisions of the kinds it reads at its last look.
    seen: Vec<u64>,
    wake: Option<Timestamp>,
}

/// Kinds by the names that controllers have for them.
struct Kinds {
    registry: Arc<Registry>,
    known: BTreeMap<Resource, Arc<Served>>,
}

impl Kinds {
    /// Follows the kinds that are served.
    fn refresh(&mut self, server: &Server) {
        let registry = server.registry();
        if !Arc::ptr_eq(&registry, &self.registry) {
            self.known.clear();
            self.registry = registry;
        }
    }

    fn served(&mut self, resource: Resource) -> Result<Arc<Served>, ApiError> {
        if let Some(known) = self.known.get(&resource) {
            return Ok(Arc::clone(known));
        }
        let found = self.registry.any_version(resource.0, resource.1);
        let served = found.ok_or_else(|| {
            ApiError::new(joiner_machinery::Reason::NotFound, "no such kind is served")
        })?;
        self.known.insert(resource, Arc::clone(&served));
        Ok(served)
    }

    fn about(&mut self, resource: Resource, key: &(String, String)) -> Result<About, ApiError> {
        Ok(About {
            served: self.served(resource)?,
            namespace: (!key.0.is_empty()).then(|| key.0.clone()),
            name: Some(key.1.clone()),
        })
    }
}

impl Member {
    /// Tells the controller of a refusal; it may want to look again because of it.
    fn learn(&mut self, action: &Action, error: &ApiError, now: Timestamp) {
        let again = self.controller.refused(action, &error.message, now);
        self.wake = [self.wake, again].into_iter().flatten().min();
    }
}

impl World {
    /// A world of these controllers, which act in this order.
    #[must_use]
    pub fn new(server: Arc<Server>, seed: u64, controllers: Vec<Box<dyn Controller>>) -> Self {
        let store = Arc::clone(server.store());
        let place = |(group, plural): &Resource| {
            let resource = ((*group).to_owned(), (*plural).to_owned());
            store.with(|s| s.place(&resource))
        };
        let members = controllers.into_iter().map(|controller| Member {
            seen: vec![u64::MAX; controller.reads().len().max(1)],
            reads: controller.reads().iter().map(place).collect(),
            controller,
            wake: None,
        });
        let kinds = Kinds {
            registry: server.registry(),
            known: BTreeMap::new(),
        };
        Self {
            members: members.collect(),
            kinds,
            server,
            seed,
            logged: BTreeSet::new(),
        }
    }

    /// Writes to the log what has to be put right, once: a thousand pods of one template say the same.
    fn log(&mut self, action: &Action) {
        let Some((about, message)) = told_in(action) else {
            return;
        };
        if self.logged.len() >= LOGGED_MAX {
            self.logged.clear();
        }
        if self.logged.insert(message.to_owned()) {
            let text = |field: &str| about[field].as_str().unwrap_or_default();
            let (kind, namespace, name) = (text("kind"), text("namespace"), text("name"));
            tracing::warn!(kind, namespace, name, "{message}");
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut changed = self.server.store().subscribe();
        loop {
            changed.mark_unchanged();
            let mut rounds = 0;
            while self.round() > 0 && rounds < ROUNDS_MAX {
                rounds += 1;
                // Watches keep up with a burst of changes before the log forgets the first of them.
                tokio::task::yield_now().await;
            }
            let clock = self.server.clock().clone();
            let wake = self.members.iter().filter_map(|m| m.wake).min();
            tokio::select! {
                biased;
                news = changed.changed() => {
                    if news.is_err() {
                        return;
                    }
                    clock.sleep(PAUSE).await;
                }
                () = sleep_until(&clock, wake) => {}
            }
        }
    }

    /// Lets everybody look once who has something new to see; returns how much was done.
    pub fn round(&mut self) -> usize {
        let mut n_done = 0;
        for m in 0..self.members.len() {
            let actions = self.look(m);
            let name = program(self.members[m].controller.name());
            let mut told = true;
            for action in actions {
                // An event tells of the action before it.
                if action.is_event() && !told {
                    continue;
                }
                self.kinds.refresh(&self.server);
                match take_safely(&self.server, &mut self.kinds, name, &action) {
                    Ok(()) => {
                        n_done += 1;
                        told = true;
                        self.log(&action);
                    }
                    Err(error) => {
                        told = action.is_event();
                        self.members[m].learn(&action, &error, self.server.clock().now());
                    }
                }
            }
        }
        n_done
    }

    fn look(&mut self, m: usize) -> Vec<Action> {
        let now = self.server.clock().now();
        let member = &mut self.members[m];
        let seed = self.seed;
        self.server.store().with(|s| {
            let revisions: Vec<u64> = match &member.reads[..] {
                [] => vec![s.revision_without_leases()],
                reads => reads.iter().map(|place| s.revision_at(*place)).collect(),
            };
            let due = member.wake.is_some_and(|wake| wake <= now);
            if revisions == member.seen && !due {
                return Vec::new();
            }
            member.seen = revisions;
            let view = View {
                kinds: s.kinds(),
                now,
                seed,
            };
            // A bug in one controller must not stop the others; it gets another chance a little later.
            let step = catch_unwind(AssertUnwindSafe(|| member.controller.step(&view)));
            let step = step.unwrap_or_else(|_| Step {
                wake: now.checked_add(AFTER_PANIC).ok(),
                ..Step::default()
            });
            member.wake = step.wake;
            step.actions
        })
    }
}

async fn sleep_until(clock: &joiner_runtime::Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The program that a controller is part of in a cluster: what it writes is its.
fn program(controller: &'static str) -> &'static str {
    match controller {
        "default-scheduler" => "kube-scheduler",
        "kubelet" => "kubelet",
        _ => "kube-controller-manager",
    }
}

/// Takes one action through the API; a bug on the way is a refusal.
fn take_safely(
    server: &Server,
    kinds: &mut Kinds,
    manager: &str,
    action: &Action,
) -> Result<(), ApiError> {
    let taken = catch_unwind(AssertUnwindSafe(|| take(server, kinds, manager, action)));
    taken.unwrap_or_else(|_| {
        let message = "this action made the server panic";
        Err(ApiError::new(
            joiner_machinery::Reason::InternalError,
            message,
        ))
    })
}

/// Takes one action through the API.
fn take(
    server: &Server,
    kinds: &mut Kinds,
    manager: &str,
    action: &Action,
) -> Result<(), ApiError> {
    let mode = |subresource| Mode {
        manager,
        user: None,
        subresource,
        dry_run: false,
        applied: false,
    };
    match action {
        Action::Create(resource, object) => {
            let served = kinds.served(*resource)?;
            let mut object = object.clone();
            object["apiVersion"] = served.kind.api_version().into();
            object["kind"] = served.kind.kind.clone().into();
            let namespace = meta::namespace(&object).to_owned();
            let namespace = (!namespace.is_empty()).then_some(namespace);
            let by = By {
                manager,
                user: None,
                dry_run: false,
                applied: false,
            };
            store_new(server, &served, namespace.as_deref(), object, by)?;
        }
        Action::Update(resource, object) => {
            let key = (
                meta::namespace(object).to_owned(),
                meta::name(object).to_owned(),
            );
            let about = kinds.about(*resource, &key)?;
            store_change(server, &about, mode(None), |_, _| {
                let mut object = object.clone();
                packed::unpack(&mut object);
                Ok(object)
            })?;
        }
        Action::Patch {
            resource,
            key,
            subresource,
            patch: edit,
        } => {
            let subresource = subresource.and_then(|word| match word {
                "status" => Some(Subresource::Status),
                "finalize" => Some(Subresource::Finalize),
                _ => None,
            });
            let about = kinds.about(*resource, key)?;
            store_change(server, &about, mode(subresource), |o, _| {
                patch::merge(o, edit)
            })?;
        }
        Action::Delete {
            resource,
            key,
            uid,
            grace_secs,
            propagation,
        } => {
            let how = How {
                grace_secs: *grace_secs,
                propagation: propagation.map(str::to_owned),
                uid: Some(uid.clone()).filter(|uid| !uid.is_empty()),
                ..How::default()
            };
            delete_one(server, &kinds.about(*resource, key)?, &how)?;
        }
        Action::Bind { pod, uid, node } => {
            bind_pod(server, &kinds.about(("", "pods"), pod)?, node, uid, manager)?;
        }
        Action::Evict(pod) => {
            evict_pod(server, &kinds.about(("", "pods"), pod)?, &How::default())?;
        }
    }
    Ok(())
}

/// How many objects of each kind there are, for people.
#[must_use]
pub fn census(server: &Server) -> BTreeMap<String, usize> {
    server.store().with(|s| {
        let kinds = s.kinds().iter();
        kinds
            .map(|((_, plural), objects)| (plural.clone(), objects.len()))
            .collect()
    })
}
