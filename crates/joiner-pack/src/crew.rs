//! Independent jobs on two threads, with the answers that one thread would give.
//!
//! A job is a function of its number, and answers come back by number: who did what, and when,
//! leaves no trace. The number of threads is fixed and nothing asks the machine about its cores;
//! where no thread is to be had, the calling one does all the work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, ScopedJoinHandle, scope};

/// How many threads work side by side.
pub(crate) const HANDS: usize = 2;

/// Does the jobs `0..n_jobs`. Each thread has one of the `tools`, from which a job must not learn
/// what was done with it before.
pub(crate) fn all<S: Send, T: Send>(
    n_jobs: usize,
    tools: &mut [S],
    job: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = |tool: &mut S| {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= n_jobs {
                return done;
            }
            done.push((at, job(tool, at)));
        }
    };
    let Some((own, others)) = tools.split_first_mut() else {
        return Vec::new();
    };
    let mut done = scope(|s| {
        let work = &work;
        let helpers: Vec<_> = others
            .iter_mut()
            .take(n_jobs.saturating_sub(1))
            .filter_map(|tool| Builder::new().spawn_scoped(s, move || work(tool)).ok())
            .collect();
        let mut done = work(own);
        for helper in helpers {
            done.extend(answer(helper));
        }
        done
    });
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, answer)| answer).collect()
}

/// Does two things side by side.
pub(crate) fn both<A: Send, B>(a: impl Fn() -> A + Sync, b: impl FnOnce() -> B) -> (A, B) {
    scope(|s| {
        let helper = Builder::new().spawn_scoped(s, &a).ok();
        let b = b();
        (helper.map_or_else(&a, answer), b)
    })
}

fn answer<T>(helper: ScopedJoinHandle<'_, T>) -> T {
    helper
        .join()
        .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
}

#[cfg(test)]
mod tests {
    use super::{all, both};

    #[test]
    fn answers_come_by_number_whoever_gave_them() {
        let job = |seen: &mut Vec<usize>, at: usize| {
            seen.push(at);
            at * at
        };
        let alone = all(1_000, &mut [Vec::new()], job);
        let mut tools = [Vec::new(), Vec::new(), Vec::new()];
        assert_eq!(all(1_000, &mut tools, job), alone);
        let mut done: Vec<usize> = tools.concat();
        done.sort_unstable();
        assert!(done.into_iter().eq(0..1_000), "each job is done once");
    }

    #[test]
    fn no_jobs_and_no_tools_are_fine() {
        assert!(all(0, &mut [()], |(), at| at).is_empty());
        assert!(all(3, &mut [(); 0], |(), at| at).is_empty());
    }

    #[test]
    fn both_answers_keep_their_places() {
        assert_eq!(both(|| 1, || "two"), (1, "two"));
    }
}
