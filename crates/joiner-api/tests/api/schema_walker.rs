//! The schema walker on schemas that are not ours.

use joiner_api::Schema;
use serde_json::{Value, json};

fn compile(schema: Value) -> Schema {
    Schema::compile(&schema).expect("it compiles")
}

fn errors(schema: &Value, object: &Value, old: Option<&Value>) -> Vec<String> {
    let found = compile(schema.clone()).validate(object, old);
    found
        .iter()
        .map(|error| format!("{}: {}", error.path, error.message))
        .collect()
}

#[track_caller]
fn one(schema: Value, object: Value, wanted: &str) {
    assert_eq!(errors(&schema, &object, None), [wanted]);
}

#[track_caller]
fn none(schema: Value, object: Value) {
    assert_eq!(errors(&schema, &object, None), Vec::<String>::new());
}

fn field(schema: Value) -> Value {
    json!({"type": "object", "properties": {"f": schema}})
}

#[test]
fn types() {
    for (kind, good, bad) in [
        ("string", json!("a"), json!(1)),
        ("integer", json!(1), json!(1.5)),
        ("integer", json!(2.0), json!("1")),
        ("integer", json!(-3), json!(1e300)),
        ("number", json!(1.5), json!("1")),
        ("boolean", json!(true), json!("true")),
        ("array", json!([]), json!({})),
        ("object", json!({}), json!([])),
    ] {
        none(field(json!({"type": kind})), json!({"f": good}));
        assert_eq!(
            errors(&field(json!({"type": kind})), &json!({"f": bad}), None).len(),
            1
        );
    }
    let either = field(json!({"x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}]}));
    none(either.clone(), json!({"f": 1}));
    none(either.clone(), json!({"f": "1"}));
    one(
        either,
        json!({"f": []}),
        "f: must be a whole number or a string, not a list",
    );
}

#[test]
fn nulls() {
    let nullable = field(json!({"type": "string", "nullable": true}));
    none(nullable.clone(), json!({"f": null}));
    let mut object = json!({"f": null});
    compile(nullable).apply_defaults(&mut object);
    assert_eq!(object, json!({"f": null}));
    compile(field(json!({"type": "string"}))).apply_defaults(&mut object);
    assert_eq!(object, json!({}));
    let list = field(json!({"type": "array", "items": {"type": "string"}}));
    one(
        list,
        json!({"f": [null]}),
        "f[0]: must be a string, not null",
    );
}

#[test]
fn numbers_and_sizes() {
    let number = field(
        json!({"type": "number", "minimum": 1, "exclusiveMinimum": true,
        "maximum": 10, "multipleOf": 0.5}),
    );
    none(number.clone(), json!({"f": 1.5}));
    one(number.clone(), json!({"f": 1}), "f: must be more than 1");
    one(number.clone(), json!({"f": 11}), "f: must be at most 10");
    one(number, json!({"f": 1.7}), "f: must be a multiple of 0.5");
    let below = field(json!({"type": "number", "maximum": 3, "exclusiveMaximum": true}));
    one(below, json!({"f": 3}), "f: must be less than 3");
    let text = field(json!({"type": "string", "minLength": 2, "maxLength": 3}));
    none(text.clone(), json!({"f": "\u{e4}\u{e4}\u{e4}"}));
    one(
        text.clone(),
        json!({"f": "a"}),
        "f: must have at least 2 characters, has 1",
    );
    one(
        text,
        json!({"f": "abcd"}),
        "f: must have at most 3 characters, has 4",
    );
    let map = field(
        json!({"type": "object", "minProperties": 1, "maxProperties": 1,
        "additionalProperties": {"type": "integer"}}),
    );
    one(map.clone(), json!({"f": {}}), "f: must not be empty");
    one(
        map.clone(),
        json!({"f": {"a": 1, "b": 2}}),
        "f: must have at most 1 entries, has 2",
    );
    one(
        map,
        json!({"f": {"a.b/c": "x"}}),
        "f[a.b/c]: must be a whole number, not a string",
    );
}

#[test]
fn lists() {
    let set = field(json!({"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "string"}}));
    none(set.clone(), json!({"f": ["a", "b"]}));
    one(
        set,
        json!({"f": ["a", "b", "a"]}),
        "f[2]: repeats an earlier item",
    );
    let map = field(json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "integer",
        "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "shrank"}]}}}}));
    let old = json!({"f": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]});
    one(
        map.clone(),
        json!({"f": [{"k": "a"}, {"k": "a"}]}),
        "f[1]: repeats an earlier item",
    );
    // Items are matched by key, whatever their order.
    let new = json!({"f": [{"k": "b", "v": 4}, {"k": "a", "v": 2}, {"k": "c", "v": 0}]});
    assert_eq!(errors(&map, &new, Some(&old)), ["f[0].v: shrank"]);
}

#[test]
fn alternatives() {
    let any = field(json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]}));
    none(any.clone(), json!({"f": "b"}));
    one(any, json!({"f": "c"}), "f: fits none of the alternatives");
    let single = field(json!({"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]}));
    none(single.clone(), json!({"f": "a"}));
    one(
        single,
        json!({"f": "ab"}),
        "f: must fit exactly one of the alternatives",
    );
    let never = field(json!({"type": "string", "not": {"enum": ["x"]}}));
    none(never.clone(), json!({"f": "a"}));
    one(never, json!({"f": "x"}), "f: has a form that is excluded");
    let all = field(json!({"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 3}]}));
    one(all, json!({"f": 4}), "f: must be at most 3");
}

#[test]
fn unknown_fields() {
    let schema = compile(json!({"type": "object", "properties": {
        "metadata": {"type": "object"},
        "closed": {"type": "object", "properties": {"known": {"type": "string"}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"inner": {"type": "object"}}},
        "map": {"type": "object", "additionalProperties": {"type": "object"}},
        "object": {"type": "object", "x-kubernetes-embedded-resource": true},
    }}));
    let mut object = json!({
        "apiVersion": "v1", "kind": "X", "metadata": {"anything": 1},
        "closed": {"known": "a", "knwon": "b"},
        "open": {"extra": 1, "inner": {"lost": 1}},
        "map": {"key": {"lost": 1}},
        "object": {"apiVersion": "v1", "kind": "Y", "metadata": {"name": "a"}, "lost": 1},
        "lost": 1,
    });
    let reported: Vec<String> = schema
        .unknown_fields(&object)
        .into_iter()
        .map(|field| field.path)
        .collect();
    let pruned = schema.prune(&mut object);
    let wanted = [
        "closed.knwon",
        "lost",
        "map[key].lost",
        "object.lost",
        "open.inner.lost",
    ];
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(reported), wanted);
    assert_eq!(sorted(pruned), wanted);
    assert_eq!(
        object,
        json!({
            "apiVersion": "v1", "kind": "X", "metadata": {"anything": 1},
            "closed": {"known": "a"},
            "open": {"extra": 1, "inner": {}},
            "map": {"key": {}},
            "object": {"apiVersion": "v1", "kind": "Y", "metadata": {"name": "a"}},
        })
    );
}

#[test]
fn defaults_are_completed() {
    let schema = compile(json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {}, "properties": {
            "b": {"type": "integer", "default": 1}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "c": {"type": "string", "default": "x"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "d": {"type": "boolean", "default": true}}}},
    }}));
    let mut object = json!({"list": [{}, {"c": "y"}], "map": {"k": {}}});
    schema.apply_defaults(&mut object);
    assert_eq!(
        object,
        json!({"a": {"b": 1}, "list": [{"c": "x"}, {"c": "y"}], "map": {"k": {"d": true}}})
    );
}

#[test]
fn rules() {
    let with_rules = |rules: Value| {
        json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
            "n": {"type": "integer"}, "if": {"type": "string"}, "a-b": {"type": "string"},
            "when": {"type": "string", "format": "date-time"}}})
    };
    let rule = |rule: &str| with_rules(json!([{"rule": rule}]));
    one(
        rule("self.n > 1"),
        json!({"n": 1}),
        ": breaks the rule self.n > 1",
    );
    none(
        rule("self.__if__ == 'x' && self.a__dash__b == 'y'"),
        json!({"if": "x", "a-b": "y"}),
    );
    none(
        rule("self.when < timestamp('2027-01-01T00:00:00Z')"),
        json!({"when": "2026-01-31T12:00:00Z"}),
    );
    let failing = errors(&rule("self.missing > 1"), &json!({}), None);
    assert!(
        failing[0].starts_with(": cannot check the rule self.missing > 1"),
        "{failing:?}"
    );
    let worded = with_rules(json!([{"rule": "self.n > 1", "messageExpression":
        "'got ' + string(self.n)", "fieldPath": ".n"}]));
    one(worded, json!({"n": 0}), ".n: got 0");
    let change = rule("self.n >= oldSelf.n");
    assert_eq!(errors(&change, &json!({"n": 1}), None).len(), 0);
    assert_eq!(
        errors(&change, &json!({"n": 1}), Some(&json!({"n": 2}))).len(),
        1
    );
    let optional = with_rules(
        json!([{"rule": "!oldSelf.hasValue() || oldSelf.value().n <= self.n",
        "optionalOldSelf": true}]),
    );
    assert_eq!(
        errors(&optional, &json!({"n": 1}), None),
        Vec::<String>::new()
    );
    assert_eq!(
        errors(&optional, &json!({"n": 1}), Some(&json!({"n": 2}))).len(),
        1
    );
}

#[test]
fn bad_schemas_are_errors() {
    for (schema, words) in [
        (field(json!({"type": "strong"})), "strong"),
        (field(json!({"type": "string", "pattern": "("})), "f: "),
        (
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self ==="}]}),
            "CEL",
        ),
        (json!([]), "the root"),
    ] {
        let text = Schema::compile(&schema).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
}
