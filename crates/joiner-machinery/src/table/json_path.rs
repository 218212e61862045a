//! Where a printer column takes its value from: the part of JSONPath that CRDs use.

use serde_json::Value;

/// A path as a list of steps.
pub(super) struct JsonPath(Vec<Step>);

enum Step {
    /// A field by name.
    Field(String),
    /// An item by place; from the end when negative.
    Item(i64),
    /// Everything below.
    All,
    /// The items for which a test holds.
    Where(Test),
}

struct Test {
    /// From the item (`@`) down.
    path: JsonPath,
    /// None asks only whether anything is there.
    compared: Option<(Comparison, Value)>,
}

#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Two characters before one, so that `<=` is not read as `<`.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl JsonPath {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`; none when it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim().strip_prefix('$').unwrap_or(text.trim());
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let end = closing_bracket(after)?;
                steps.push(bracket(after[..end].trim())?);
                rest = &after[end + 1..];
            } else {
                let (name, after) = field(rest.strip_prefix('.').unwrap_or(rest))?;
                if name == "*" {
                    steps.push(Step::All);
                } else if !name.is_empty() {
                    steps.push(Step::Field(name));
                }
                rest = after;
            }
        }
        Some(Self(steps))
    }

    /// The first value that the path leads to.
    pub(super) fn first<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        first(&self.0, root)
    }
}

fn first<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        Step::Field(name) => first(rest, value.get(name.as_str())?),
        Step::Item(place) => {
            let list = value.as_array()?;
            let place = match usize::try_from(*place) {
                Ok(place) => place,
                Err(_) => list
                    .len()
                    .checked_sub(usize::try_from(place.unsigned_abs()).ok()?)?,
            };
            first(rest, list.get(place)?)
        }
        Step::All => match value {
            Value::Array(list) => list.iter().find_map(|item| first(rest, item)),
            Value::Object(map) => map.values().find_map(|item| first(rest, item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        },
        Step::Where(test) => {
            let list = value.as_array()?.iter();
            list.filter(|item| test.holds(item))
                .find_map(|item| first(rest, item))
        }
    }
}

impl Test {
    fn holds(&self, item: &Value) -> bool {
        let Some(found) = self.path.first(item) else {
            return false;
        };
        let Some((comparison, with)) = &self.compared else {
            return true;
        };
        let order = match (found, with) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (a, b) => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => a.partial_cmp(&b),
                _ => None,
            },
        };
        let Some(order) = order else {
            return matches!(comparison, Comparison::NotEqual);
        };
        match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A name up to the next unescaped dot or bracket, and what comes after it.
fn field(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => return Some((name, &text[at..])),
            other => name.push(other),
        }
    }
    Some((name, ""))
}

/// Where the bracket that is open closes, quotes and inner brackets aside.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(name) = quoted(text) {
        return Some(Step::Field(name.replace("\\.", ".")));
    }
    if let Some(test) = text.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
        return condition(test).map(Step::Where);
    }
    text.parse().ok().map(Step::Item)
}

fn condition(text: &str) -> Option<Test> {
    let split = COMPARISONS.iter().find_map(|(sign, comparison)| {
        let (left, right) = text.split_once(sign)?;
        Some((left, *comparison, right))
    });
    let (left, compared) = match split {
        Some((left, comparison, right)) => (left, Some((comparison, literal(right.trim())?))),
        None => (text, None),
    };
    let path = JsonPath::parse(left.trim().strip_prefix('@')?)?;
    Some(Test { path, compared })
}

fn literal(text: &str) -> Option<Value> {
    match quoted(text) {
        Some(text) => Some(Value::from(text)),
        None => serde_json::from_str(text).ok(),
    }
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_first_values() {
        let object = json!({
            "metadata": {"labels": {"topology.kubernetes.io/zone": "z1", "a": "b"}},
            "spec": {"list": ["x", 2, {"b": 1.5}], "size": 3, "empty": [], "nothing": null},
            "status": {"conditions": [
                {"type": "Synced", "status": "True", "n": 1},
                {"type": "Ready", "status": "False", "n": 5},
            ]},
        });
        let cases = [
            (".spec.size", Some(json!(3))),
            ("spec.size", Some(json!(3))),
            ("$.spec.size", Some(json!(3))),
            (".spec['size']", Some(json!(3))),
            (".spec.nope.deeper", None),
            (".spec.list[0]", Some(json!("x"))),
            (".spec.list[-1].b", Some(json!(1.5))),
            (".spec.list[-4]", None),
            (".spec.list[9]", None),
            (".spec.list[*]", Some(json!("x"))),
            (".spec.list[*].b", Some(json!(1.5))),
            (".spec.empty[*]", None),
            (".spec.nothing", Some(Value::Null)),
            (
                r".metadata.labels.topology\.kubernetes\.io/zone",
                Some(json!("z1")),
            ),
            (
                r".metadata.labels['topology\.kubernetes\.io/zone']",
                Some(json!("z1")),
            ),
            (
                r#".metadata.labels["topology.kubernetes.io/zone"]"#,
                Some(json!("z1")),
            ),
            (
                r#".status.conditions[?(@.type=="Ready")].status"#,
                Some(json!("False")),
            ),
            (
                ".status.conditions[?(@.type == 'Ready')].status",
                Some(json!("False")),
            ),
            (
                ".status.conditions[?(@.type!='Ready')].status",
                Some(json!("True")),
            ),
            (".status.conditions[?(@.n>=2)].type", Some(json!("Ready"))),
            (".status.conditions[?(@.n<2)].type", Some(json!("Synced"))),
            (".status.conditions[?(@.nope)].type", None),
            (".status.conditions[?(@.n)].type", Some(json!("Synced"))),
            (r#".status.conditions[?(@.type=="]")].status"#, None),
        ];
        for (path, expected) in cases {
            let parsed = JsonPath::parse(path).unwrap();
            assert_eq!(parsed.first(&object), expected.as_ref(), "{path}");
        }
    }

    #[test]
    fn what_is_not_a_path_is_refused() {
        for path in [".a[", ".a[x]", ".a[?(x==1)]", ".a[?(@.b==c)]", ".a\\"] {
            assert!(JsonPath::parse(path).is_none(), "{path}");
        }
    }
}
