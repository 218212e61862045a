//! How each part of an object merges: which lists have keys, which maps are one piece.
//!
//! Two views of the same place are needed. A strategic merge patch asks for a *merge key*; apply and
//! the ownership of fields ask whether a list is a map, a set or one piece (`x-kubernetes-list-type`)
//! and whether a map is one piece (`x-kubernetes-map-type`). For built-in kinds both come from one
//! table, for custom kinds the second comes from the schema of the CRD.

mod table;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::kinds::Kind;

/// A place in objects of one kind: the root, a field, the items of a list.
#[derive(Clone, Copy, Debug)]
pub struct Place<'k>(At<'k>);

#[derive(Clone, Copy, Debug)]
enum At<'k> {
    /// In a built-in type.
    BuiltIn(&'static Shape),
    /// The whole of a custom object, by its schema.
    CustomRoot(&'k Value),
    /// In a custom object, by the schema of the part.
    Custom(&'k Value),
    /// In a custom object, where the schema is silent.
    Untyped,
}

/// How apply and ownership treat a list.
#[derive(Clone, Copy, Debug)]
pub enum ListRule<'k> {
    /// One piece: replaced, never merged.
    Atomic,
    /// Scalars, each of which is there or not.
    Set,
    /// Objects known by some of their fields.
    Keyed(Keys<'k>),
}

/// The fields by which the objects of a list are known.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'k>(KeysAt<'k>);

#[derive(Clone, Copy, Debug)]
enum KeysAt<'k> {
    BuiltIn(&'static [Key]),
    Custom {
        names: &'k [Value],
        items: &'k Value,
    },
}

#[derive(Debug)]
struct Key {
    name: &'static str,
    default: Value,
}

/// How a strategic merge patch treats what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchRule {
    /// Objects are merged, lists are replaced.
    Usual,
    /// Objects of the list are merged by this key.
    MergeBy(&'static str),
    /// Scalars are added to the list.
    Add,
    /// The object is replaced.
    Replace,
}

#[derive(Debug)]
struct Shape {
    fields: BTreeMap<&'static str, Field>,
    items: usize,
    atomic_map: bool,
    list: List,
    patch: PatchRule,
}

#[derive(Debug)]
enum List {
    Atomic,
    Set,
    Keyed(Vec<Key>),
}

#[derive(Clone, Copy, Debug)]
struct Field {
    always: bool,
    shape: usize,
}

/// The shape of places without anything special.
const PLAIN: usize = 0;

struct Shapes {
    all: Vec<Shape>,
    by_name: BTreeMap<&'static str, usize>,
}

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes::read(table::TABLE));

impl<'k> Place<'k> {
    /// The whole object.
    #[must_use]
    pub fn root(kind: &'k Kind) -> Self {
        match &kind.custom {
            Some(version) => Self(At::CustomRoot(&version["schema"]["openAPIV3Schema"])),
            None => Self(At::BuiltIn(SHAPES.of_kind(kind))),
        }
    }

    /// The value of a field.
    #[must_use]
    pub fn field(self, name: &str) -> Self {
        match self.0 {
            At::BuiltIn(shape) => {
                let shape = shape.fields.get(name).map_or(PLAIN, |field| field.shape);
                Self(At::BuiltIn(SHAPES.get(shape)))
            }
            At::CustomRoot(schema) => match name {
                "metadata" => Self(At::BuiltIn(SHAPES.named("ObjectMeta"))),
                _ => Self(custom_field(schema, name)),
            },
            At::Custom(schema) => Self(custom_field(schema, name)),
            At::Untyped => self,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn items(self) -> Self {
        match self.0 {
            At::BuiltIn(shape) => Self(At::BuiltIn(SHAPES.get(shape.items))),
            At::CustomRoot(schema) | At::Custom(schema) => match schema.get("items") {
                Some(items) => Self(At::Custom(items)),
                None => Self(At::Untyped),
            },
            At::Untyped => self,
        }
    }

    /// True when a map here is one piece.
    #[must_use]
    pub fn is_atomic_map(self) -> bool {
        match self.0 {
            At::BuiltIn(shape) => shape.atomic_map,
            At::CustomRoot(schema) | At::Custom(schema) => {
                schema["x-kubernetes-map-type"] == "atomic"
            }
            At::Untyped => false,
        }
    }

    /// What a list here is to apply and ownership.
    #[must_use]
    pub fn list(self) -> ListRule<'k> {
        match self.0 {
            At::BuiltIn(shape) => match &shape.list {
                List::Atomic => ListRule::Atomic,
                List::Set => ListRule::Set,
                List::Keyed(keys) => ListRule::Keyed(Keys(KeysAt::BuiltIn(keys))),
            },
            At::CustomRoot(schema) | At::Custom(schema) => custom_list(schema),
            At::Untyped => ListRule::Atomic,
        }
    }

    /// What a strategic merge patch does here. Custom kinds do not take such patches.
    #[must_use]
    pub fn patch(self) -> PatchRule {
        match self.0 {
            At::BuiltIn(shape) => shape.patch,
            At::CustomRoot(_) | At::Custom(_) | At::Untyped => PatchRule::Usual,
        }
    }

    /// True when the type has a field of this name, false for a key of a map. Where the table is
    /// silent about a built-in type the key counts as a field.
    #[must_use]
    pub fn names(self, name: &str) -> bool {
        match self.0 {
            At::BuiltIn(_) => true,
            At::CustomRoot(_) if matches!(name, "apiVersion" | "kind" | "metadata") => true,
            At::CustomRoot(schema) | At::Custom(schema) => schema["properties"].get(name).is_some(),
            At::Untyped => false,
        }
    }

    /// What the server has in place of an absent field: an empty object or null for fields that are
    /// always there.
    #[must_use]
    pub fn stand_in(self, name: &str) -> Option<&'static Value> {
        match self.0 {
            At::BuiltIn(shape) => {
                let field = shape.fields.get(name).filter(|field| field.always)?;
                Some(match SHAPES.get(field.shape).list {
                    List::Atomic => &EMPTY,
                    List::Set | List::Keyed(_) => &Value::Null,
                })
            }
            At::CustomRoot(_) | At::Custom(_) | At::Untyped => None,
        }
    }

    /// True when a null here is a value and not the absence of one.
    #[must_use]
    pub fn keeps_null(self) -> bool {
        match self.0 {
            At::BuiltIn(_) => false,
            At::CustomRoot(schema) | At::Custom(schema) => schema["nullable"] == true,
            At::Untyped => true,
        }
    }
}

fn custom_field<'k>(schema: &'k Value, name: &str) -> At<'k> {
    if let Some(field) = schema["properties"].get(name) {
        return At::Custom(field);
    }
    if name == "metadata" && schema["x-kubernetes-embedded-resource"] == true {
        return At::BuiltIn(SHAPES.named("ObjectMeta"));
    }
    match schema.get("additionalProperties") {
        Some(values) if values.is_object() => At::Custom(values),
        Some(_) | None => At::Untyped,
    }
}

