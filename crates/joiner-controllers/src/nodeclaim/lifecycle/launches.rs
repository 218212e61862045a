//! Machines whose launch was answered, until that has been written down.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use joiner_cloud::Instance;
use joiner_model::Name;

/// An answer is remembered this long at most.
const LASTS_MAX: SignedDuration = SignedDuration::from_hours(1);

/// What the cloud answered, by the uid of the claim. Clones share it.
///
/// It is memory on purpose: a cloud gives the same machine to whoever asks again for the same claim. It
/// saves that question where the API server is hard to reach, and a claim is not given up for want of
/// an answer that was there already.
#[derive(Clone, Debug, Default)]
pub struct Launches {
    all: Arc<Mutex<BTreeMap<Name, (Timestamp, Instance)>>>,
}

impl Launches {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, (Timestamp, Instance)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine that was launched for a claim, if its answer has not been written down.
    #[must_use]
    pub fn of(&self, claim_uid: &str, now: Timestamp) -> Option<Instance> {
        let all = self.lock();
        let (at, instance) = all.get(claim_uid)?;
        (now.duration_since(*at) < LASTS_MAX).then(|| instance.clone())
    }

    /// The cloud has answered.
    pub fn note(&self, claim_uid: &Name, instance: &Instance, now: Timestamp) {
        let mut all = self.lock();
        all.retain(|_, (at, _)| now.duration_since(*at) < LASTS_MAX);
        let answer = || (now, instance.clone());
        all.entry(claim_uid.clone()).or_insert_with(answer);
    }

    /// The answer has been written down, or is of no use any more.
    pub fn forget(&self, claim_uid: &str) {
        self.lock().remove(claim_uid);
    }
}

#[cfg(test)]
mod tests {
    use joiner_cloud::ProviderId;
    use joiner_model::{Labels, Resources};

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    fn machine(id: &str) -> Instance {
        Instance {
            id: ProviderId(id.into()),
            claim: None,
            claim_uid: None,
            labels: Labels::new(),
            annotations: Labels::new(),
            image_id: None,
            capacity: Resources::default(),
            allocatable: Resources::default(),
            launched: at(0),
            terminating: false,
        }
    }

    #[test]
    fn an_answer_is_remembered_until_it_is_written_or_old() {
        let all = Launches::default();
        all.note(&"uid".into(), &machine("a"), at(0));
        assert_eq!(&*all.of("uid", at(10)).unwrap().id.0, "a");
        assert!(all.of("other", at(10)).is_none());
        // Noted again, it does not become younger.
        all.note(&"uid".into(), &machine("a"), at(3_000));
        assert!(all.of("uid", at(3_600)).is_none());
        all.note(&"next".into(), &machine("b"), at(3_700));
        assert_eq!(all.lock().len(), 1, "what is old makes room");
        all.forget("next");
        assert!(all.of("next", at(3_700)).is_none());
    }
}
