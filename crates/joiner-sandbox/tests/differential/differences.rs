//! Differences that stay, each with its reason.

/// Where the two servers may differ. An entry that matches nothing fails the test.
pub(crate) struct Kept {
    /// The case; a star stands for anything.
    pub(crate) case: &'static str,
    /// The place, as in `Difference`; a star stands for anything.
    pub(crate) place: &'static str,
    /// Why it stays.
    pub(crate) reason: &'static str,
}

impl Kept {
    /// True when this entry is about that place of that case.
    pub(crate) fn covers(&self, case: &str, place: &str) -> bool {
        fits(self.case, case) && fits(self.place, place)
    }
}

/// True when the text has the parts between stars, in order.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    (0..=text.len()).any(|i| text.get(i..).is_some_and(|end| fits(rest, end)))
}

const DOCS: &str = "sentences of upstream's documentation; ours are our own";
const STORE: &str = "a hash about upstream's way of storing";
const BUILD: &str = "how the server was built";
const SCOPE: &str = "a kind that no autoscaler touches";
const PROCESS: &str = "needs a process or a kubelet, and pods of the sandbox are neither";
const YAML: &str = "clients ask for JSON and convert it themselves";
const PARSER: &str = "the words of a parser; code and reason agree";
const SCHEME: &str = "names of Go types and files; code and reason agree";
const TWICE: &str = "upstream checks this more than once and says so each time";
const ORDER: &str = "unknown fields come in the order of the document there, of the alphabet here";
const EVENT: &str = "empty fields of an event, which upstream treats differently in its two groups";
const PATCHED: &str = "the text quotes the whole object, in the order of Go structs";
const CRD: &str = "a definition is in force at once, and goes at once with its objects";

const fn kept(case: &'static str, place: &'static str, reason: &'static str) -> Kept {
    Kept {
        case,
        place,
        reason,
    }
}

