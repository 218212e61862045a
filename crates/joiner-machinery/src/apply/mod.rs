//! Who owns which fields: server-side apply and the upkeep of `managedFields`.
//!
//! Each write leaves its mark. [`record`] serves creates, updates and patches: what a write changed
//! now belongs to the writer. [`apply`] serves server-side apply: the configuration is laid over the
//! object, fields that the writer applied before and no longer names go unless somebody else owns
//! them, and changing a field of somebody else is a conflict unless forced.
//!
//! Objects are compared as they are: entries of another version of the same kind count as entries of
//! this one, since nothing here converts between versions.

mod combine;
mod conflict;
mod entries;
mod fields;
mod walk;

use jiff::Timestamp;
use serde_json::{Map, Value};

use self::entries::{Entry, Operation};
use self::fields::Fields;
use crate::error::ApiError;
use crate::kinds::{Kind, Subresource};
use crate::merge_keys::Place;

/// Who writes, through what, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'w> {
    /// The name of the field manager; `unknown` when empty.
    pub manager: &'w str,
    /// The subresource that was written, nothing for the object itself.
    pub subresource: Option<&'w str>,
    /// The time of the request.
    pub now: Timestamp,
}

/// The annotation in which `kubectl apply` without `--server-side` remembers what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Who owns what was there before anybody applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields of the metadata that nobody owns.
const UNOWNED: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Brings `managedFields` of `after` up to date with a create (`before` is nothing), an update or a
/// patch.
///
/// Flow: the entries come from `after` when it has some, so that clients can edit them, and from
/// `before` otherwise; an empty list, or one with an empty entry, clears them. Everybody loses what
/// was changed or removed; the writer gets what was changed. An object that has lost its entries
/// stays without until somebody applies.
pub fn record(kind: &Kind, before: Option<&Value>, after: &mut Value, writer: &Writer<'_>) {
    let Some(mut entries) = entries_for(before, after, writer) else {
        return;
    };
    let empty = Value::Object(Map::new());
    let mut delta = walk::compare(Place::root(kind), before.unwrap_or(&empty), after);
    strip_unowned(&mut delta.changed);
    strip_reset(kind, writer.subresource, &mut delta.changed);
    strip_unsaid(kind, after, &mut delta.changed);
    delta.removed.remove("f:apiVersion");
    delta.removed.remove("f:kind");
    for entry in &mut entries {
        fields::subtract(&mut entry.fields, &delta.changed);
        fields::subtract(&mut entry.fields, &delta.removed);
    }
    if !delta.changed.is_empty() {
        let new = Entry::new(kind, writer, Operation::Update, delta.changed);
        match entries.iter_mut().find(|entry| entry.same_owner(&new)) {
            Some(entry) => {
                fields::add(&mut entry.fields, new.fields);
                entry.time = new.time;
            }
            None => entries.push(new),
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    entries::cap(&mut entries);
    entries::attach(after, entries);
}

/// The entries to start from, detached from `after`; nothing when ownership is not tracked.
fn entries_for(
    before: Option<&Value>,
    after: &mut Value,
    writer: &Writer<'_>,
) -> Option<Vec<Entry>> {
    let sent = entries::detach(after);
    let live = || {
        entries_of(before)
            .cloned()
            .and_then(entries::read)
            .unwrap_or_default()
    };
    let entries = match sent {
        // Nobody edits entries through a subresource; those that come back unchanged need no copy.
        Some(sent) if writer.subresource.is_none() || Some(&sent) == entries_of(before) => {
            if is_reset(&sent) {
                Vec::new()
            } else {
                entries::read(sent)
                    .filter(|sent| !sent.is_empty())
                    .unwrap_or_else(live)
            }
        }
        Some(_) | None => live(),
    };
    let tracked = before.is_none() || !entries.is_empty();
    tracked.then_some(entries)
}

fn entries_of(object: Option<&Value>) -> Option<&Value> {
    object?.get("metadata")?.get("managedFields")
}

fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        Some(_) | None => false,
    }
}

