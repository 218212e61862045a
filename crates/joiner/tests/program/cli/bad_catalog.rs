//! Catalog files with mistakes.

use serde_json::{Value, json};

use crate::cli::support::{
    Outcome, any_pool, documents, instance_type, plan_on, small_catalog, small_pod,
};

fn plan_for(types: &str) -> Outcome {
    plan_on(types, documents(&[&any_pool(), &small_pod("web")]), &[])
}

/// A catalog of one type with a changed field.
fn changed(pointer: &str, value: Value) -> String {
    let mut types = json!([instance_type("small", 2, 0.1)]);
    *types.pointer_mut(pointer).expect("the field is there") = value;
    types.to_string()
}

#[test]
fn the_small_catalog_is_good() {
    plan_for(&small_catalog()).exits(0).prints(&["small"]);
}

#[test]
fn text_that_is_no_list_of_types() {
    for text in ["", "{}", "null", "5", "[1]", "[{]"] {
        plan_for(text).fails_in_one_line(&["types.json:1"]);
    }
    plan_for(&"[".repeat(100_000)).fails_in_one_line(&["types.json:1"]);
}

#[test]
fn prices_are_numbers_that_are_not_negative() {
    let price = "/0/offerings/0/Price";
    let field = "offerings[0].Price";
    plan_for(&changed(price, json!(-1))).fails_in_one_line(&["instance type small", field]);
    plan_for(&changed(price, json!(1e300))).fails_in_one_line(&["instance type small", field]);
    plan_for(&changed(price, json!(null))).fails_in_one_line(&["instance type small", field]);
    plan_for(&changed(price, json!("0.1"))).fails_in_one_line(&["types.json:1:", field]);
    let text = changed(price, json!(4242)).replace("4242", "NaN");
    plan_for(&text).fails_in_one_line(&["types.json:1:", field]);
    let text = changed(price, json!(4242)).replace("4242", "1e999");
    plan_for(&text).fails_in_one_line(&["types.json:1:", field]);
    plan_for(&changed(price, json!(0)))
        .exits(0)
        .prints(&["Price $0.0000"]);
}

#[test]
fn types_without_room_hold_nothing() {
    for resources in [json!({}), json!({"cpu": "0", "memory": "0", "pods": "0"})] {
        plan_for(&changed("/0/resources", resources))
            .exits(2)
            .prints(&["no type large enough"]);
    }
}

#[test]
fn quantities_are_checked() {
    let cpu = "/0/resources/cpu";
    plan_for(&changed(cpu, json!("-4"))).fails_in_one_line(&["resources.cpu", "negative"]);
    plan_for(&changed(cpu, json!("x"))).fails_in_one_line(&["resources.cpu", "not a quantity"]);
}

#[test]
fn names_are_there_once() {
    plan_for(&changed("/0/name", json!(""))).fails_in_one_line(&["number 1", "no name"]);
    let twice = json!([
        instance_type("small", 2, 0.1),
        instance_type("small", 4, 0.2)
    ]);
    plan_for(&twice.to_string()).fails_in_one_line(&["instance type small", "twice", "remove"]);
}

#[test]
fn an_offering_has_one_value_of_each_label() {
    for requirement in [
        json!({"key": "a", "operator": "Foo", "values": ["b"]}),
        json!({"key": "a", "operator": "NotIn", "values": ["b"]}),
        json!({"key": "a", "operator": "In", "values": ["b", "c"]}),
    ] {
        let run = plan_for(&changed("/0/offerings/0/Requirements/0", requirement));
        run.fails_in_one_line(&["offerings[0].Requirements[0]", "exactly one value"]);
    }
}

#[test]
fn sold_out_types_are_called_sold_out() {
    let mut types = json!([instance_type("small", 2, 0.1)]);
    types[0]["offerings"][0]["Available"] = json!(false);
    types[0]["offerings"][1]["Available"] = json!(false);
    plan_for(&types.to_string()).exits(2).prints(&["sold out"]);
}

#[test]
fn a_catalog_may_start_with_a_byte_order_mark() {
    plan_for(&format!("\u{feff}{}", small_catalog())).exits(0);
}

#[test]
fn an_empty_catalog_is_called_empty() {
    let run = plan_for("[]");
    assert!(!run.stdout.contains("its own requirements"), "{run:?}");
}

#[test]
fn a_key_that_is_there_twice_is_an_error() {
    let text = small_catalog().replacen("\"name\"", "\"architecture\": \"arm64\", \"name\"", 1);
    plan_for(&text).fails_in_one_line(&["types.json:1:", "architecture: is there twice"]);
}