/// The list.
pub(crate) const KEPT: &[Kept] = &[
    kept("*", "/columnDefinitions/*/description", DOCS),
    kept(
        "lists: watch as a table",
        "/*/object/columnDefinitions/*/description",
        DOCS,
    ),
    kept("*", "/resources/*/storageVersionHash", STORE),
    kept("paths: version", "/git*", BUILD),
    kept("paths: version", "/goVersion", BUILD),
    kept("paths: version", "/compiler", BUILD),
    kept(
        "paths: core versions",
        "/serverAddressByClientCIDRs/0/serverAddress",
        "the embedded server is called without a socket here, so there is no address",
    ),
    kept(
        "paths: groups",
        "/groups/admissionregistration.k8s.io",
        SCOPE,
    ),
    kept("paths: groups", "/groups/apiregistration.k8s.io", SCOPE),
    kept("paths: groups", "/groups/certificates.k8s.io", SCOPE),
    kept(
        "paths: groups",
        "/groups/flowcontrol.apiserver.k8s.io",
        SCOPE,
    ),
    kept("paths: groups", "/groups/networking.k8s.io", SCOPE),
    kept("paths: groups", "/groups/resource.k8s.io", SCOPE),
    kept(
        "paths: groups",
        "/groups/metrics.k8s.io",
        "the sandbox serves usage itself; upstream leaves that to an add-on",
    ),
    kept("paths: kinds of core", "/resources/bindings", SCOPE),
    kept(
        "paths: kinds of core",
        "/resources/componentstatuses",
        SCOPE,
    ),
    kept("paths: kinds of core", "/resources/podtemplates", SCOPE),
    kept(
        "paths: kinds of core",
        "/resources/replicationcontrollers*",
        SCOPE,
    ),
    kept("paths: kinds of core", "/resources/resourcequotas*", SCOPE),
    kept("paths: kinds of core", "/resources/*~1proxy", PROCESS),
    kept("paths: kinds of core", "/resources/pods~1attach", PROCESS),
    kept("paths: kinds of core", "/resources/pods~1exec", PROCESS),
    kept(
        "paths: kinds of core",
        "/resources/pods~1portforward",
        PROCESS,
    ),
    kept(
        "paths: kinds of core",
        "/resources/pods~1ephemeralcontainers",
        PROCESS,
    ),
    kept("paths: kinds of core", "/resources/pods~1resize", PROCESS),
    kept(
        "paths: post to a list of groups",
        "status",
        "upstream does not look at the method of this one path; ours refuses what makes no sense",
    ),
    kept("paths: accept yaml", "content-type", YAML),
    kept("paths: accept yaml", "/", YAML),
    kept("paths: body that is not JSON", "/message", PARSER),
    kept("paths: body that is no object", "/message", PARSER),
    kept("paths: body that is text", "/message", PARSER),
    kept("paths: empty body", "/message", PARSER),
    kept("paths: body in bad YAML", "/message", PARSER),
    kept("paths: body of another kind", "/message", SCHEME),
    kept("paths: body of another version", "/message", SCHEME),
    kept("paths: body of an unknown kind", "/message", SCHEME),
    kept("paths: patch that is not UTF-8", "/details/causes/*", TWICE),
    kept(
        "objects: create with what is the server's to say",
        "/metadata/generation",
        "a generation that nobody counts is of no use to anybody",
    ),
    kept(
        "objects: create with an unknown field, warned",
        "warning",
        ORDER,
    ),
    kept(
        "objects: create with an unknown field, strict",
        "/message",
        ORDER,
    ),
    kept(
        "objects: create an event",
        "/metadata/managedFields/0/fieldsV1/*",
        EVENT,
    ),
    kept(
        "objects: get the event in its other group",
        "/metadata/managedFields/0/fieldsV1/*",
        EVENT,
    ),
    kept(
        "objects: get the event in its other group",
        "/reporting*",
        EVENT,
    ),
    kept(
        "objects: review one's own access",
        "/metadata",
        "a review is answered, not stored: nobody owns its fields",
    ),
    kept(
        "lists: page with a bad token",
        "/message",
        "tokens are opaque, and so is what is wrong with them",
    ),
    kept("changes: merge patch of the kind", "*/message", PATCHED),
    kept(
        "changes: merge patch with a wrong type",
        "*/message",
        PATCHED,
    ),
    kept(
        "changes: merge patch with an unknown field, strict",
        "*/message",
        PATCHED,
    ),
    kept("changes: merge patch that is not JSON", "/message", PARSER),
    kept("apply: apply bad YAML", "/message", PARSER),
    kept(
        "pods: change what may not change",
        "*/message",
        "upstream prints a diff of its own structs; nobody can parse that",
    ),
    kept("pods: evict with another kind", "/message", SCHEME),
    kept(
        "deletes: delete with a body that is not JSON",
        "/message",
        PARSER,
    ),
    kept(
        "deletes: add a finalizer to what is deleted",
        "/details/causes/1",
        TWICE,
    ),
    kept("workloads: put a deployment as a scale", "/message", SCHEME),
    kept(
        "workloads: autoscaler in version 2",
        "/status/current*",
        "zeros that upstream's conversion adds or drops; they mean the same",
    ),
    kept("custom: definition", "/status/*", CRD),
    kept(
        "custom: definition with a bad rule",
        "*/message",
        "the reader of CEL words a syntax error in its own way",
    ),
    kept(
        "custom: widget with a wrong type",
        "/details/causes/*",
        "upstream looks further into a value of the wrong type",
    ),
    kept(
        "custom: widget with a wrong type",
        "/message",
        "upstream looks further into a value of the wrong type",
    ),
    kept("custom: widget without a kind", "/message", PARSER),
    kept(
        "custom: bad status of a widget",
        "*/message",
        "upstream leaves out the first word of the path, in the text alone",
    ),
    kept(
        "custom: accept protobuf of widgets",
        "status",
        "who takes only protobuf gets JSON anyway; every client we know takes both",
    ),
    kept("custom: drop the definition", "*", CRD),
];
