use std::collections::BTreeMap;

use super::*;

fn compute(text: &str, values: &[(&str, Option<f64>)]) -> Result<Option<f64>, String> {
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    let formula = Formula::parse(text, &names).map_err(|error| error.to_string())?;
    let owned = |(name, value): &(&str, Option<f64>)| ((*name).to_owned(), *value);
    let values: BTreeMap<String, Option<f64>> = values.iter().map(owned).collect();
    formula.number(&values).map_err(|error| error.to_string())
}

fn of(text: &str) -> Result<Option<f64>, String> {
    compute(text, &[("a", Some(2.0)), ("b", Some(5.0)), ("gone", None)])
}

#[test]
fn formulas_have_values() {
    for (text, value) in [
        ("a + b", 7.0),
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("-a ** 2", -4.0),
        ("2 ** 3 ** 2", 512.0),
        ("7 / 2", 3.5),
        ("7 % 4", 3.0),
        ("a > 1 ? b : 0", 5.0),
        ("a > 1 and not (b > 9) ? 1 : 2", 1.0),
        ("a < 1 || b == 5 ? 1 : 2", 1.0),
        ("count([a, b], {# > 2})", 1.0),
        ("count([a, b], # > 1) >= 2 ? 5 : 0", 5.0),
        ("sum([a, b])", 7.0),
        ("sum([a, b], # * 2)", 14.0),
        ("max(a, b) + min([a, b])", 7.0),
        ("mean([a, b])", 3.5),
        ("median(1, 2, 9)", 2.0),
        ("float(a) + int(5.9)", 7.0),
        ("let x = a * 2; let y = x + 1; y", 5.0),
        ("gone ?? 3 + a", 5.0),
        ("any([a, b], {# == 5}) ? 1 : 0", 1.0),
        ("[a, b][-1]", 5.0),
        ("[a, b] | max()", 5.0),
        ("len(filter([a, b], {# > 3}))", 1.0),
        ("sum(map(1..3, {# * a}))", 12.0),
        ("a in [1, 2] ? 1 : 0", 1.0),
        ("a not in [1, 2] ? 1 : 0", 0.0),
        ("ceil(a / b) + floor(2.5) + round(2.5) + abs(-1)", 7.0),
        ("1_000 + .5 + 1e2", 1100.5),
        ("a > 1 ? b > 9 ? 1 : 2 : 3", 2.0),
    ] {
        assert_eq!(of(text), Ok(Some(value)), "{text}");
    }
    assert_eq!(of("a / 0").unwrap(), Some(f64::INFINITY));
}

#[test]
fn nothing_is_a_value_only_where_the_formula_says_so() {
    assert_eq!(of("gone ?? nil"), Ok(None));
    assert_eq!(of("gone ?? a"), Ok(Some(2.0)));
    assert!(of("gone").unwrap_err().contains("nothing where a number"));
    assert!(
        of("gone + a")
            .unwrap_err()
            .contains("nothing where a number")
    );
}

#[test]
fn formulas_that_say_nothing() {
    for (text, why) in [
        ("", "the formula is empty"),
        ("a +", "the end does not belong there"),
        ("a b", "\"b\" does not belong there"),
        (
            "c + 1",
            "\"c\" is no name of a trigger; there are: a, b, gone",
        ),
        ("cosine(a)", "\"cosine\" is no function"),
        ("(a", "there is the end where \")\" should be"),
        ("a > 1", "true or false where a number"),
        ("# + 1", "# stands for an element"),
        ("a @ b", "'@' means nothing"),
        ("any([a])", "any takes 2 values, not 1"),
        ("a % 2", "% takes whole numbers"),
        ("5 % 0", "% by zero"),
        ("a ? 1 : 2", "a number where true or false should be"),
        ("[a][3]", "a list of 1 has no element 3"),
        ("'text", "has no end"),
        ("a > 1 ? c : 2", "\"c\" is no name"),
    ] {
        let error = of(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    let long = of("sum(map(1..9999, {sum(map(1..9999, {#}))}))");
    assert!(long.unwrap_err().contains("takes too long"));
    let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
    assert!(of(&deep).unwrap_err().contains("nested too deeply"));
}
