//! All machines that this process knows of.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::Name;

use crate::faults::Quotas;
use crate::record::Record;

/// A machine with the version that it was read at.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Name of its ConfigMap.
    pub(crate) name: String,
    /// Version of its ConfigMap.
    pub(crate) version: String,
    /// The machine.
    pub(crate) record: Record,
}

/// All machines, fed by the watch and by our own writes, whichever is newer.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    loaded: bool,
    known: BTreeMap<String, Stored>,
    /// Virtual processors of machines that are being launched.
    coming: BTreeMap<String, u64>,
    /// Machines that we removed, until the watch says so too: it may still tell of their past.
    removed: BTreeSet<String>,
}

/// Versions are opaque, but servers count them up.
fn is_newer(version: &str, than: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    number(version) >= number(than)
}

impl Ledger {
    /// True once a list was read.
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Takes over a whole list.
    pub(crate) fn load(&mut self, all: Vec<Stored>) {
        self.loaded = true;
        let listed: BTreeSet<&str> = all.iter().map(|stored| stored.name.as_str()).collect();
        self.removed.retain(|name| listed.contains(name.as_str()));
        self.known.retain(|name, _| listed.contains(name.as_str()));
        for stored in all {
            self.note(stored);
        }
    }

    /// Takes over one machine, unless something newer is known.
    pub(crate) fn note(&mut self, stored: Stored) {
        self.coming.remove(&stored.name);
        if self.removed.contains(&stored.name) {
            return;
        }
        match self.known.get_mut(&stored.name) {
            Some(old) if !is_newer(&stored.version, &old.version) => {}
            Some(old) => *old = stored,
            None => {
                self.known.insert(stored.name.clone(), stored);
            }
        }
    }

    /// Forgets a machine that we removed.
    pub(crate) fn remove(&mut self, name: &str) {
        if self.known.remove(name).is_some() {
            self.removed.insert(name.to_owned());
        }
    }

    /// Forgets a machine that the watch says is gone.
    pub(crate) fn is_gone(&mut self, name: &str) {
        self.known.remove(name);
        self.removed.remove(name);
    }

    /// Sets quota aside for a machine that is about to be launched.
    ///
    /// # Errors
    /// What there is too much of.
    pub(crate) fn reserve(&mut self, name: &str, vcpus: u64, quotas: Quotas) -> Result<(), String> {
        let others = self.coming.iter().filter(|(other, _)| *other != name);
        let (n_coming, vcpus_coming) = others.fold((0, 0), |(n, sum), (_, v)| (n + 1, sum + v));
        let n_machines = self.known.len() as u64 + n_coming + 1;
        let used: u64 = self.known.values().map(|stored| stored.record.vcpus).sum();
        let vcpus_all = used + vcpus_coming + vcpus;
        if let Some(max) = quotas.max_instances.filter(|max| n_machines > *max) {
            return Err(format!("the quota of {max} instances is used up"));
        }
        if let Some(max) = quotas.max_vcpus.filter(|max| vcpus_all > *max) {
            return Err(format!("the quota of {max} vCPUs does not leave {vcpus}"));
        }
        self.coming.insert(name.to_owned(), vcpus);
        Ok(())
    }

    /// Gives back what was set aside for a launch that failed.
    pub(crate) fn release(&mut self, name: &str) {
        self.coming.remove(name);
    }

    /// How many machines run in each reservation.
    pub(crate) fn reserved(&self) -> BTreeMap<Name, u32> {
        let mut counts = BTreeMap::new();
        for stored in self.known.values() {
            if let Some(id) = &stored.record.reservation {
                *counts.entry(Name::from(id.as_str())).or_insert(0) += 1;
            }
        }
        counts
    }

    /// All machines by the names of their ConfigMaps.
    pub(crate) fn known(&self) -> &BTreeMap<String, Stored> {
        &self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn stored(name: &str, version: &str) -> Stored {
        Stored {
            name: name.to_owned(),
            version: version.to_owned(),
            record: record(),
        }
    }

    fn version<'l>(ledger: &'l Ledger, name: &str) -> Option<&'l str> {
        ledger
            .known()
            .get(name)
            .map(|stored| stored.version.as_str())
    }

    #[test]
    fn a_late_watch_does_not_bring_back_the_past() {
        let mut ledger = Ledger::default();
        ledger.note(stored("a", "10"));
        ledger.note(stored("a", "9"));
        assert_eq!(version(&ledger, "a"), Some("10"));
        ledger.remove("a");
        ledger.note(stored("a", "11"));
        assert_eq!(version(&ledger, "a"), None);
        ledger.is_gone("a");
        ledger.note(stored("a", "12"));
        assert_eq!(version(&ledger, "a"), Some("12"));
        ledger.load(vec![stored("b", "13")]);
        assert_eq!(version(&ledger, "a"), None);
        assert_eq!(version(&ledger, "b"), Some("13"));
    }

    #[test]
    fn quotas_count_machines_that_are_coming() {
        let quotas = Quotas {
            max_instances: Some(3),
            max_vcpus: Some(10),
        };
        let mut ledger = Ledger::default();
        ledger.note(stored("a", "1"));
        ledger.reserve("b", 4, quotas).unwrap();
        ledger.reserve("b", 4, quotas).unwrap();
        let error = ledger.reserve("c", 4, quotas).unwrap_err();
        assert_eq!(error, "the quota of 10 vCPUs does not leave 4");
        ledger.reserve("c", 2, quotas).unwrap();
        let error = ledger.reserve("d", 0, quotas).unwrap_err();
        assert_eq!(error, "the quota of 3 instances is used up");
        ledger.release("c");
        ledger.note(stored("b", "2"));
        ledger.reserve("d", 2, quotas).unwrap();
    }
}
