use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cloud said no")]
struct No;

/// A call as it was made: when, and of which requests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    millis: u128,
    key: &'static str,
    requests: Vec<u32>,
    waited_millis: u128,
}

/// Answers a request with ten times its number, and 7 not at all well.
struct Tens {
    start: Instant,
    takes: Duration,
    made: Arc<Mutex<Vec<Made>>>,
    ended: Arc<AtomicBool>,
}

impl Drop for Tens {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl BatchCall for Tens {
    type Key = &'static str;
    type Request = (&'static str, u32);
    type Answer = Result<u32, No>;
    type Error = No;

    fn key(&self, request: &Self::Request) -> Self::Key {
        request.0
    }

    async fn call(&self, batch: Batch<Self>) -> Result<Vec<Self::Answer>, No> {
        let requests: Vec<u32> = batch.requests.iter().map(|(_, number)| *number).collect();
        self.made.lock().unwrap().push(Made {
            millis: self.start.elapsed().as_millis(),
            key: batch.key,
            requests: requests.clone(),
            waited_millis: batch.waited.as_millis(),
        });
        sleep(self.takes).await;
        match batch.key {
            "refused" => return Err(No),
            "broken" => panic!("a call that panics"),
            _ => {}
        }
        let answer = |number: &u32| match number {
            7 => Err(No),
            number => Ok(number * 10),
        };
        // A request of this key gets less than it asked for.
        let n_answers = match batch.key {
            "short" => requests.len() - 1,
            _ => requests.len(),
        };
        Ok(requests.iter().take(n_answers).map(answer).collect())
    }
}

/// A batcher, and what it did.
struct Bed {
    batcher: Batcher<Tens>,
    made: Arc<Mutex<Vec<Made>>>,
    ended: Arc<AtomicBool>,
}

type Answered = JoinHandle<Result<Result<u32, No>, BatchError<No>>>;

fn limits() -> BatchLimits {
    let count = |count| NonZeroUsize::new(count).unwrap();
    BatchLimits {
        idle: millis(100),
        longest: millis(1000),
        requests_max: count(500),
        calls_max: count(100),
        waiting_max: count(10_000),
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Bed {
    fn new(limits: BatchLimits, takes: Duration) -> Self {
        let (made, ended) = (Arc::default(), Arc::default());
        let call = Tens {
            start: Instant::now(),
            takes,
            made: Arc::clone(&made),
            ended: Arc::clone(&ended),
        };
        Self {
            batcher: Batcher::start(call, limits),
            made,
            ended,
        }
    }

    /// Asks now, in the order of the calls of this.
    async fn ask(&self, key: &'static str, number: u32) -> Answered {
        let batcher = self.batcher.clone();
        let asked = tokio::spawn(async move { batcher.ask((key, number)).await });
        // The request is in before the next one is asked; no time passes.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        asked
    }

    fn made(&self) -> Vec<Made> {
        self.made.lock().unwrap().clone()
    }

    fn batches(&self) -> Vec<(u128, Vec<u32>)> {
        let made = self.made().into_iter();
        made.map(|made| (made.millis, made.requests)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_closes_when_nothing_more_comes() {
    let bed = Bed::new(limits(), Duration::ZERO);
    let mut asked = Vec::new();
    for number in 1..=3 {
        asked.push(bed.ask("a", number).await);
        sleep(millis(60)).await;
    }
    for (asked, expected) in asked.into_iter().zip([10, 20, 30]) {
        assert_eq!(asked.await.unwrap(), Ok(Ok(expected)));
    }
    assert_eq!(
        bed.made(),
        [Made {
            millis: 220,
            key: "a",
            requests: vec![1, 2, 3],
            waited_millis: 220,
        }]
    );
    // The next request opens another batch.
    assert_eq!(bed.ask("a", 4).await.await.unwrap(), Ok(Ok(40)));
    assert_eq!(bed.made().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_batch_closes_after_the_longest_window() {
    let limits = BatchLimits {
        longest: millis(250),
        ..limits()
    };
    let bed = Bed::new(limits, Duration::ZERO);
    let mut asked = Vec::new();
    for number in 0..6 {
        asked.push(bed.ask("a", number).await);
        sleep(millis(60)).await;
    }
    for asked in asked {
        assert!(asked.await.unwrap().is_ok());
    }
    assert_eq!(bed.batches(), [(250, vec![0, 1, 2, 3, 4]), (400, vec![5])]);
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait() {
    let limits = BatchLimits {
        requests_max: NonZeroUsize::new(3).unwrap(),
        ..limits()
    };
    let bed = Bed::new(limits, Duration::ZERO);
    let mut asked = Vec::new();
    for number in 10..17 {
        asked.push(bed.ask("a", number).await);
    }
    for (asked, number) in asked.into_iter().zip(10..) {
        assert_eq!(asked.await.unwrap(), Ok(Ok(number * 10)));
    }
    assert_eq!(
        bed.batches(),
        [
            (0, vec![10, 11, 12]),
            (0, vec![13, 14, 15]),
            (100, vec![16])
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn each_key_has_its_calls_and_windows() {
    let bed = Bed::new(limits(), Duration::ZERO);
    let first = bed.ask("a", 1).await;
    sleep(millis(50)).await;
    let second = bed.ask("b", 2).await;
    sleep(millis(30)).await;
    let third = bed.ask("a", 3).await;
    for (asked, expected) in [(first, 10), (second, 20), (third, 30)] {
        assert_eq!(asked.await.unwrap(), Ok(Ok(expected)));
    }
    let made: Vec<_> = bed
        .made()
        .into_iter()
        .map(|made| (made.key, made.millis, made.requests))
        .collect();
    assert_eq!(made, [("b", 150, vec![2]), ("a", 180, vec![1, 3])]);
}

#[tokio::test(start_paused = true)]
async fn each_caller_has_its_answer_also_to_the_same_question() {
    let bed = Bed::new(limits(), millis(5));
    let mut asked = Vec::new();
    for number in [3, 7, 1, 3] {
        asked.push(bed.ask("a", number).await);
    }
    let mut answers = Vec::new();
    for asked in asked {
        answers.push(asked.await.unwrap().unwrap());
    }
    assert_eq!(answers, [Ok(30), Err(No), Ok(10), Ok(30)]);
    assert_eq!(bed.batches(), [(100, vec![3, 7, 1, 3])]);
}

#[tokio::test(start_paused = true)]
async fn an_error_goes_to_all() {
    let bed = Bed::new(limits(), Duration::ZERO);
    let asked = [bed.ask("refused", 1).await, bed.ask("refused", 2).await];
    for asked in asked {
        let error = asked.await.unwrap().unwrap_err();
        assert_eq!(error, BatchError::Failed(No));
        assert_eq!(error.to_string(), "the cloud said no");
    }
    assert_eq!(bed.batches(), [(100, vec![1, 2])]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_takes_its_request_with_it() {
    let bed = Bed::new(limits(), millis(50));
    let gone = bed.ask("a", 1).await;
    let stays = bed.ask("a", 2).await;
    gone.abort();
    assert_eq!(stays.await.unwrap(), Ok(Ok(20)));
    assert_eq!(bed.batches(), [(100, vec![2])]);
    // Without any caller there is no call.
    let alone = bed.ask("a", 3).await;
    alone.abort();
    sleep(millis(500)).await;
    assert_eq!(bed.made().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_during_the_call_disturbs_no_other() {
    let bed = Bed::new(limits(), millis(50));
    let gone = bed.ask("a", 1).await;
    let stays = bed.ask("a", 2).await;
    sleep(millis(120)).await;
    gone.abort();
    assert_eq!(stays.await.unwrap(), Ok(Ok(20)));
    assert_eq!(bed.batches(), [(100, vec![1, 2])]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_goes_wrong_leaves_no_caller_waiting() {
    let bed = Bed::new(limits(), Duration::ZERO);
    let short = [bed.ask("short", 1).await, bed.ask("short", 2).await];
    let broken = bed.ask("broken", 3).await;
    let [first, second] = short;
    assert_eq!(first.await.unwrap(), Ok(Ok(10)));
    assert_eq!(second.await.unwrap(), Err(BatchError::Unanswered));
    assert_eq!(broken.await.unwrap(), Err(BatchError::Unanswered));
    let after = bed.ask("a", 4).await;
    assert_eq!(after.await.unwrap(), Ok(Ok(40)));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_calls_are_made_at_a_time() {
    let limits = BatchLimits {
        requests_max: NonZeroUsize::new(1).unwrap(),
        calls_max: NonZeroUsize::new(2).unwrap(),
        ..limits()
    };
    let bed = Bed::new(limits, millis(300));
    let mut asked = Vec::new();
    for number in 1..=5 {
        asked.push(bed.ask("a", number).await);
    }
    for asked in asked {
        assert!(asked.await.unwrap().is_ok());
    }
    let began: Vec<u128> = bed.made().iter().map(|made| made.millis).collect();
    assert_eq!(began, [0, 0, 300, 300, 600]);
    let waited: Vec<u128> = bed.made().iter().map(|made| made.waited_millis).collect();
    assert_eq!(waited, [0, 0, 300, 300, 600]);
}

#[tokio::test(start_paused = true)]
async fn callers_beyond_the_bound_wait_outside() {
    let limits = BatchLimits {
        waiting_max: NonZeroUsize::new(2).unwrap(),
        ..limits()
    };
    let bed = Bed::new(limits, Duration::ZERO);
    let mut asked = Vec::new();
    for number in 1..=5 {
        asked.push(bed.ask("a", number).await);
    }
    for (asked, number) in asked.into_iter().zip(1..) {
        assert_eq!(asked.await.unwrap(), Ok(Ok(number * 10)));
    }
    assert_eq!(
        bed.batches(),
        [(100, vec![1, 2]), (200, vec![3, 4]), (300, vec![5])]
    );
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_its_last_handle_once_calls_are_through() {
    let bed = Bed::new(limits(), millis(400));
    let asked = bed.ask("a", 1).await;
    sleep(millis(150)).await;
    asked.abort();
    let Bed {
        batcher,
        made,
        ended,
    } = bed;
    drop(batcher);
    sleep(millis(50)).await;
    assert!(!ended.load(Ordering::SeqCst), "a call is on its way");
    sleep(millis(400)).await;
    assert!(ended.load(Ordering::SeqCst));
    assert_eq!(made.lock().unwrap().len(), 1);
}
