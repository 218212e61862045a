//! Objects and a catalog, collected until they are solved.

use joiner_catalog::{ClassSettings, ec2};
use joiner_model::{InstanceType, MinValuesPolicy, PreferencePolicy, Problem};
use joiner_state::{Catalog, Input, Objects, ReadError, Source, parse_instance_types};
use serde_json::{Value, json};

use crate::builders::{
    InstanceTypeBuilder, NodeBuilder, PodBuilder, PoolBuilder, instance_type, pool,
};
use crate::outcome::Outcome;

/// A cluster and a catalog.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct World {
    objects: Vec<Value>,
    manifests: Vec<String>,
    types: Vec<Value>,
    ec2: bool,
    preferences: PreferencePolicy,
    min_values: MinValuesPolicy,
}

/// Something that a [`World`] can take: a builder, a wire object, a manifest, or a list of them.
pub trait Item {
    /// Puts it there.
    fn add_to(self, world: &mut World);
}

impl World {
    /// A world without pools, nodes, pods and instance types.
    pub fn new() -> Self {
        Self::default()
    }

    /// A world with the pool `default` and a small plain catalog: `small` (2 cores, 8 GiB, 0.10
    /// dollars), `medium` (4, 16, 0.20) and `large` (8, 32, 0.40), on demand in zones a, b and c.
    pub fn standard() -> Self {
        let sizes = [
            ("small", "2", "8Gi", 0.1),
            ("medium", "4", "16Gi", 0.2),
            ("large", "8", "32Gi", 0.4),
        ];
        let types = sizes.map(|(name, cpu, memory, price)| {
            instance_type(name).cpu(cpu).memory(memory).price(price)
        });
        Self::new().add(pool("default")).add(types)
    }

    /// A world with the built-in EC2 catalog of us-east-1, and nothing else.
    pub fn ec2() -> Self {
        Self {
            ec2: true,
            ..Self::default()
        }
    }

    /// Adds a builder, a wire object (`json!`), a YAML manifest (text), or a list of these.
    #[expect(
        clippy::should_implement_trait,
        reason = "objects are added to a world, but it is no sum"
    )]
    pub fn add(mut self, item: impl Item) -> Self {
        item.add_to(&mut self);
        self
    }

    /// Says what to do with wishes that are not rules.
    pub fn preferences(mut self, policy: PreferencePolicy) -> Self {
        self.preferences = policy;
        self
    }

    /// Says what to do when `minValues` cannot be met.
    pub fn min_values(mut self, policy: MinValuesPolicy) -> Self {
        self.min_values = policy;
        self
    }

    /// Turns the order of the objects around, for tests that it does not matter.
    pub fn reversed(mut self) -> Self {
        self.objects.reverse();
        self
    }

    /// The input as the real parsers see it.
    ///
    /// # Errors
    /// What they say about it.
    pub fn read(&self) -> Result<Input, ReadError> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.objects});
        let mut sources = vec![Source::new("objects", list.to_string())];
        for (ix, text) in self.manifests.iter().enumerate() {
            sources.push(Source::new(format!("manifest-{ix}.yaml"), text.as_str()));
        }
        let mut input = Objects::read(sources)?.problem(Catalog::shared(self.types()?))?;
        input.problem.policy.preferences = self.preferences;
        input.problem.policy.min_values = self.min_values;
        Ok(input)
    }

    fn types(&self) -> Result<Vec<InstanceType>, ReadError> {
        let text = Value::from(self.types.clone()).to_string();
        let mut types = parse_instance_types("instance types", &text)?;
        if self.ec2 {
            let catalog = ec2("us-east-1", &ClassSettings::default());
            types.extend(catalog.expect("the region is in the table").types);
        }
        Ok(types)
    }

    /// The problem.
    ///
    /// # Panics
    /// When the parsers refuse the input.
    #[must_use]
    #[track_caller]
    pub fn problem(&self) -> Problem {
        match self.read() {
            Ok(input) => input.problem,
            Err(error) => panic!("the input cannot be read: {error}"),
        }
    }

    /// Solves and verifies.
    ///
    /// # Panics
    /// When the parsers refuse the input, or the verifier refuses the plan.
    #[must_use]
    #[track_caller]
    pub fn solve(&self) -> Outcome {
        Outcome::of(self.problem())
    }
}

impl Item for PodBuilder {
    fn add_to(self, world: &mut World) {
        world.objects.extend(self.wire());
    }
}

impl Item for PoolBuilder {
    fn add_to(self, world: &mut World) {
        world.objects.push(self.wire());
    }
}

impl Item for NodeBuilder {
    fn add_to(self, world: &mut World) {
        world.objects.extend(self.wire());
    }
}

impl Item for InstanceTypeBuilder {
    fn add_to(self, world: &mut World) {
        world.types.push(self.wire());
    }
}

impl Item for Value {
    fn add_to(self, world: &mut World) {
        world.objects.push(self);
    }
}

impl Item for &str {
    fn add_to(self, world: &mut World) {
        world.manifests.push(self.to_owned());
    }
}

impl<T: Item> Item for Vec<T> {
    fn add_to(self, world: &mut World) {
        for item in self {
            item.add_to(world);
        }
    }
}

impl<T: Item, const N: usize> Item for [T; N] {
    fn add_to(self, world: &mut World) {
        for item in self {
            item.add_to(world);
        }
    }
}
