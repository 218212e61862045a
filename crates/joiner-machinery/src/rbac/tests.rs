use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

/// Roles and bindings in the order of their names.
#[derive(Default)]
struct Objects(Vec<Arc<Value>>);

impl Objects {
    fn with(mut self, object: Value) -> Self {
        self.0.push(Arc::new(object));
        self
    }

    fn role_with(self, name: &str, namespace: &str, rules: Value) -> Self {
        let kind = if namespace.is_empty() {
            "ClusterRole"
        } else {
            "Role"
        };
        self.with(
            json!({"kind": kind, "metadata": {"name": name, "namespace": namespace},
            "rules": rules}),
        )
    }

    /// A binding of a ClusterRole.
    fn bound(self, role: &str, namespace: &str, subject: Value) -> Self {
        let kind = if namespace.is_empty() {
            "ClusterRoleBinding"
        } else {
            "RoleBinding"
        };
        self.with(
            json!({"kind": kind, "metadata": {"name": role, "namespace": namespace},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [subject]}),
        )
    }

    fn all(&self, kind: &str, namespace: &str) -> Vec<Arc<Value>> {
        let is_one = |o: &&Arc<Value>| {
            o["kind"] == kind && o["metadata"]["namespace"].as_str().unwrap_or("") == namespace
        };
        self.0.iter().filter(is_one).cloned().collect()
    }
}

impl Policy for Objects {
    fn cluster_role(&self, name: &str) -> Option<Arc<Value>> {
        let mut all = self.all("ClusterRole", "").into_iter();
        all.find(|role| role["metadata"]["name"] == name)
    }

    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let mut all = self.all("Role", namespace).into_iter();
        all.find(|role| role["metadata"]["name"] == name)
    }

    fn cluster_role_bindings(&self) -> Vec<Arc<Value>> {
        self.all("ClusterRoleBinding", "")
    }

    fn role_bindings(&self, namespace: &str) -> Vec<Arc<Value>> {
        self.all("RoleBinding", namespace)
    }
}

fn user(name: &str) -> User {
    User {
        name: name.to_owned(),
        groups: vec![AUTHENTICATED.to_owned()],
        ..User::default()
    }
}

fn bob() -> Value {
    json!({"kind": "User", "name": "bob"})
}

/// `verb resource[.group][/sub] namespace name`, with `-` for none.
fn access(text: &str) -> Access {
    let words: Vec<&str> = text.split(' ').collect();
    let word = |i: usize| {
        words
            .get(i)
            .filter(|w| **w != "-")
            .map_or("", |w| *w)
            .to_owned()
    };
    if word(1).starts_with('/') {
        return Access::to_path(&word(0), &word(1));
    }
    let (full, subresource) = match word(1).split_once('/') {
        Some((full, sub)) => (full.to_owned(), sub.to_owned()),
        None => (word(1), String::new()),
    };
    let (resource, group) = full.split_once('.').unwrap_or((&full, ""));
    Access {
        verb: word(0),
        path: None,
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource,
        namespace: word(2),
        name: word(3),
    }
}

fn allowed(policy: &Objects, who: &User, text: &str) -> bool {
    authorize(policy, who, &access(text)).allowed
}

#[test]
fn rules_match_as_upstream_has_them() {
    let rules = json!([
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]},
        {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]},
        {"verbs": ["update"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]},
        {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]},
    ]);
    let policy = Objects::default()
        .role_with("r", "", rules)
        .bound("r", "", bob());
    let bob = user("bob");
    for (asked, expected) in [
        ("get pods a x", true),
        ("get pods - -", true),
        ("list pods a -", false),
        ("get pods/log a x", false),
        ("get replicationcontrollers/scale a x", true),
        ("get pods.metrics.k8s.io a x", false),
        ("delete deployments.apps/status a x", true),
        ("update configmaps a a", true),
        ("update configmaps a b", false),
        ("update configmaps a -", false),
        ("get /metrics", true),
        ("get /metrics/x", false),
        ("get /logs/x/y", true),
        ("post /metrics", false),
    ] {
        assert_eq!(allowed(&policy, &bob, asked), expected, "{asked}");
        assert!(!allowed(&policy, &user("jane"), asked), "{asked}");
        assert!(allowed(&policy, &User::administrator(), asked), "{asked}");
    }
}

