//! From watches of the API server to news for the [`World`].

use futures::StreamExt as _;
use joiner_model::Name;
use joiner_state::live::Kind;
use kube::api::ApiResource;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use crate::plain::PlainObject;
use crate::watch_pauses::WatchPauses;
use crate::world::{News, World, label};

/// A kind to follow.
#[derive(Clone, Debug)]
pub struct Followed {
    /// What it is to us.
    pub kind: Kind,
    /// `group/Kind` for node classes, else empty.
    pub class: Name,
    /// Where it is.
    pub resource: ApiResource,
}

impl Followed {
    /// One of the kinds with a fixed place.
    #[must_use]
    pub fn kind(kind: Kind) -> Self {
        let (group, version, plural, name) = kind.api();
        Self {
            kind,
            class: "".into(),
            resource: resource(group, version, plural, name),
        }
    }

    /// A kind of node classes.
    #[must_use]
    pub fn class(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            kind: Kind::NodeClass,
            class: format!("{group}/{kind}").into(),
            resource: resource(group, version, plural, kind),
        }
    }
}

/// Where objects of a kind are.
#[must_use]
pub fn resource(group: &str, version: &str, plural: &str, kind: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        },
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Follows a kind until the world ends. A watch that breaks is taken up again, with growing pauses.
pub async fn follow(client: Client, followed: Followed, world: World) {
    let Followed {
        kind,
        class,
        resource,
    } = followed;
    let api: Api<PlainObject> = Api::all_with(client, &resource);
    let inbox = world.inbox();
    let events = watcher(api, watcher::Config::default());
    let events = kube::runtime::WatchStreamExt::backoff(events, WatchPauses::default());
    futures::pin_mut!(events);
    let mut is_absent = false;
    while let Some(event) = events.next().await {
        let value = |object: PlainObject| Box::new(object.into_value(&resource));
        let news = match event {
            Ok(Event::Init) => News::Begin(kind, class.clone()),
            Ok(Event::InitApply(object) | Event::Apply(object)) => News::Is(kind, value(object)),
            Ok(Event::InitDone) => News::Complete(kind, class.clone()),
            Ok(Event::Delete(object)) => News::Gone(kind, value(object)),
            // Small servers leave it out, and nobody can have made what they do not serve.
            Err(error) if kind == Kind::ReplicationController && is_unknown(&error) => {
                if !std::mem::replace(&mut is_absent, true) {
                    let _ = inbox.send(News::Begin(kind, class.clone())).await;
                    let _ = inbox.send(News::Complete(kind, class.clone())).await;
                }
                continue;
            }
            Err(error) => {
                let trouble = remedy(&error, kind, &class);
                if world.trouble(kind, &class, Some(trouble.clone())) {
                    tracing::warn!(kind = &*label(kind, &class), "{trouble}");
                }
                continue;
            }
        };
        if matches!(news, News::Complete(..)) && world.trouble(kind, &class, None) {
            tracing::info!(kind = &*label(kind, &class), "following again");
        }
        if inbox.send(news).await.is_err() {
            return;
        }
    }
}

/// True when the server does not know the kind.
fn is_unknown(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

/// What went wrong with a watch, and what to do about it.
fn remedy(error: &watcher::Error, kind: Kind, class: &str) -> String {
    let (watcher::Error::InitialListFailed(cause)
    | watcher::Error::WatchStartFailed(cause)
    | watcher::Error::WatchFailed(cause)) = error
    else {
        return format!("the watch broke and is taken up again: {error}");
    };
    let name = label(kind, class);
    let ours = kind == Kind::NodeClass
        || matches!(
            kind.api().0,
            "karpenter.sh" | "autoscaling.x-k8s.io" | "karpenter.k8s.aws"
        );
    let kube::Error::Api(status) = cause else {
        return format!("cannot follow {name}, trying again: {}", chain(cause));
    };
    match (status.code, status.message.as_str()) {
        (404, _) if ours => format!(
            "the server does not know the kind {name}: install the CRDs with `joiner crds | \
             kubectl apply --server-side -f -`"
        ),
        (403, message) => {
            format!("not allowed to list and watch {name}: grant it in the ClusterRole ({message})")
        }
        (401, _) => {
            "the server does not accept our credentials: renew the token or certificate".to_owned()
        }
        _ => format!("cannot follow {name}, trying again: {}", chain(cause)),
    }
}

/// An error with what caused it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}
