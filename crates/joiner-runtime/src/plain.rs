//! Objects as watches bring them: plain JSON, read in one go.
//!
//! A large cluster is thousands of objects at the start and dozens a second from then on, and half
//! of each is the bookkeeping of field owners, which nobody here reads: it is skipped, not read and
//! thrown away.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::api::{ApiResource, ObjectMeta};
use kube::core::DynamicResourceScope;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// An object of any kind, without its managed fields.
#[derive(Clone, Debug, Default)]
pub struct PlainObject {
    /// Name, namespace and version: what a watch needs.
    meta: ObjectMeta,
    fields: Map<String, Value>,
}

impl PlainObject {
    /// The object, with kind and version in it, which items of lists leave out.
    #[must_use]
    pub fn into_value(mut self, resource: &ApiResource) -> Value {
        let version = resource.api_version.clone();
        self.fields.insert("apiVersion".to_owned(), version.into());
        let kind = resource.kind.clone();
        self.fields.insert("kind".to_owned(), kind.into());
        Value::Object(self.fields)
    }
}

impl<'de> Deserialize<'de> for PlainObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = deserializer.deserialize_map(WholeObject)?;
        let text = |field: &str| {
            let value = fields.get("metadata")?.get(field)?;
            value.as_str().map(ToOwned::to_owned)
        };
        Ok(Self {
            meta: ObjectMeta {
                name: text("name"),
                namespace: text("namespace"),
                resource_version: text("resourceVersion"),
                ..ObjectMeta::default()
            },
            fields,
        })
    }
}

impl Resource for PlainObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// Reads an object.
struct WholeObject;

impl<'de> Visitor<'de> for WholeObject {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match key.as_str() {
                "metadata" => Value::Object(map.next_value::<Metadata>()?.0),
                _ => map.next_value()?,
            };
            fields.insert(key, value);
        }
        Ok(fields)
    }
}

/// Metadata without managed fields.
struct Metadata(Map<String, Value>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataFields).map(Self)
    }
}

/// Reads metadata.
struct MetadataFields;

impl<'de> Visitor<'de> for MetadataFields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "managedFields" {
                map.next_value::<IgnoredAny>()?;
            } else {
                fields.insert(key, map.next_value()?);
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt as _;
    use kube::core::WatchEvent;
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_but_managed_fields_is_kept() {
        let text = r#"{"type": "MODIFIED", "object": {"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "p", "namespace": "n", "resourceVersion": "7", "uid": "u",
                "managedFields": [{"fieldsV1": {"f:spec": {}}}]},
            "spec": {"nodeName": "x"}}}"#;
        let event: WatchEvent<PlainObject> = serde_json::from_str(text).unwrap();
        let WatchEvent::Modified(object) = event else {
            panic!("{event:?}");
        };
        assert_eq!(object.resource_version().as_deref(), Some("7"));
        assert_eq!(object.name_any(), "p");
        let value = object.into_value(&crate::resource("", "v1", "pods", "Pod"));
        let expected = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"nodeName": "x"},
            "metadata": {"name": "p", "namespace": "n", "resourceVersion": "7", "uid": "u"}});
        assert_eq!(value, expected);
    }

    #[test]
    fn items_of_lists_learn_what_they_are() {
        let object: PlainObject = serde_json::from_str(r#"{"metadata": {"name": "p"}}"#).unwrap();
        let value = object.into_value(&crate::resource("apps", "v1", "deployments", "Deployment"));
        assert_eq!(value["apiVersion"], "apps/v1");
        assert_eq!(value["kind"], "Deployment");
        assert!(serde_json::from_str::<PlainObject>("7").is_err());
    }
}
