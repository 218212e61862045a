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
const PARSER: &str = "the words of a parser; code and reason agree";
const TWICE: &str = "upstream checks this more than once and says so each time";
const NUMBERS: &str = "numbers beyond 64 bits are not read here; code and reason agree";
const BYTES: &str =
    "names and selectors are text here: bytes that are none are replaced, not shown";
const PROTOBUF: &str = "answers are written as JSON or YAML; who reads protobuf reads JSON, too";
const DEPTH: &str = "nesting ends at 127 levels here, so that no body can use up the stack";
const PATCHED: &str = "the text quotes the whole object, in the order of Go structs";

const MODES: &str = "upstream tries first what let this user be somebody else the last time; ours \
    asks in one order";
const ADMIN: &str = "who administers is the cluster's choice";

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
    kept(
        "paths: kinds of core",
        "/resources/replicationcontrollers*",
        SCOPE,
    ),
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
    kept("paths: body in bad YAML", "/message", PARSER),
    kept("paths: patch that is not UTF-8", "/details/causes/*", TWICE),
    kept(
        "objects: create with what is the server's to say",
        "/metadata/generation",
        "a generation that nobody counts is of no use to anybody",
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
    kept("apply: apply bad YAML", "/message", PARSER),
    kept(
        "pods: change what may not change",
        "*/message",
        "upstream prints a diff of its own structs; nobody can parse that",
    ),
    kept(
        "deletes: add a finalizer to what is deleted",
        "/details/causes/1",
        TWICE,
    ),
    kept(
        "custom: bad status of a widget",
        "*/message",
        "upstream leaves out the first word of the path, in the text alone",
    ),
    kept(
        "custom: accept protobuf of widgets",
        "content-type",
        PROTOBUF,
    ),
    kept("custom: accept protobuf of widgets", "/", PROTOBUF),
    kept("hostile: accept protobuf alone", "content-type", PROTOBUF),
    kept("hostile: accept protobuf alone", "/", PROTOBUF),
    kept(
        "kinds: kinds of networking",
        "/resources/ipaddresses",
        SCOPE,
    ),
    kept(
        "kinds: kinds of networking",
        "/resources/servicecidrs*",
        SCOPE,
    ),
    kept("hostile: nested, but not too deeply", "status", DEPTH),
    kept("hostile: deep YAML", "/message", PARSER),
    kept("hostile: huge number for a large one", "/message", NUMBERS),
    kept("hostile: number beyond all bounds", "/message", NUMBERS),
    kept("hostile: YAML that refers to itself", "/message", PARSER),
    kept("hostile: YAML that grows", "/message", PARSER),
    kept("hostile: YAML with tabs", "/message", PARSER),
    kept("hostile: YAML with a key twice", "warning", PARSER),
    kept(
        "hostile: bytes that are no text in a path",
        "/message",
        BYTES,
    ),
    kept(
        "hostile: bytes that are no text in a selector",
        "/message",
        BYTES,
    ),
    kept(
        "hostile: strategic patch with a number for a list",
        "*/message",
        PATCHED,
    ),
    kept(
        "hostile: strategic patch with numbers in a list of mappings",
        "/message",
        PATCHED,
    ),
    kept(
        "hostile: strategic patch with a directive that is a number",
        "/message",
        "upstream prints the number with a verb for texts",
    ),
    kept("hostile: apply of a wrong type", "/message", PARSER),
    kept(
        "hostile: accept YAML of a table",
        "/columnDefinitions*",
        DOCS,
    ),
    kept("rights: whoami: a node", "/status/userInfo/groups/*", MODES),
    kept("rights: impersonation: as jane of ops", "*", MODES),
    kept("rights: impersonation: as jane of the masters", "*", MODES),
    kept(
        "rights: first role *",
        "/metadata/managedFields/0/fieldsV1/f:rules",
        "rules that are null are noted as said here, and nobody owns them there",
    ),
    kept(
        "rights: whoami: the administrator",
        "/status/userInfo/*",
        ADMIN,
    ),
];
