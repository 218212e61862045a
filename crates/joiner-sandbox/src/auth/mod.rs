//! Who sends a request, and whether they may.
//!
//! A request has its sender's credentials: a token of the kubeconfig or of a service account, or none.
//! Headers may say that it is made as somebody else. Then the roles and bindings decide.

mod access;
mod policy;
mod tokens;

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use http::HeaderMap;
use joiner_machinery::rbac::{self, Access, User, Wanted};
use joiner_machinery::{ApiError, Reason};
use percent_encoding::percent_decode_str;

use self::tokens::Keys;
pub(crate) use self::tokens::{AUDIENCE, Bound, Claims, Times};
use crate::exchange::Request;
use crate::server::Server;
use crate::store::Inner;

/// The credentials that a server accepts.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    /// Tokens of administrators.
    administrators: RwLock<Vec<String>>,
    /// Made when they are first needed.
    keys: OnceLock<Option<Keys>>,
}

impl Credentials {
    /// Accepts a token as an administrator's.
    pub(crate) fn add_administrator(&self, token: String) {
        let all = self.administrators.write();
        all.unwrap_or_else(PoisonError::into_inner).push(token);
    }

    fn is_administrator(&self, token: &str) -> bool {
        let all = self.administrators.read();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|own| tokens::same(own, token))
    }

    fn keys(&self) -> Result<&Keys, ApiError> {
        let keys = self.keys.get_or_init(Keys::make).as_ref();
        keys.ok_or_else(|| {
            let message = "no key to sign tokens could be made";
            ApiError::new(Reason::InternalError, message)
        })
    }

    /// A signed token.
    pub(crate) fn sign(&self, claims: &Claims) -> Result<String, ApiError> {
        self.keys()?.sign(&claims.to_json())
    }
}

/// What a good token says.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) user: User,
    /// For whom the token is, of those that were asked about.
    pub(crate) audiences: Vec<String>,
}

/// The sender of a request: who shows no credentials is anonymous, who shows wrong ones is refused.
pub(crate) fn identify(server: &Server, headers: &HeaderMap) -> Result<User, ApiError> {
    let Some(token) = bearer(headers) else {
        return Ok(User::anonymous());
    };
    let api = [AUDIENCE.to_owned()];
    let shown = read_token(server, token, &api);
    let refused = |_| ApiError::new(Reason::Unauthorized, "Unauthorized");
    shown.map(|shown| shown.user).map_err(refused)
}

/// The token of a request, if it has one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = given.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// What a token says, or why it is not good for any of these audiences.
pub(crate) fn read_token(
    server: &Server,
    token: &str,
    audiences: &[String],
) -> Result<Shown, String> {
    if server.credentials.is_administrator(token) {
        return Ok(Shown {
            user: User::administrator(),
            audiences: audiences.to_vec(),
        });
    }
    tokens::read(server, token, audiences)
}

/// Says as whom a request is made, once its sender may do so and that one may do what it asks for.
pub(crate) fn admit(server: &Server, sender: User, request: &Request) -> Result<User, ApiError> {
    let access = access::of(request);
    let wanted = wanted(&request.headers)?;
    if wanted.is_none() && sender.is_master() {
        return Ok(sender);
    }
    server.store.with(|s| {
        let policy = policy::Stored(s);
        let user = match wanted {
            Some(wanted) => rbac::impersonate(&policy, &sender, &wanted, &access)?,
            None => sender,
        };
        rbac::check(&policy, &user, &access)?;
        Ok(user)
    })
}

/// Whether a user may, and why.
pub(crate) fn authorize(server: &Server, user: &User, access: &Access) -> rbac::Decision {
    let decide = |s: &mut Inner| rbac::authorize(&policy::Stored(s), user, access);
    server.store.with(decide)
}

/// 403 unless a user may.
pub(crate) fn check(server: &Server, user: &User, access: &Access) -> Result<(), ApiError> {
    let check = |s: &mut Inner| rbac::check(&policy::Stored(s), user, access);
    server.store.with(check)
}

/// All that a user may do in a namespace.
pub(crate) fn rules_for(server: &Server, user: &User, namespace: &str) -> rbac::Rules {
    let list = |s: &mut Inner| rbac::rules_for(&policy::Stored(s), user, namespace);
    server.store.with(list)
}

/// 403 when a write of a role or a binding would grant what its writer lacks.
pub(crate) fn check_write(
    store: &Inner,
    user: &User,
    write: &rbac::Write<'_>,
) -> Result<(), ApiError> {
    rbac::check_write(&policy::Stored(store), user, write)
}

const AS_USER: &str = "impersonate-user";
const AS_UID: &str = "impersonate-uid";
const AS_GROUP: &str = "impersonate-group";
const AS_EXTRA: &str = "impersonate-extra-";

/// As whom a request wants to be made.
fn wanted(headers: &HeaderMap) -> Result<Option<Wanted>, ApiError> {
    let one = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or("").to_owned()
    };
    let groups = headers.get_all(AS_GROUP).iter();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let (Some(key), Ok(value)) = (name.as_str().strip_prefix(AS_EXTRA), value.to_str()) else {
            continue;
        };
        let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
        extra.entry(key).or_default().push(value.to_owned());
    }
    let wanted = Wanted {
        name: one(AS_USER),
        uid: one(AS_UID),
        groups: groups
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect(),
        extra,
    };
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted == Wanted::default() {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!(
        "requested {} without impersonating a user name",
        described(&wanted)
    )))
}

/// As upstream prints it.
fn described(wanted: &Wanted) -> String {
    let list = |texts: &[String]| {
        let all: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        format!("[]string{{{}}}", all.join(", "))
    };
    let groups = match &wanted.groups[..] {
        [] => "[]string(nil)".to_owned(),
        some => list(some),
    };
    let extra: Vec<String> = (wanted.extra.iter())
        .map(|(key, values)| format!("{key:?}:{}", list(values)))
        .collect();
    let extra = match &extra[..] {
        [] => "map[string][]string(nil)".to_owned(),
        some => format!("map[string][]string{{{}}}", some.join(", ")),
    };
    format!(
        "&user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}}",
        wanted.uid
    )
}
