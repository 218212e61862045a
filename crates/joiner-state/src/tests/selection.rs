use super::*;

#[test]
fn node_affinity_that_no_api_server_takes_is_an_error() {
    let path = "in.yaml:1: Pod default/p: spec.affinity.nodeAffinity.";
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let known = "In, NotIn, Exists, DoesNotExist, Gt, Lt";
    let refusal = |affinity: &str| {
        refused(&pod_with(&format!(
            "{{affinity: {{nodeAffinity: {{{affinity}}}}}}}"
        )))
    };
    for empty in ["{nodeSelectorTerms: []}", "{}", "{nodeSelectorTerms: null}"] {
        assert_eq!(
            refusal(&format!("{required}: {empty}")),
            format!(
                "{path}{required}.nodeSelectorTerms: there must be at least one term; remove the \
                 list if every node will do"
            )
        );
    }
    for (expression, field, problem) in [
        (
            "{key: k, operator: Foo}",
            "operator",
            format!("\"Foo\" is not one of {known}"),
        ),
        (
            "{key: k, operator: Gte, values: ['1']}",
            "operator",
            format!("\"Gte\" is not one of {known}"),
        ),
        (
            "{key: k}",
            "operator",
            format!("there is no operator; write one of {known}"),
        ),
        (
            "{key: k, operator: In}",
            "values",
            "In needs at least one value".into(),
        ),
        (
            "{key: k, operator: NotIn, values: []}",
            "values",
            "NotIn needs at least one value".into(),
        ),
        (
            "{key: k, operator: Exists, values: [a]}",
            "values",
            "Exists takes no values; remove them".into(),
        ),
        (
            "{key: k, operator: DoesNotExist, values: [a]}",
            "values",
            "DoesNotExist takes no values; remove them".into(),
        ),
        (
            "{key: k, operator: Gt, values: ['1', '2']}",
            "values",
            "Gt needs exactly one value, not 2".into(),
        ),
        (
            "{key: k, operator: Lt}",
            "values",
            "Lt needs exactly one value, not 0".into(),
        ),
        (
            "{key: k, operator: Gt, values: [many]}",
            "values",
            "Gt needs a whole number, not \"many\"".into(),
        ),
        ("{operator: Exists}", "key", "\"\" must not be empty".into()),
    ] {
        let terms = format!("[{{}}, {{matchExpressions: [{expression}]}}]");
        assert_eq!(
            refusal(&format!("{required}: {{nodeSelectorTerms: {terms}}}")),
            format!("{path}{required}.nodeSelectorTerms[1].matchExpressions[0].{field}: {problem}")
        );
        let wish = format!("[{{weight: 1, preference: {{matchExpressions: [{expression}]}}}}]");
        assert_eq!(
            refusal(&format!("{preferred}: {wish}")),
            format!("{path}{preferred}[0].preference.matchExpressions[0].{field}: {problem}")
        );
    }
    assert_eq!(
        refusal(&format!("{preferred}: [{{weight: 101, preference: {{}}}}]")),
        format!("{path}{preferred}[0].weight: must be from 1 to 100, not 101")
    );
    let field = "{matchFields: [{key: metadata.name, operator: Exists}]}";
    assert_eq!(
        refusal(&format!("{required}: {{nodeSelectorTerms: [{field}]}}")),
        format!(
            "{path}{required}.nodeSelectorTerms[0].matchFields[0].operator: \"Exists\" is not one \
             of In, NotIn"
        )
    );
}

#[test]
fn label_selectors_that_no_api_server_takes_are_an_error() {
    let spread = |selector: &str| {
        pod_with(&format!(
            "{{topologySpreadConstraints: [{{topologyKey: z, maxSkew: 1, labelSelector: {selector}}}]}}"
        ))
    };
    for (expression, problem) in [
        (
            "{key: a, operator: Gt, values: ['1']}",
            "operator: \"Gt\" is not one of In, NotIn, Exists, DoesNotExist",
        ),
        (
            "{key: a, operator: In}",
            "values: In needs at least one value",
        ),
        (
            "{key: a, operator: Exists, values: [b]}",
            "values: Exists takes no values; remove them",
        ),
    ] {
        let selector = format!("{{matchExpressions: [{expression}]}}");
        assert_eq!(
            refused(&spread(&selector)),
            format!(
                "in.yaml:1: Pod default/p: spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].{problem}"
            )
        );
        let term = format!(
            "{{affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             [{{topologyKey: z, namespaceSelector: {selector}}}]}}}}}}"
        );
        assert_eq!(
            refused(&pod_with(&term)),
            format!(
                "in.yaml:1: Pod default/p: spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector.matchExpressions[0].{problem}"
            )
        );
        let workload = format!(
            "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web}}, spec: {{template: {{}}, selector: {selector}}}}}"
        );
        assert_eq!(
            refused(&workload),
            format!(
                "in.yaml:1: ReplicaSet default/web: spec.selector.matchExpressions[0].{problem}"
            )
        );
    }
}

#[test]
fn a_selector_of_what_is_no_label_selects_nothing_and_is_told_once() {
    let one = pod_with(
        "{topologySpreadConstraints: [{topologyKey: z, maxSkew: 1, labelSelector: {matchLabels: {app: '{{ x }}'}}}]}",
    );
    let input = read(&format!("{one}---\n{}", one.replace("name: p", "name: q")));
    assert_eq!(shape(&input.problem, "default/p").spreads[0].selector, None);
    assert_eq!(
        input.warnings,
        [
            "Pod default/p: a label selector selects nothing: value \"{{ x }}\" of \"app\" must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        ]
    );
}