fn custom_list(schema: &Value) -> ListRule<'_> {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListRule::Set,
        Some("map") => match schema["x-kubernetes-list-map-keys"].as_array() {
            Some(names) => ListRule::Keyed(Keys(KeysAt::Custom {
                names,
                items: &schema["items"],
            })),
            None => ListRule::Atomic,
        },
        Some(_) | None => ListRule::Atomic,
    }
}

impl<'k> Keys<'k> {
    /// The names in the order of the schema.
    pub fn names(self) -> impl Iterator<Item = &'k str> {
        let (built_in, custom): (&'k [Key], &'k [Value]) = match self.0 {
            KeysAt::BuiltIn(keys) => (keys, &[]),
            KeysAt::Custom { names, .. } => (&[], names),
        };
        let built_in = built_in.iter().map(|key| key.name);
        built_in.chain(custom.iter().filter_map(Value::as_str))
    }

    /// What stands in for an absent key.
    #[must_use]
    pub fn default(self, name: &str) -> Option<&'k Value> {
        match self.0 {
            KeysAt::BuiltIn(keys) => keys
                .iter()
                .find(|key| key.name == name)
                .map(|key| &key.default),
            KeysAt::Custom { items, .. } => items["properties"][name].get("default"),
        }
    }
}

impl Shapes {
    fn of_kind(&'static self, kind: &Kind) -> &'static Shape {
        let line = format!("{}/{}", kind.api_version(), kind.kind);
        self.named(if self.by_name.contains_key(&line[..]) {
            &line
        } else {
            table::OTHER
        })
    }

    fn named(&'static self, name: &str) -> &'static Shape {
        self.get(self.by_name.get(name).copied().unwrap_or(PLAIN))
    }

    fn get(&'static self, shape: usize) -> &'static Shape {
        // The plain shape is the first, so there is always one.
        self.all.get(shape).unwrap_or(&self.all[PLAIN])
    }

    fn read(text: &'static str) -> Self {
        let mut lines: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            if !line.starts_with(' ')
                && let Some(name) = words.next()
            {
                lines.push((name, Vec::new()));
            }
            if let Some((_, cells)) = lines.last_mut() {
                cells.extend(words);
            }
        }
        let mut shapes = Self {
            all: vec![Shape::plain()],
            by_name: BTreeMap::new(),
        };
        for (name, _) in &lines {
            shapes.by_name.insert(name, shapes.all.len());
            shapes.all.push(Shape::plain());
        }
        for (name, cells) in lines {
            let fields = cells.iter().filter_map(|cell| shapes.cell(cell)).collect();
            if let Some(&at) = shapes.by_name.get(name) {
                shapes.all[at].fields = fields;
            }
        }
        shapes
    }

    fn cell(&mut self, cell: &'static str) -> Option<(&'static str, Field)> {
        let (name, how) = cell.split_once(':')?;
        let (always, how) = match how.strip_prefix('!') {
            Some(how) => (true, how),
            None => (false, how),
        };
        let shape = self.how(how);
        Some((name, Field { always, shape }))
    }

    fn how(&mut self, how: &'static str) -> usize {
        let mut shape = Shape::plain();
        match how {
            "" | "." => return PLAIN,
            "@" => shape.atomic_map = true,
            "=@" => {
                shape.atomic_map = true;
                shape.patch = PatchRule::Replace;
            }
            "<>" => {
                shape.list = List::Set;
                shape.patch = PatchRule::Add;
            }
            "<->" => shape.list = List::Set,
            _ => match how.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((keys, items)) => {
                    (shape.list, shape.patch) = list(keys);
                    shape.items = self.how(items);
                }
                None => return self.by_name.get(how).copied().unwrap_or(PLAIN),
            },
        }
        self.all.push(shape);
        self.all.len() - 1
    }
}

fn list(keys: &'static str) -> (List, PatchRule) {
    if let Some(key) = keys.strip_prefix('/') {
        return (List::Atomic, PatchRule::MergeBy(key));
    }
    let (keys, merged) = match keys.strip_suffix('/') {
        Some(keys) => (keys, false),
        None => (keys, true),
    };
    let keys: Vec<Key> = keys.split(',').map(Key::read).collect();
    let patch = match keys.first() {
        Some(key) if merged => PatchRule::MergeBy(key.name),
        Some(_) | None => PatchRule::Usual,
    };
    (List::Keyed(keys), patch)
}

impl Key {
    fn read(text: &'static str) -> Self {
        match text.split_once('=') {
            Some((name, default)) => Self {
                name,
                default: default.into(),
            },
            None if matches!(text, "containerPort" | "port") => Self {
                name: text,
                default: 0.into(),
            },
            None => Self {
                name: text,
                default: "".into(),
            },
        }
    }
}

impl Shape {
    const fn plain() -> Self {
        Self {
            fields: BTreeMap::new(),
            items: PLAIN,
            atomic_map: false,
            list: List::Atomic,
            patch: PatchRule::Usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type that a cell names has a line, and no line is without a reader.
    #[test]
    fn the_table_is_closed() {
        let names: Vec<&str> = SHAPES.by_name.keys().copied().collect();
        let mut used = vec![table::OTHER];
        for cell in table::TABLE.split_whitespace().filter(|w| w.contains(':')) {
            let how = cell.split_once(':').unwrap().1.trim_start_matches('!');
            let of = how.rsplit_once(']').map_or(how, |(_, items)| items);
            if of.chars().next().is_some_and(char::is_alphabetic) {
                assert!(
                    SHAPES.by_name.contains_key(of),
                    "no line for {of} in {cell}"
                );
                used.push(of);
            }
        }
        for name in names.into_iter().filter(|name| !name.contains('/')) {
            assert!(used.contains(&name), "nothing uses {name}");
        }
    }
}
