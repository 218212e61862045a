//! What is for sale in `joiner plan` and `joiner catalog`, and at whose prices.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use joiner_catalog::{ClassSettings, PriceList, ec2, kwok_generic, regions, zones};
use joiner_model::{InstanceType, Problem, keys};
use joiner_state::{Catalog, NodeClassRef, Objects, parse_instance_types};

use crate::cost::PricesOf;
use crate::region;
use crate::sources::Reader;

/// Names that do not exist and are warned about; the others are counted.
const ABSENT_MAX: usize = 10;

/// What is for sale when nothing is known yet of node classes.
pub(crate) struct Market {
    standard: Vec<InstanceType>,
    /// The region of the built-in catalog; nothing for a catalog of the user's own.
    region: Option<String>,
    warnings: Vec<String>,
    prices: PricesOf,
    list: Option<Prices>,
}

/// What is for sale for some objects.
pub(crate) struct Sold {
    pub(crate) catalog: Catalog,
    pub(crate) prices: PricesOf,
    pub(crate) warnings: Vec<String>,
}

impl Market {
    /// Reads a catalog file, or takes the built-in catalog; reads prices, if there are any.
    pub(crate) fn read(
        region: &str,
        instance_types: Option<&Path>,
        prices: Option<&Path>,
        reader: &mut Reader,
    ) -> anyhow::Result<Self> {
        let list = prices.map(|path| Prices::read(path, reader)).transpose()?;
        if let Some(path) = instance_types {
            let source = reader.read_file(path)?;
            return Ok(Self {
                standard: parse_instance_types(&source.name, &source.text)?,
                region: None,
                warnings: Vec::new(),
                prices: PricesOf::default(),
                list,
            });
        }
        let standard = ec2(region, &ClassSettings::default()).map_err(region::unknown)?;
        let prices_of = standard.prices_of;
        Ok(Self {
            standard: standard.types,
            region: Some(region.to_owned()),
            warnings: standard.warnings,
            prices: PricesOf {
                region: Some(prices_of.to_owned()),
                not_of: (prices_of != region).then(|| region.to_owned()),
                ..PricesOf::default()
            },
            list,
        })
    }

    /// The catalog for these objects; EC2NodeClasses get one each, with their own settings.
    pub(crate) fn catalog(mut self, objects: &Objects) -> anyhow::Result<Sold> {
        let mut warnings = Vec::new();
        let mut of_classes = match &self.region {
            Some(region) => class_types(objects, region, &mut warnings)?,
            None => Vec::new(),
        };
        if let Some(list) = &self.list {
            let all = of_classes.iter().flat_map(|(_, types)| types);
            list.check(self.standard.iter().chain(all))?;
            let lists = of_classes.iter_mut().map(|(_, types)| types);
            let lists = lists.chain(std::iter::once(&mut self.standard));
            let n_kept: usize = lists.map(|types| list.list.apply(types)).sum();
            list.note(n_kept, &mut self.prices);
            if self.prices.file_has_all {
                self.warnings.clear();
            }
        }
        self.warnings.extend(warnings);
        let mut catalog = Catalog::shared(self.standard);
        for (class, types) in of_classes {
            catalog = catalog.with_class(class, types);
        }
        Ok(Sold {
            catalog,
            prices: self.prices,
            warnings: self.warnings,
        })
    }
}

/// The types of node classes that have some of their own.
fn class_types(
    objects: &Objects,
    region: &str,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Vec<(NodeClassRef, Vec<InstanceType>)>> {
    let mut all = Vec::new();
    for class in objects.node_classes() {
        let types = match class.settings(warnings)? {
            Some(settings) => ec2(region, &settings)?.types,
            None if class.reference.kind.as_ref() == "KWOKNodeClass" => kwok_generic(),
            None => continue,
        };
        all.push((class.reference.clone(), types));
    }
    for class in objects.class_refs() {
        if !matches!(class.kind.as_ref(), "EC2NodeClass" | "KWOKNodeClass") {
            warnings.push(format!(
                "node class {} {}: its instance types are not known here, the EC2 catalog is used; \
                 give your own with --instance-types",
                class.kind, class.name
            ));
        }
    }
    Ok(all)
}

/// The user's prices.
pub(crate) struct Prices {
    file: String,
    list: PriceList,
}

impl Prices {
    /// Reads a file.
    pub(crate) fn read(path: &Path, reader: &mut Reader) -> anyhow::Result<Self> {
        let source = reader.read_file(path)?;
        let list =
            PriceList::parse(&source.text).map_err(|error| anyhow!("{}:{error}", source.name))?;
        Ok(Self {
            file: source.name,
            list,
        })
    }

    fn check<'t>(&self, types: impl Iterator<Item = &'t InstanceType>) -> anyhow::Result<()> {
        let checked = self.list.check(types);
        checked.map_err(|error| anyhow!("{}:{error}", self.file))
    }

    /// Replaces the prices of some types, and says whose prices they are then.
    pub(crate) fn replace(
        &self,
        types: &mut [InstanceType],
        prices: &mut PricesOf,
    ) -> anyhow::Result<()> {
        self.check(types.iter())?;
        let n_kept = self.list.apply(types);
        self.note(n_kept, prices);
        Ok(())
    }

    fn note(&self, n_kept: usize, prices: &mut PricesOf) {
        prices.file = Some(self.file.clone());
        prices.file_has_all = n_kept == 0;
    }
}

/// Warnings about zones and types that are named and do not exist.
pub(crate) fn absent(problem: &Problem) -> Vec<String> {
    let all = joiner_solver::absent(problem);
    let n_more = all.len().saturating_sub(ABSENT_MAX);
    let in_region: BTreeMap<String, &str> = regions()
        .flat_map(|region| {
            let zones = zones(region).unwrap_or_default().into_iter();
            zones.map(move |zone| (zone.name, region))
        })
        .collect();
    let warning = |(absent, who): (joiner_model::Absent, String)| {
        let elsewhere = in_region.get(absent.value.as_ref());
        let elsewhere = elsewhere.filter(|_| absent.key.as_ref() == keys::ZONE);
        match elsewhere {
            Some(region) => format!("{who}: {absent}; it is a zone of {region}: see --region"),
            None => format!("{who}: {absent}"),
        }
    };
    let mut warnings: Vec<String> = all.into_iter().take(ABSENT_MAX).map(warning).collect();
    if n_more > 0 {
        warnings.push(format!(
            "{n_more} more zones and types that are named do not exist"
        ));
    }
    warnings
}