/// Server-side apply: the object that results, with its `managedFields`.
///
/// # Errors
///
/// 400 when the configuration is of another version or has `managedFields`, 409 with one cause per
/// field when others own what it changes, 500 when a list of it has items without keys or twice the
/// same, as upstream has it.
pub fn apply(
    kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    force: bool,
    writer: &Writer<'_>,
) -> Result<Value, ApiError> {
    let place = Place::root(kind);
    conflict::check_config(kind, place, config)?;
    let mut base = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let known = entries::detach(&mut base)
        .and_then(entries::read)
        .unwrap_or_default();
    let mut owners = Owners { known };
    if live.is_some() && owners.known.is_empty() {
        owners.known.extend(unclaimed(kind, place, &base, writer));
    }
    let mut set = walk::fields_of(place, config);
    strip_reset(kind, writer.subresource, &mut set);
    let mut mine = Entry::new(kind, writer, Operation::Apply, set);
    let last = owners.take(&mine);
    let mut object = combine::lay_over(place, &base, config);
    if let Some(last) = &last {
        object = owners.prune(place, object, last, &mine);
    }
    let mut delta = walk::compare(place, &base, &object);
    strip_reset(kind, writer.subresource, &mut delta.changed);
    if !force {
        let conflicts = owners.conflicts(&delta.changed);
        conflict::check(kind, place, &base, conflicts, writer)?;
    }
    for entry in &mut owners.known {
        fields::subtract(&mut entry.fields, &delta.changed);
        fields::subtract(&mut entry.fields, &delta.removed);
    }
    strip_unowned(&mut mine.fields);
    let is_new = last.as_ref().is_none_or(|last| last.fields != mine.fields);
    let same = object == base;
    combine::drop_nulls(place, &mut object);
    // An apply that changes nothing leaves no trace, not even its time.
    if same || (object == base && !is_new) {
        mine.time = last.and_then(|last| last.time);
    }
    owners.known.push(mine);
    conflict::sync_last_applied(&mut object, config, writer);
    entries::attach(&mut object, owners.known);
    Ok(object)
}

/// An entry for all that nobody has claimed so far.
fn unclaimed(kind: &Kind, place: Place<'_>, live: &Value, writer: &Writer<'_>) -> Option<Entry> {
    let mut all = walk::compare(place, &Value::Object(Map::new()), live).changed;
    strip_unowned(&mut all);
    strip_reset(kind, writer.subresource, &mut all);
    let before = Writer {
        manager: BEFORE_FIRST_APPLY,
        ..*writer
    };
    (!all.is_empty()).then(|| Entry::new(kind, &before, Operation::Update, all))
}

/// The entries of everybody but the one who applies.
struct Owners {
    known: Vec<Entry>,
}

impl Owners {
    fn take(&mut self, mine: &Entry) -> Option<Entry> {
        let at = self.known.iter().position(|entry| entry.same_owner(mine))?;
        Some(self.known.remove(at))
    }

    fn conflicts(&self, changed: &Fields) -> Vec<(&Entry, Fields)> {
        let entries = self.known.iter();
        let shared = entries.map(|entry| (entry, fields::common(&entry.fields, changed)));
        shared.filter(|(_, fields)| !fields.is_empty()).collect()
    }

    /// Takes out what the last configuration had, this one does not have, and nobody else owns.
    fn prune(&self, place: Place<'_>, object: Value, last: &Entry, mine: &Entry) -> Value {
        let last = walk::with_named(place, &last.fields);
        let mut owned = walk::with_named(place, &mine.fields);
        for entry in &self.known {
            fields::add(&mut owned, walk::with_named(place, &entry.fields));
        }
        let mut dropped = last.clone();
        fields::subtract(&mut dropped, &owned);
        if dropped.is_empty() {
            return object;
        }
        let all = walk::with_named(place, &walk::fields_of(place, &object));
        let mut rest = object.clone();
        combine::take_out(place, &mut rest, &last);
        let rest = walk::with_named(place, &walk::fields_of(place, &rest));
        // What went with something dropped, but belongs to somebody, comes back.
        let mut gone = all.clone();
        fields::subtract(&mut gone, &rest);
        fields::subtract(&mut gone, &owned);
        let mut kept = object.clone();
        combine::take_out(place, &mut kept, &gone);
        let kept = walk::with_named(place, &walk::fields_of(place, &kept));
        // So does what went, but was never applied.
        let mut gone = all;
        fields::subtract(&mut gone, &kept);
        let gone = fields::common(&gone, &last);
        let mut object = object;
        combine::take_out(place, &mut object, &gone);
        object
    }
}

/// Drops what nobody owns.
fn strip_unowned(set: &mut Fields) {
    set.remove("f:apiVersion");
    set.remove("f:kind");
    let Some(Value::Object(metadata)) = set.get_mut("f:metadata") else {
        return;
    };
    metadata.remove(".");
    for name in UNOWNED {
        metadata.remove(&fields::field_step(name)[..]);
    }
    if metadata.is_empty() {
        set.remove("f:metadata");
    }
}

/// Drops what an event does not say, which nobody owns.
fn strip_unsaid(kind: &Kind, object: &Value, set: &mut Fields) {
    if kind.kind != "Event" || kind.custom.is_some() {
        return;
    }
    set.retain(|step, _| {
        let field = step.strip_prefix("f:").and_then(|name| object.get(name));
        !matches!(field, Some(Value::Null)) && field.is_none_or(|value| value != "")
    });
}

/// Drops what a write through this path does not write: the status of the object, or all but the
/// status through the subresource.
fn strip_reset(kind: &Kind, subresource: Option<&str>, set: &mut Fields) {
    match subresource {
        None if kind.has(Subresource::Status) => {
            set.remove("f:status");
        }
        Some("status") => {
            set.remove("f:spec");
            if kind.custom.is_some() {
                set.remove("f:metadata");
            }
        }
        None | Some(_) => {}
    }
}