#[test]
fn a_binding_holds_in_its_namespace_for_its_subjects() {
    let rules = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]);
    let account = json!({"kind": "ServiceAccount", "name": "robot"});
    let policy = Objects::default()
        .role_with("r", "", rules)
        .bound("r", "shop", account)
        .bound("r", "shop", json!({"kind": "Group", "name": "dev"}));
    let robot = User::service_account("shop", "robot", "");
    assert!(allowed(&policy, &robot, "list pods shop"));
    assert!(!allowed(&policy, &robot, "list pods other"));
    assert!(!allowed(&policy, &robot, "list pods -"));
    let other = User::service_account("other", "robot", "");
    assert!(!allowed(&policy, &other, "list pods shop"));
    let mut dev = user("any");
    assert!(!allowed(&policy, &dev, "list pods shop"));
    dev.groups.push("dev".to_owned());
    let decision = authorize(&policy, &dev, &access("list pods shop"));
    assert_eq!(
        decision.reason,
        "RBAC: allowed by RoleBinding \"r/shop\" of ClusterRole \"r\" to Group \"dev\""
    );
    let decision = authorize(&policy, &robot, &access("list pods shop"));
    assert_eq!(
        decision.reason,
        "RBAC: allowed by RoleBinding \"r/shop\" of ClusterRole \"r\" to ServiceAccount \"robot/shop\""
    );
}

#[test]
fn refusals_have_upstreams_words() {
    let policy = Objects::default().bound("gone", "", bob());
    for (who, asked, expected) in [
        (
            "jane",
            "list pods default",
            "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"",
        ),
        (
            "jane",
            "patch deployments.apps/scale shop web",
            "deployments.apps \"web\" is forbidden: User \"jane\" cannot patch resource \"deployments/scale\" in API group \"apps\" in the namespace \"shop\"",
        ),
        (
            "jane",
            "get /metrics",
            "forbidden: User \"jane\" cannot get path \"/metrics\"",
        ),
        (
            "bob",
            "get nodes - x",
            "nodes \"x\" is forbidden: User \"bob\" cannot get resource \"nodes\" in API group \"\" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found",
        ),
    ] {
        let error = check(&policy, &user(who), &access(asked)).unwrap_err();
        assert_eq!(
            (error.reason, error.message.as_str()),
            (Reason::Forbidden, expected)
        );
    }
}

#[test]
fn roles_grant_only_what_their_writer_has() {
    let held = json!([
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]},
    ]);
    let policy = Objects::default()
        .role_with("held", "", held)
        .bound("held", "a", bob());
    let write = |policy: &Objects, namespace, rules: Value, before: Option<&Value>| {
        let object = json!({"metadata": {"name": "new"}, "rules": rules});
        let write = Write {
            resource: "roles",
            namespace,
            before,
            object: &object,
        };
        check_write(policy, &user("bob"), &write).map_err(|error| error.message)
    };
    let rule = |verbs: &[&str], group: &str, resource: &str| json!([{"verbs": verbs, "apiGroups": [group], "resources": [resource]}]);
    assert_eq!(
        write(&policy, "a", rule(&["list", "get"], "", "pods"), None),
        Ok(())
    );
    assert_eq!(
        write(
            &policy,
            "a",
            rule(&["patch"], "apps", "deployments/scale"),
            None
        ),
        Ok(())
    );
    let refused = write(
        &policy,
        "a",
        rule(&["watch", "get", "delete"], "", "pods"),
        None,
    );
    assert_eq!(
        refused.unwrap_err(),
        "roles.rbac.authorization.k8s.io \"new\" is forbidden: user \"bob\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}"
    );
    assert!(write(&policy, "b", rule(&["get"], "", "pods"), None).is_err());
    // Who may escalate, may; and what is on its way out may go.
    let escalate = json!([{"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["roles"]}]);
    let may = Objects::default()
        .role_with("e", "", escalate)
        .bound("e", "a", bob());
    assert_eq!(write(&may, "a", rule(&["*"], "*", "*"), None), Ok(()));
    let before =
        json!({"metadata": {"name": "new", "finalizers": ["x"]}, "rules": rule(&["*"], "*", "*")});
    assert_eq!(
        write(&policy, "a", rule(&["*"], "*", "*"), Some(&before)),
        Ok(())
    );
}

#[test]
fn aggregates_take_an_administrator() {
    let held = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let policy = Objects::default()
        .role_with("held", "", held)
        .bound("held", "", bob());
    let mut object = json!({"metadata": {"name": "new"}, "rules": []});
    let write = |policy: &Objects, object: &Value| {
        let write = Write {
            resource: "clusterroles",
            namespace: "",
            before: None,
            object,
        };
        check_write(policy, &user("bob"), &write)
    };
    assert_eq!(write(&policy, &object), Ok(()));
    object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    // Every resource, so also the verb escalate.
    assert_eq!(write(&policy, &object), Ok(()));
    let some = json!([{"verbs": ["create"], "apiGroups": ["*"], "resources": ["*"]}]);
    let some = Objects::default()
        .role_with("held", "", some)
        .bound("held", "", bob());
    let refused = write(&some, &object).unwrap_err().message;
    assert!(refused.ends_with("must have cluster-admin privileges to use the aggregationRule"));
}

#[test]
fn bindings_give_only_what_their_writer_has_or_may_bind() {
    let policy = Objects::default()
        .role_with(
            "small",
            "",
            json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]),
        )
        .role_with(
            "large",
            "",
            json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]),
        )
        .role_with("other", "", json!([]))
        .role_with(
            "binder",
            "",
            json!([{"verbs": ["bind"], "apiGroups": [GROUP],
            "resources": ["clusterroles"], "resourceNames": ["large"]}]),
        )
        .bound("small", "", bob())
        .bound("binder", "a", bob());
    let write = |namespace: &str, role: &str| {
        let object = json!({"metadata": {"name": "new"},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}});
        let resource = if namespace.is_empty() {
            "clusterrolebindings"
        } else {
            "rolebindings"
        };
        let write = Write {
            resource,
            namespace,
            before: None,
            object: &object,
        };
        check_write(&policy, &user("bob"), &write).map_err(|error| error.reason)
    };
    assert_eq!(write("b", "small"), Ok(()));
    assert_eq!(write("a", "large"), Ok(()), "bob may bind it there");
    assert_eq!(write("b", "large"), Err(Reason::Forbidden));
    assert_eq!(write("", "large"), Err(Reason::Forbidden));
    assert_eq!(write("b", "none"), Err(Reason::NotFound));
}

