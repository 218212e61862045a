//! What happens to an object between a request and the store: reading, defaults, admission and
//! validation, in the order of a real API server.

use std::sync::Arc;

use jiff::Timestamp;
use joiner_machinery::admission::{self, Context, Lookup};
use joiner_machinery::apply::{self, Writer};
use joiner_machinery::kinds::fields;
use joiner_machinery::{ApiError, Subresource, defaults, meta, validate};
use serde_json::{Value, json};

use crate::exchange::Request;
use crate::registry::Served;
use crate::store::Inner;
use crate::verbs::twice;

/// Drops fields that the kind does not have. What comes of them is the client's choice: nothing, a
/// warning each, or an error.
pub(crate) fn read(
    served: &Served,
    object: &mut Value,
    request: &Request,
) -> Result<Vec<String>, ApiError> {
    read_body(served, object, request, Vec::new())
}

/// The same for a body that says some fields twice.
pub(crate) fn read_body(
    served: &Served,
    object: &mut Value,
    request: &Request,
    twice: Vec<String>,
) -> Result<Vec<String>, ApiError> {
    let kind = &served.kind;
    let mut unknown = twice;
    unknown.extend(match &served.rules {
        Some(rules) => rules.decode(kind, object)?,
        None => fields::decode(kind, object)?,
    });
    if served.rules.is_none() && unknown.len() > 1 && !request.body.is_empty() {
        // Upstream tells of fields in the order in which it reads them.
        let text = String::from_utf8_lossy(&request.body);
        twice::sort(&text, &mut unknown);
    }
    match request.param("fieldValidation") {
        Some("Strict") if !unknown.is_empty() => Err(fields::strict_error(kind, &unknown)),
        Some("Ignore") => Ok(Vec::new()),
        Some(_) | None => Ok(unknown),
    }
}

/// Fills in what a built-in kind always says, and drops nulls.
pub(crate) fn fill(served: &Served, object: &mut Value) -> Result<(), ApiError> {
    if served.rules.is_none() {
        fields::decode(&served.kind, object)?;
    }
    Ok(())
}

/// Who writes, and whether server-side apply has noted that already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note<'a> {
    pub(crate) writer: Writer<'a>,
    pub(crate) applied: bool,
}

/// Completes and judges a new object.
pub(crate) fn create(
    store: &Inner,
    served: &Served,
    object: &mut Value,
    uid: &str,
    note: &Note<'_>,
) -> Result<(), ApiError> {
    let kind = &served.kind;
    match &served.rules {
        Some(rules) => rules.apply_defaults(object),
        None => defaults::apply(kind, object),
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // Nobody is born dying.
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
    }
    if kind.is("apps", "DaemonSet") {
        // A default in all but name: who creates the object owns it.
        object["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = json!("1");
    }
    if !note.applied {
        apply::record(kind, None, object, &note.writer);
    }
    let around = Around(store);
    admission::prepare_create(kind, object, &context(uid, &around, note.writer.now))?;
    if let Some(rules) = &served.rules {
        // The status that a client gave is dropped, and one may have a default: that is what is read.
        rules.apply_defaults(object);
    }
    let causes = match &served.rules {
        Some(rules) => rules.create(kind, object),
        None => validate::create(kind, object),
    };
    if !causes.is_empty() {
        return Err(ApiError::invalid(kind, meta::name(object), &causes));
    }
    Ok(())
}

/// Completes and judges the new version of an object.
pub(crate) fn update(
    store: &Inner,
    served: &Served,
    before: &Value,
    object: &mut Value,
    (subresource, note): (Option<Subresource>, &Note<'_>),
) -> Result<(), ApiError> {
    let kind = &served.kind;
    let around = Around(store);
    match &served.rules {
        Some(rules) => rules.apply_defaults(object),
        None => defaults::apply(kind, object),
    }
    let context = context(meta::uid(before), &around, note.writer.now);
    admission::prepare_update(kind, before, object, subresource, &context)?;
    if !note.applied {
        apply::record(kind, Some(before), object, &note.writer);
    }
    if subresource == Some(Subresource::Binding) {
        return Ok(());
    }
    let causes = match (&served.rules, subresource) {
        (Some(rules), _) => rules.update(kind, before, object),
        (None, Some(Subresource::Status)) => validate::update_status(before, object),
        (None, _) => validate::update(kind, before, object),
    };
    if !causes.is_empty() {
        return Err(ApiError::invalid(kind, meta::name(before), &causes));
    }
    Ok(())
}

fn context<'c>(uid: &'c str, around: &'c Around<'c>, now: Timestamp) -> Context<'c> {
    Context {
        now,
        uid,
        lookup: around,
        default_service_account: true,
    }
}

/// The rest of the cluster.
struct Around<'s>(&'s Inner);

impl Around<'_> {
    fn all(&self, group: &str, plural: &str) -> impl Iterator<Item = &Arc<Value>> {
        let resource = (group.to_owned(), plural.to_owned());
        let objects = self.0.objects(&resource);
        objects.into_iter().flat_map(|objects| objects.values())
    }

    fn named(&self, group: &str, plural: &str, name: &str) -> Option<Arc<Value>> {
        let resource = (group.to_owned(), plural.to_owned());
        self.0
            .get(&resource, &(String::new(), name.to_owned()))
            .cloned()
    }
}

impl Lookup for Around<'_> {
    fn priority_class(&self, name: &str) -> Option<Arc<Value>> {
        self.named("scheduling.k8s.io", "priorityclasses", name)
    }

    fn default_priority_class(&self) -> Option<Arc<Value>> {
        let mut all = self.all("scheduling.k8s.io", "priorityclasses");
        all.find(|class| class["globalDefault"] == json!(true))
            .cloned()
    }

    fn runtime_class(&self, name: &str) -> Option<Arc<Value>> {
        self.named("node.k8s.io", "runtimeclasses", name)
    }

    fn default_storage_class(&self) -> Option<String> {
        let mut all = self.all("storage.k8s.io", "storageclasses");
        let marked = |class: &&Arc<Value>| {
            let mark = "storageclass.kubernetes.io/is-default-class";
            meta::annotation(class, mark) == Some("true")
        };
        all.find(marked).map(|class| meta::name(class).to_owned())
    }

    fn is_address_taken(&self, address: &str) -> bool {
        let mut all = self.all("", "services");
        all.any(|service| service["spec"]["clusterIP"] == address)
    }

    fn is_node_port_taken(&self, port: u16) -> bool {
        let mut all = self.all("", "services");
        all.any(|service| {
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            ports.into_iter().any(|p| p["nodePort"] == json!(port))
        })
    }
}
