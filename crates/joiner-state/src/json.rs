//! The outermost layer of a JSON document.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::documents::Header;
use crate::wire::Text;

/// A JSON document, read just deep enough to take lists apart.
pub(crate) enum TopLevel<'a> {
    Array(Vec<&'a RawValue>),
    Object {
        header: Header,
        items: Items<'a>,
        /// A key of the outermost layer is there twice.
        twice: bool,
    },
}

impl<'de: 'a, 'a> Deserialize<'de> for TopLevel<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TopLevelVisitor)
    }
}

struct TopLevelVisitor;

impl<'de> Visitor<'de> for TopLevelVisitor {
    type Value = TopLevel<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object, or an array or List of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<&'de RawValue>()? {
            items.push(item);
        }
        Ok(TopLevel::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut header, mut items) = (Header::default(), Items::Absent);
        let (mut keys, mut twice) = (HashSet::new(), false);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                "apiVersion" => header.api_version = map.next_value::<Text<'de>>()?.to_string(),
                "kind" => header.kind = map.next_value::<Text<'de>>()?.to_string(),
                "items" => items = map.next_value::<Items<'de>>()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            twice |= !keys.insert(key);
        }
        Ok(TopLevel::Object {
            header,
            items,
            twice,
        })
    }
}

/// What an object has under the name of items.
pub(crate) enum Items<'a> {
    Absent,
    /// `null` is an empty list.
    List(Vec<&'a RawValue>),
    /// Something that is no list, which is not looked at.
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<&'de RawValue>()? {
            items.push(item);
        }
        Ok(Items::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map)?;
        Ok(Items::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Items::List(Vec::new()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Items::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Items::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Items::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Items::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Items::Other)
    }
}
