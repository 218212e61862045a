//! Which objects do selectors and node terms choose?

use serde_json::Value;

/// The labels of an object, in order of key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// Reads a map of strings; whatever is not a string is left out.
    pub(crate) fn read(map: &Value) -> Self {
        let mut pairs: Vec<(Box<str>, Box<str>)> = map
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect();
        // The JSON map may keep the order of the text.
        pairs.sort_unstable();
        Self(pairs.into())
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let ix = self.0.binary_search_by(|(own, _)| (**own).cmp(key)).ok()?;
        self.0.get(ix).map(|(_, value)| &**value)
    }
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operator {
    /// One of the values.
    In,
    /// None of the values, or no label.
    NotIn,
    /// Any value.
    Exists,
    /// No label.
    DoesNotExist,
    /// A number above the value.
    Gt,
    /// A number below the value.
    Lt,
    /// A word that nobody knows: it matches nothing.
    Unknown,
}

/// One condition on one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requirement {
    key: Box<str>,
    operator: Operator,
    values: Box<[Box<str>]>,
}

impl Requirement {
    /// The key has exactly this value.
    pub(crate) fn equals(key: &str, value: &str) -> Self {
        Self {
            key: key.into(),
            operator: Operator::In,
            values: [value.into()].into(),
        }
    }

    fn read(expression: &Value) -> Self {
        let operator = match expression["operator"].as_str().unwrap_or("") {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::Gt,
            "Lt" => Operator::Lt,
            _ => Operator::Unknown,
        };
        Self {
            key: expression["key"].as_str().unwrap_or("").into(),
            operator,
            values: texts(&expression["values"]).map(Into::into).collect(),
        }
    }

    fn accepts(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|own| **own == *value));
        let number = |text: &str| text.parse::<i64>().ok();
        let numbers = || Some((number(value?)?, number(self.values.first()?)?));
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => numbers().is_some_and(|(own, limit)| own > limit),
            Operator::Lt => numbers().is_some_and(|(own, limit)| own < limit),
            Operator::Unknown => false,
        }
    }
}

/// A label selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Selector {
    /// All must hold; nothing at all is chosen when absent.
    all: Option<Vec<Requirement>>,
}

impl Selector {
    /// Reads `matchLabels` and `matchExpressions`; null chooses nothing, `{}` everything.
    pub(crate) fn read(selector: &Value) -> Self {
        if selector.is_null() {
            return Self { all: None };
        }
        let mut all = equalities(&selector["matchLabels"]);
        all.extend(items(&selector["matchExpressions"]).map(Requirement::read));
        all.sort_unstable();
        all.dedup();
        Self { all: Some(all) }
    }

    /// Chooses by a plain map, as Services do.
    pub(crate) fn from_map(map: &Value) -> Self {
        Self {
            all: Some(equalities(map)),
        }
    }

    /// Demands one more thing.
    pub(crate) fn and(&mut self, more: impl IntoIterator<Item = Requirement>) {
        if let Some(all) = &mut self.all {
            all.extend(more);
            all.sort_unstable();
            all.dedup();
        }
    }

    /// Demands all that another one demands.
    pub(crate) fn and_all(&mut self, other: Self) {
        match other.all {
            Some(more) => self.and(more),
            None => self.all = None,
        }
    }

    /// True when it chooses everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.as_ref().is_some_and(Vec::is_empty)
    }

    /// True when the labels are chosen.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        let Some(all) = &self.all else { return false };
        all.iter().all(|one| one.accepts(labels.get(&one.key)))
    }
}

/// One alternative of a node affinity: all of its expressions must hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeTerm {
    expressions: Vec<Requirement>,
    fields: Vec<Requirement>,
}

impl NodeTerm {
    /// Reads `matchExpressions` and `matchFields`.
    pub(crate) fn read(term: &Value) -> Self {
        Self {
            expressions: items(&term["matchExpressions"])
                .map(Requirement::read)
                .collect(),
            fields: items(&term["matchFields"]).map(Requirement::read).collect(),
        }
    }

