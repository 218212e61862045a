//! The stream of notices of machines that will go.
//!
//! What is published is the set of notices that stand, not the events: who subscribes late, or
//! starts anew after a crash, is told of all of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use joiner_cloud::{Interruption, InterruptionKind, ProviderId};
use tokio::sync::watch;

/// Notices of machines that are still there.
pub(crate) type Notices = BTreeMap<ProviderId, InterruptionKind>;

/// Tells each notice once.
struct Teller {
    notices: watch::Receiver<Arc<Notices>>,
    told: Notices,
    queue: VecDeque<Interruption>,
}

impl Teller {
    async fn next(mut self) -> Option<(Interruption, Self)> {
        loop {
            if let Some(next) = self.queue.pop_front() {
                return Some((next, self));
            }
            if self.notices.changed().await.is_err() {
                // The cloud is gone; the promise is that only the process ends a stream.
                std::future::pending::<()>().await;
            }
            let now = Arc::clone(&self.notices.borrow_and_update());
            let news = now
                .iter()
                .filter(|(id, kind)| self.told.get(id) != Some(kind));
            let news = news.map(|(id, kind)| Interruption {
                id: id.clone(),
                kind: *kind,
            });
            self.queue.extend(news);
            self.told = (*now).clone();
        }
    }
}

/// Every notice that stands, and every one that comes.
pub(crate) fn stream(
    mut notices: watch::Receiver<Arc<Notices>>,
) -> BoxStream<'static, Interruption> {
    notices.mark_changed();
    let teller = Teller {
        notices,
        told: Notices::new(),
        queue: VecDeque::new(),
    };
    stream::unfold(teller, Teller::next).boxed()
}
