//! A cloud together with what it does by itself: what a process is given to run.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, pending, select_all};

use crate::Cloud;

/// A cloud, and the tasks that go with it.
///
/// *Flow*: the process makes calls through [`Self::cloud`], runs [`Self::reads`] from its start to its
/// end, and [`Self::acts`] whenever it leads.
///
/// *Assumptions*: a task can be dropped at any moment and started anew later, by this process or
/// another one. It ends only when something is wrong.
pub struct Provider {
    /// Who sells machines.
    pub cloud: Arc<dyn Cloud>,
    reading: Vec<Task>,
    acting: Vec<Task>,
}

struct Task {
    name: &'static str,
    start: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |tasks: &[Task]| tasks.iter().map(|task| task.name).collect::<Vec<_>>();
        f.debug_struct("Provider")
            .field("cloud", &self.cloud.name())
            .field("reading", &names(&self.reading))
            .field("acting", &names(&self.acting))
            .finish()
    }
}

impl Provider {
    /// A cloud that does nothing by itself.
    #[must_use]
    pub fn new(cloud: Arc<dyn Cloud>) -> Self {
        Self {
            cloud,
            reading: Vec::new(),
            acting: Vec::new(),
        }
    }

    /// The same with a task that only reads, such as one that keeps prices up to date: it runs in
    /// every process, also where nothing may be changed.
    #[must_use]
    pub fn reading<F>(
        mut self,
        name: &'static str,
        start: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.reading.push(Task::new(name, start));
        self
    }

    /// The same with a task that changes something, such as one that ends leaked machines: it runs in
    /// the process that leads, and in no dry run.
    #[must_use]
    pub fn acting<F>(
        mut self,
        name: &'static str,
        start: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.acting.push(Task::new(name, start));
        self
    }

    /// Runs the tasks that only read; returns the name of the first one that ended.
    pub async fn reads(&self) -> &'static str {
        first_to_end(&self.reading).await
    }

    /// Runs the tasks that change something; returns the name of the first one that ended.
    pub async fn acts(&self) -> &'static str {
        first_to_end(&self.acting).await
    }
}

impl Task {
    fn new<F>(name: &'static str, start: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            name,
            start: Box::new(move || start().boxed()),
        }
    }
}

async fn first_to_end(tasks: &[Task]) -> &'static str {
    if tasks.is_empty() {
        return pending().await;
    }
    let run = |task: &Task| {
        let name = task.name;
        (task.start)().map(move |()| name).boxed()
    };
    let (name, _, _) = select_all(tasks.iter().map(run)).await;
    name
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