    /// Reads one entry of a StorageClass's `allowedTopologies`.
    pub(crate) fn read_topology(term: &Value) -> Self {
        let expressions = items(&term["matchLabelExpressions"]).map(|one| Requirement {
            key: one["key"].as_str().unwrap_or("").into(),
            operator: Operator::In,
            values: texts(&one["values"]).map(Into::into).collect(),
        });
        Self {
            expressions: expressions.collect(),
            fields: Vec::new(),
        }
    }

    /// An empty term chooses no node.
    pub(crate) fn matches(&self, name: &str, labels: &Labels) -> bool {
        let named = |one: &Requirement| &*one.key == "metadata.name" && one.accepts(Some(name));
        !(self.expressions.is_empty() && self.fields.is_empty())
            && self
                .expressions
                .iter()
                .all(|one| one.accepts(labels.get(&one.key)))
            && self.fields.iter().all(named)
    }

    /// The names that the term is limited to, if it names any.
    fn names(&self) -> Option<Vec<Box<str>>> {
        let named = |one: &&Requirement| {
            &*one.key == "metadata.name" && one.operator == Operator::In && one.values.len() == 1
        };
        let one = self.fields.iter().find(named)?;
        Some(one.values.to_vec())
    }
}

/// What a pod demands of the labels and the name of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeRule {
    selector: Vec<Requirement>,
    terms: Option<Vec<NodeTerm>>,
}

impl NodeRule {
    /// Reads `nodeSelector` and the required node affinity of a pod's spec.
    pub(crate) fn read(spec: &Value) -> Self {
        let required =
            &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        Self {
            selector: equalities(&spec["nodeSelector"]),
            terms: node_terms(required),
        }
    }

    /// True when the node will do.
    pub(crate) fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.selector
            .iter()
            .all(|one| one.accepts(labels.get(&one.key)))
            && self
                .terms
                .as_ref()
                .is_none_or(|terms| any_matches(terms, name, labels))
    }

    /// The only nodes that come into question, when every alternative names one, as the pods of a
    /// DaemonSet do.
    pub(crate) fn only(&self) -> Option<Vec<Box<str>>> {
        let named: Option<Vec<_>> = self.terms.as_ref()?.iter().map(NodeTerm::names).collect();
        let mut names = named?.concat();
        names.sort_unstable();
        names.dedup();
        Some(names)
    }
}

/// The alternatives of a node selector, if there is one.
pub(crate) fn node_terms(selector: &Value) -> Option<Vec<NodeTerm>> {
    let terms = selector["nodeSelectorTerms"].as_array()?;
    Some(terms.iter().map(NodeTerm::read).collect())
}

/// True when one of the alternatives chooses the node.
pub(crate) fn any_matches(terms: &[NodeTerm], name: &str, labels: &Labels) -> bool {
    terms.iter().any(|term| term.matches(name, labels))
}

/// The entries of a JSON list; none for anything else.
pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The strings of a JSON list.
pub(crate) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}

fn equalities(map: &Value) -> Vec<Requirement> {
    let map = map.as_object().into_iter().flatten();
    map.filter_map(|(key, value)| Some(Requirement::equals(key, value.as_str()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_choose_labels() {
        let labels = Labels::read(&json!({"app": "web", "tier": "front", "n": "5"}));
        let cases = [
            (json!(null), false),
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "tier", "operator": "Likes"}]}),
                false,
            ),
        ];
        for (selector, expected) in cases {
            assert_eq!(
                Selector::read(&selector).matches(&labels),
                expected,
                "{selector}"
            );
        }
    }

    #[test]
    fn node_terms_are_alternatives() {
        let labels = Labels::read(&json!({"zone": "a", "cores": "8"}));
        let cases = [
            (
                json!({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "cores", "operator": "Lt", "values": ["8"]}]}),
                false,
            ),
            (
                json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
                true,
            ),
            (
                json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}),
                false,
            ),
            (json!({}), false),
        ];
        for (term, expected) in cases {
            assert_eq!(
                NodeTerm::read(&term).matches("n1", &labels),
                expected,
                "{term}"
            );
        }
    }
}
