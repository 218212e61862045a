//! The registration hook of simulated machines: Nodes that join and are not let in at once.

use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud::{CloudError, Pending, Registration};

use crate::faults::HeldRegistration;
use crate::record::{Record, named};

/// What the hook is called.
pub(crate) const HOOK: &str = "simulated-hold";

/// How far the hook is with a machine. It is held for as long as the fault says, from the time when
/// its Node joined, by what is remembered of it; a machine that is not there is never let in.
pub(crate) fn registration(
    held: &HeldRegistration,
    record: Option<&Record>,
    now: Timestamp,
) -> Registration {
    let Some(record) = record else {
        return pending(None);
    };
    let joined = record.joins_at.unwrap_or(record.launched);
    let until = joined.checked_add(held.hold()).unwrap_or(Timestamp::MAX);
    match Duration::try_from(until.duration_since(now)) {
        Ok(left) if !left.is_zero() => pending(Some(left)),
        Ok(_) | Err(_) => Registration {
            labels: named(&held.labels),
            ..Registration::default()
        },
    }
}

fn pending(again: Option<Duration>) -> Registration {
    held_by(Pending {
        hook: HOOK.into(),
        again,
        error: None,
    })
}

/// The hook could not find out.
pub(crate) fn failed(error: &CloudError) -> Registration {
    held_by(Pending {
        hook: HOOK.into(),
        again: None,
        error: Some(error.to_string()),
    })
}

fn held_by(pending: Pending) -> Registration {
    Registration {
        pending: vec![pending],
        ..Registration::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn held() -> HeldRegistration {
        HeldRegistration {
            hold_seconds: 30,
            labels: [("example.com/rack".to_owned(), "r1".to_owned())].into(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_node_is_held_from_the_time_when_it_joined() {
        // It joins in second 130.
        for (second, again) in [
            (129, Some(31)),
            (130, Some(30)),
            (159, Some(1)),
            (160, None),
        ] {
            let answer = registration(&held(), Some(&record()), at(second));
            let asked = answer.pending.first().and_then(|own| own.again);
            assert_eq!(asked, again.map(Duration::from_secs), "in second {second}");
            assert_eq!(answer.labels.is_empty(), again.is_some());
        }
    }

    #[test]
    fn a_machine_that_is_not_there_is_not_let_in() {
        let answer = registration(&held(), None, at(1000));
        assert_eq!(&*answer.pending[0].hook, HOOK);
    }
}
