//! Kubernetes objects as they are written, cut down to the fields that matter here.
//!
//! Every field is optional: `null` and absence mean the same on the wire. Text borrows from the
//! input where it can.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use joiner_model::ResourceName;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use crate::quantity::Quantity;

/// Declares structs whose fields are all optional and spelled in camel case on the wire.
macro_rules! wire {
    ($($(#[$doc:meta])* struct $name:ident<$life:lifetime> {
        $($(#[$attr:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(
            remote = "Self",
            rename_all = "camelCase",
            bound(deserialize = "'de: 'a"),
            expecting = "an object"
        )]
        pub(crate) struct $name<$life> {
            $($(#[$attr])* pub(crate) $field: Option<$type>,)*
        }

        $crate::wire::strict::object_only!($name<$life>);
    )*};
}

pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod pool;
pub(crate) mod strict;
mod typed;
pub(crate) mod volume;
pub(crate) mod workload;

/// Text, borrowed from the input unless it has escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text)))
    }

    /// `null` among labels or values is empty text, as it is for the API server.
    fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A quantity that is not negative; YAML and JSON numbers are fine too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) Quantity);

/// Reads an amount of the resource with this name, on which the largest amount depends.
struct AmountOf<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for AmountOf<'_> {
    type Value = Amount;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Amount, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for AmountOf<'_> {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 500m or 1.5Gi")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        let resource = ResourceName::parse(self.0);
        let quantity = Quantity::parse_amount_of(&resource, text);
        quantity.map(Amount).map_err(E::custom)
    }

    fn visit_unit<E: Error>(self) -> Result<Amount, E> {
        Ok(Amount(Quantity::ZERO))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
        self.visit_str(&number.to_string())
    }
}

/// Amounts by resource name.
#[derive(Debug, Default)]
pub(crate) struct Amounts<'a>(BTreeMap<Text<'a>, Amount>);

impl<'a> Amounts<'a> {
    /// True when the resource is named.
    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

impl<'s, 'a> IntoIterator for &'s Amounts<'a> {
    type Item = (&'s Text<'a>, &'s Amount);
    type IntoIter = std::collections::btree_map::Iter<'s, Text<'a>, Amount>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

struct AmountsVisitor;

impl<'de> Visitor<'de> for AmountsVisitor {
    type Value = Amounts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a quantity for each resource")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Amounts<'de>, A::Error> {
        let mut amounts = BTreeMap::new();
        while let Some(name) = map.next_key::<Text<'de>>()? {
            let amount = map.next_value_seed(AmountOf(&name))?;
            amounts.insert(name, amount);
        }
        Ok(Amounts(amounts))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Amounts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AmountsVisitor)
    }
}

/// Labels or annotations.
pub(crate) type TextMap<'a> = BTreeMap<Text<'a>, Text<'a>>;

wire! {
    /// Metadata of any object.
    struct Meta<'a> {
        name: Text<'a>,
        generate_name: Text<'a>,
        namespace: Text<'a>,
        labels: TextMap<'a>,
        deletion_timestamp: Text<'a>,
        creation_timestamp: Text<'a>,
        owner_references: Vec<OwnerReference<'a>>,
    }

    /// Who an object belongs to.
    struct OwnerReference<'a> {
        api_version: Text<'a>,
        kind: Text<'a>,
        name: Text<'a>,
        controller: bool,
    }

    /// Only the name of an object, for messages about the rest of it.
    struct Named<'a> {
        metadata: NamedMeta<'a>,
    }

    /// Only the name of an object.
    struct NamedMeta<'a> {
        name: Text<'a>,
        generate_name: Text<'a>,
        namespace: Text<'a>,
    }

    /// Only the metadata of an object.
    struct Bare<'a> {
        metadata: Meta<'a>,
    }

    /// A label selector.
    struct LabelSelector<'a> {
        match_labels: TextMap<'a>,
        match_expressions: Vec<Expression<'a>>,
    }

    /// One expression of a label selector or a node selector.
    struct Expression<'a> {
        key: Text<'a>,
        operator: Text<'a>,
        values: Vec<Text<'a>>,
        min_values: i64,
    }

    /// A status condition.
    struct Condition<'a> {
        #[serde(rename = "type")]
        kind: Text<'a>,
        status: Text<'a>,
        reason: Text<'a>,
        message: Text<'a>,
    }

    /// A taint on a node.
    struct Taint<'a> {
        key: Text<'a>,
        value: Text<'a>,
        effect: Text<'a>,
    }
}

/// What an object says it is; nothing else of it is looked at.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(
    remote = "Self",
    bound(deserialize = "'de: 'a"),
    expecting = "a Kubernetes object"
)]
pub(crate) struct TypeMeta<'a> {
    #[serde(rename = "apiVersion")]
    _api_version: Option<Text<'a>>,
    #[serde(rename = "kind")]
    _kind: Option<Text<'a>>,
    /// Only entries of catalog files have them.
    pub(crate) offerings: Option<serde::de::IgnoredAny>,
}

strict::object_only!(TypeMeta<'a>);

/// The text of an optional field, empty when absent.
pub(crate) fn text<'t>(field: &'t Option<Text<'_>>) -> &'t str {
    field.as_deref().unwrap_or_default()
}

impl Meta<'_> {
    /// Namespace, `default` when not given.
    pub(crate) fn namespace(&self) -> &str {
        match text(&self.namespace) {
            "" => "default",
            namespace => namespace,
        }
    }

    /// Name, empty when there is none.
    pub(crate) fn name(&self) -> &str {
        text(&self.name)
    }

    /// Name, or one made up from `generateName` and a number, as the API server would.
    pub(crate) fn own_name(&self, number: usize) -> Cow<'_, str> {
        match (text(&self.name), text(&self.generate_name)) {
            ("", "") => Cow::Borrowed(""),
            ("", start) => Cow::Owned(format!("{start}{number}")),
            (name, _) => Cow::Borrowed(name),
        }
    }

    /// True once somebody has asked for its deletion.
    pub(crate) fn deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner in control, or the first there is.
    pub(crate) fn owner(&self) -> Option<&OwnerReference<'_>> {
        let owners = self.owner_references.as_ref()?;
        owners
            .iter()
            .find(|owner| owner.controller == Some(true))
            .or(owners.first())
    }

    /// True when its owner is in control, and is of a kind whose selector tells its pods: what
    /// kube-scheduler looks at.
    pub(crate) fn is_selected_by_owner(&self) -> bool {
        let Some(owner) = self.owner().filter(|owner| owner.controller == Some(true)) else {
            return false;
        };
        tells_pods(text(&owner.api_version), text(&owner.kind))
    }
}

/// True for kinds of owners whose selector tells their pods.
pub(crate) fn tells_pods(api_version: &str, kind: &str) -> bool {
    matches!(
        (api_version, kind),
        ("apps/v1", "ReplicaSet" | "StatefulSet") | ("v1", "ReplicationController")
    )
}
