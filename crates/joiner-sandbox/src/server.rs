//! The API server: a request comes in, a reply goes out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use http::{Method, StatusCode};
use joiner_machinery::{ApiError, Reason, discovery, openapi};
use joiner_runtime::Clock;
use serde_json::{Value, json};

use crate::auth::Credentials;
use crate::exchange::{Reply, Request};
use crate::registry::Registry;
use crate::route::{Route, parse};
use crate::store::Store;
use crate::verbs::{self, accept};

/// Largest body that is read, as upstream has it for whole requests.
pub const BODY_MAX: usize = 3 * 1024 * 1024;
/// Largest object that is stored.
pub const OBJECT_MAX: usize = 1536 * 1024;

/// The Kubernetes version that the sandbox speaks.
pub const VERSION: (&str, &str, &str) = ("1", "36", "v1.36.3");

/// The API server and what it serves.
#[derive(Debug)]
pub struct Server {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Clock,
    pub(crate) credentials: Credentials,
    registry: RwLock<Arc<Registry>>,
    seed: u64,
    n_uids: AtomicU64,
}

impl Server {
    /// A server without any object. The same seed gives the same uids and names.
    #[must_use]
    pub fn new(clock: Clock, seed: u64) -> Self {
        Self {
            store: Arc::new(Store::default()),
            clock,
            credentials: Credentials::default(),
            registry: RwLock::new(Arc::new(Registry::new(std::iter::empty()))),
            seed,
            n_uids: AtomicU64::new(0),
        }
    }

    /// The objects.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The kinds that are served now.
    #[must_use]
    pub fn registry(&self) -> Arc<Registry> {
        let registry = self.registry.read();
        Arc::clone(&registry.unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the CRDs anew.
    pub(crate) fn reload_kinds(&self) {
        let crds = verbs::definitions::resource();
        let objects: Vec<Arc<Value>> = self.store.with(|s| {
            let objects = s.objects(&crds).into_iter().flat_map(|o| o.values());
            objects.cloned().collect()
        });
        let registry = Arc::new(Registry::new(objects.iter().map(AsRef::as_ref)));
        let mut place = self
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *place = registry;
    }

    /// A uid that no other object has.
    pub(crate) fn uid(&self) -> String {
        let n = self.n_uids.fetch_add(1, Ordering::Relaxed);
        let (a, b) = (mix(self.seed ^ n), mix(self.seed.rotate_left(32) ^ mix(n)));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | (b >> 48) & 0x3fff,
            b & 0xffff_ffff_ffff
        )
    }

    /// Five characters for a generated name.
    pub(crate) fn suffix(&self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = mix(self.seed ^ mix(self.n_uids.fetch_add(1, Ordering::Relaxed)));
        let mut suffix = String::new();
        for _ in 0..5 {
            let n = LETTERS.len() as u64;
            let letter = usize::try_from(bits % n).unwrap_or(0);
            suffix.push(char::from(LETTERS[letter]));
            bits /= n;
        }
        suffix
    }

    /// Answers a request of somebody who may make it.
    #[must_use]
    pub fn handle(self: &Arc<Self>, request: &Request) -> Reply {
        // A bug in one answer must not end the server, nor a client in the same process.
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(request)));
        let bug = || ApiError::new(Reason::InternalError, "this request made the server panic");
        let reply = answer.unwrap_or_else(|_| Err(bug()));
        accept::written(request, reply.unwrap_or_else(Reply::from))
    }

    fn answer(self: &Arc<Self>, request: &Request) -> Result<Reply, ApiError> {
        let registry = self.registry();
        let kinds: Vec<_> = registry.all().collect();
        let accept = request.header("accept");
        let ok = |value: &Value| Ok(Reply::json(StatusCode::OK, value));
        let missing = ApiError::no_such_resource;
        let route = parse(&request.path);
        if leads_nowhere(&route, &registry) {
            return Ok(Reply::text(StatusCode::NOT_FOUND, "404 page not found\n"));
        }
        if !matches!(route, Route::Objects(_)) && request.method != Method::GET {
            return Err(verbs::not_allowed(&request.method));
        }
        if route == Route::Version {
            accept::check(request, accept::ONLY_JSON)?;
        } else if matches!(route, Route::Kinds { .. } | Route::Group(_)) {
            accept::check(request, accept::OBJECTS)?;
        }
        match route {
            Route::Health => Ok(Reply::text(StatusCode::OK, "ok")),
            Route::Version => ok(&version()),
            Route::CoreVersions | Route::Groups => {
                let core = route == Route::CoreVersions;
                if let Some(media) = discovery::wants_aggregated(accept) {
                    let body = discovery::aggregated(&kinds, core, media);
                    let body = body.to_string().into_bytes();
                    return Ok(Reply::bytes(StatusCode::OK, media, body));
                }
                ok(&if core {
                    discovery::core_versions(request.header("host"))
                } else {
                    discovery::groups(&kinds)
                })
            }
            Route::Group(group) => ok(&discovery::group(&kinds, &group).ok_or_else(missing)?),
            Route::Kinds { group, version } => {
                ok(&discovery::resources(&kinds, &group, &version).ok_or_else(missing)?)
            }
            Route::OpenApiV2 => Ok(openapi_v2(accept)),
            Route::OpenApiV3 => ok(&openapi::index(&kinds)),
            Route::OpenApiV3Of { group, version } => {
                openapi_reply(openapi::document(&kinds, &group, &version), missing)
            }
            Route::Objects(target) => verbs::objects(self, target, request),
            Route::Unknown => Err(missing()),
        }
    }
}

/// True for paths that upstream's router does not know, and answers in plain text.
fn leads_nowhere(route: &Route, registry: &Registry) -> bool {
    match route {
        Route::Unknown => true,
        Route::Group(group) | Route::Kinds { group, .. } => !registry.has_group(group),
        Route::Objects(target) if registry.is_custom(&target.group) => registry
            .find(&target.group, &target.version, &target.plural)
            .is_err(),
        Route::Objects(target) => !registry.has_group(&target.group),
        Route::Health
        | Route::Version
        | Route::CoreVersions
        | Route::Groups
        | Route::OpenApiV2
        | Route::OpenApiV3
        | Route::OpenApiV3Of { .. } => false,
    }
}

/// A document of the older kind, without any schemas: kubectl asks for it to judge lists and kinds
/// that it does not know, and skips what it does not find. The server judges each object anyway.
fn openapi_v2(accept: &str) -> Reply {
    if accept.contains("application/com.github.proto-openapi.spec.v2@v1.0+protobuf") {
        let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        return Reply::bytes(StatusCode::OK, media, Vec::new());
    }
    let info = json!({"title": "Kubernetes", "version": "1.36"});
    Reply::json(
        StatusCode::OK,
        &json!({"swagger": "2.0", "info": info, "paths": {}}),
    )
}

fn openapi_reply(
    document: Option<Value>,
    missing: impl FnOnce() -> ApiError,
) -> Result<Reply, ApiError> {
    let document = document.ok_or_else(missing)?;
    Ok(Reply::json(StatusCode::OK, &document))
}

fn version() -> Value {
    let (major, minor, git) = VERSION;
    json!({
        "major": major, "minor": minor, "emulationMajor": major, "emulationMinor": minor,
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": git, "gitCommit": "joiner",
        "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": "linux/amd64"
    })
}

/// Scrambles a number so that neighbors look unrelated.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