#[test]
fn impersonation_takes_rights() {
    let rules = json!([{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"],
        "resourceNames": ["jane"]}]);
    let policy = Objects::default()
        .role_with("i", "", rules)
        .bound("i", "", bob());
    let asked = access("list pods a");
    let wanted = |name: &str, groups: &[&str]| Wanted {
        name: name.to_owned(),
        groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        ..Wanted::default()
    };
    let try_to = |wanted: &Wanted| impersonate(&policy, &user("bob"), wanted, &asked);
    let jane = try_to(&wanted("jane", &[])).unwrap();
    assert_eq!(
        (jane.name.as_str(), &jane.groups[..]),
        ("jane", &[AUTHENTICATED.to_owned()][..])
    );
    // Upstream tells of the first way that it tried.
    let refused = try_to(&wanted("eve", &[])).unwrap_err().message;
    assert_eq!(
        refused,
        "pods is forbidden: User \"bob\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"a\""
    );
    assert!(try_to(&wanted("jane", &["system:masters"])).is_err());
    let account = wanted("system:serviceaccount:a:robot", &[]);
    assert!(try_to(&account).is_err());
    let robot = impersonate(&policy, &User::administrator(), &account, &asked).unwrap();
    assert_eq!(robot, User::service_account("a", "robot", ""));
    let anonymous = wanted("system:anonymous", &[]);
    let anonymous = impersonate(&policy, &User::administrator(), &anonymous, &asked).unwrap();
    assert_eq!(anonymous, User::anonymous());
}

#[test]
fn constrained_impersonation_takes_both_rights() {
    let rules = json!([
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"],
         "resources": ["users", "groups"]},
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]},
    ]);
    let policy = Objects::default()
        .role_with("i", "", rules)
        .bound("i", "", bob());
    let as_jane = |groups: &[&str], asked: &str| {
        let wanted = Wanted {
            name: "jane".to_owned(),
            groups: groups.iter().map(|g| (*g).to_owned()).collect(),
            ..Wanted::default()
        };
        impersonate(&policy, &user("bob"), &wanted, &access(asked)).is_ok()
    };
    assert!(as_jane(&["dev"], "list pods a"));
    assert!(!as_jane(&["dev"], "get pods a x"));
    assert!(!as_jane(&["system:masters"], "list pods a"));
}

#[test]
fn every_cluster_starts_with_the_usual_roles() {
    let all = bootstrap::objects();
    let find = |kind: &str, name: &str| {
        let found = all
            .iter()
            .find(|(k, o)| *k == kind && o["metadata"]["name"] == name);
        found.map(|(_, o)| o.clone()).unwrap()
    };
    assert_eq!(
        find("clusterroles", "cluster-admin")["rules"][1],
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]})
    );
    let label = "rbac.authorization.k8s.io/aggregate-to-admin";
    assert_eq!(
        find("clusterroles", "edit")["metadata"]["labels"][label],
        "true"
    );
    assert_eq!(
        find("clusterroles", "system:aggregate-to-view")["rules"][0]["apiGroups"],
        json!([""])
    );
    for (_, object) in &all {
        for rule in object["rules"].as_array().into_iter().flatten() {
            assert!(rule.is_object(), "{object}");
        }
    }
    let policy = all
        .into_iter()
        .fold(Objects::default(), |policy, (_, o)| policy.with(o));
    assert!(allowed(
        &policy,
        &user("any"),
        "create selfsubjectaccessreviews.authorization.k8s.io"
    ));
    assert!(allowed(&policy, &user("any"), "get /apis/apps/v1"));
    assert!(allowed(&policy, &User::anonymous(), "get /healthz"));
    assert!(!allowed(&policy, &User::anonymous(), "get /apis"));
}
