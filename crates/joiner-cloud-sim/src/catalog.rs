//! What each node class sells, as listed and as it is today.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use joiner_api::labels::{aws, kwok};
use joiner_catalog::{ec2, kwok_generic, kwok_rules};
use joiner_cloud::{CatalogError, NodeClass, SoldOut};
use joiner_cluster::Digest;
use joiner_model::{InstanceType, Name};
use joiner_state::{Place, class_settings};

use crate::market::Today;
use crate::offers::label_keys;
use crate::record::KWOK_CLASS;
use crate::settings::Settings;

/// Kind of the class that buys from the EC2 catalog.
pub(crate) const EC2_CLASS: &str = "EC2NodeClass";
/// Catalogs that are kept; a cluster has a handful of classes.
const CATALOGS_MAX: usize = 64;

/// A catalog before anything is sold out.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Tells catalogs apart.
    id: u64,
    /// The types.
    pub(crate) types: Arc<Vec<InstanceType>>,
    /// Every label key that some type or offering has.
    pub(crate) keys: BTreeSet<Name>,
}

impl Listed {
    fn new(id: u64, types: Vec<InstanceType>) -> Arc<Self> {
        Arc::new(Self {
            id,
            keys: label_keys(&types),
            types: Arc::new(types),
        })
    }
}

/// Today's state of a catalog, and what came of it.
type Shown = (Today, Arc<Vec<InstanceType>>);

/// Catalogs by node class.
#[derive(Debug)]
pub(crate) struct Catalogs {
    region: String,
    kwok: Arc<Listed>,
    /// What a file lists, for EC2NodeClasses.
    file: Option<Arc<Listed>>,
    by_class: Mutex<BTreeMap<u64, Arc<Listed>>>,
    shown: Mutex<BTreeMap<u64, Shown>>,
}

/// Whether nodes can be made with a class.
///
/// # Errors
/// Why not.
pub(crate) fn readiness(class: &NodeClass) -> Result<(), String> {
    let title = || format!("{} {}", class.kind, class.name);
    if !class.object["metadata"]["deletionTimestamp"].is_null() {
        return Err(format!("{} is being deleted", title()));
    }
    let conditions = class.object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let Some(ready) = conditions.find(|one| one["type"] == "Ready") else {
        return Ok(());
    };
    let text = |field: &str| ready[field].as_str().unwrap_or("");
    match text("status") {
        "True" => Ok(()),
        status => Err(format!(
            "{} says Ready={status}: {}",
            title(),
            [text("reason"), text("message")].join(" ").trim()
        )),
    }
}

impl Catalogs {
    /// Catalogs of a cloud with these settings.
    pub(crate) fn new(settings: &Settings) -> Self {
        let given = settings.instance_types.clone();
        let kwok = given.clone().map_or_else(kwok_generic, kwok_rules);
        Self {
            region: settings.region.clone(),
            kwok: Listed::new(1, kwok),
            file: given.map(|types| Listed::new(2, types)),
            by_class: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// What a class sells, as listed.
    pub(crate) fn listed(&self, class: &NodeClass) -> Result<Arc<Listed>, CatalogError> {
        match (&*class.group, &*class.kind) {
            (kwok::GROUP, KWOK_CLASS) => Ok(Arc::clone(&self.kwok)),
            (aws::GROUP, EC2_CLASS) => match &self.file {
                Some(file) => Ok(Arc::clone(file)),
                None => self.ec2(class),
            },
            (group, kind) => Err(CatalogError::Class(format!(
                "the simulated cloud does not know {kind} of {group}; it knows KWOKNodeClass of \
                 karpenter.kwok.sh and EC2NodeClass of karpenter.k8s.aws"
            ))),
        }
    }

    fn ec2(&self, class: &NodeClass) -> Result<Arc<Listed>, CatalogError> {
        let object = &class.object;
        let digest = Digest::default()
            .value(&object["spec"])
            .value(&object["status"]["subnets"]);
        let id = digest.finish();
        let known = || self.by_class.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = known().get(&id) {
            return Ok(Arc::clone(listed));
        }
        let place = Place {
            source: "the API server".into(),
            line: 1,
            column: None,
        };
        let unusable = |error: &dyn Display| CatalogError::Class(error.to_string());
        let mut warnings = Vec::new();
        let settings = class_settings(&class.name, object, &place, &mut warnings)
            .map_err(|error| unusable(&error))?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let sold = ec2(&self.region, &settings).map_err(|error| unusable(&error))?;
        let listed = Listed::new(id, sold.types);
        let mut known = known();
        if known.len() >= CATALOGS_MAX {
            known.clear();
        }
        known.insert(id, Arc::clone(&listed));
        Ok(listed)
    }

    /// What a class sells today. The same day gives the same list, not a copy of it.
    pub(crate) fn today(
        &self,
        listed: &Listed,
        today: Today,
        sold_out: &SoldOut,
        now: Timestamp,
    ) -> Arc<Vec<InstanceType>> {
        if today.is_as_listed() {
            return Arc::clone(&listed.types);
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((day, types)) = shown.get(&listed.id)
            && *day == today
        {
            return Arc::clone(types);
        }
        let types = Arc::new(today.apply(&listed.types, sold_out, now));
        if shown.len() >= CATALOGS_MAX {
            shown.clear();
        }
        shown.insert(listed.id, (today, Arc::clone(&types)));
        types
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(group: &str, kind: &str, object: Value) -> NodeClass {
        NodeClass {
            group: group.into(),
            kind: kind.into(),
            name: "default".into(),
            object: Arc::new(object),
        }
    }

    #[test]
    fn readiness_is_what_the_condition_says() {
        let condition = |status: &str| {
            json!({"status": {"conditions": [{"type": "Ready", "status": status,
                "reason": "SubnetsNotFound", "message": "no subnets"}]}})
        };
        let ready = |object| readiness(&class(aws::GROUP, EC2_CLASS, object));
        assert_eq!(ready(json!({})), Ok(()));
        assert_eq!(ready(condition("True")), Ok(()));
        for status in ["False", "Unknown"] {
            let expected =
                format!("EC2NodeClass default says Ready={status}: SubnetsNotFound no subnets");
            assert_eq!(ready(condition(status)), Err(expected));
        }
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(ready(deleting).unwrap_err().contains("being deleted"));
    }

    #[test]
    fn each_class_has_its_own_catalog() {
        let catalogs = Catalogs::new(&Settings::default());
        let kwok = class(kwok::GROUP, KWOK_CLASS, json!({}));
        assert_eq!(catalogs.listed(&kwok).unwrap().types.len(), 144);
        let spec = json!({"spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}],
            "securityGroupSelectorTerms": [{"id": "sg-1"}], "kubelet": {"maxPods": 7}}});
        let ec2 = class(aws::GROUP, EC2_CLASS, spec);
        let listed = catalogs.listed(&ec2).unwrap();
        assert!(listed.types.len() > 500);
        let pods = &joiner_model::ResourceName::Pods;
        assert!(listed.types.iter().all(|ty| ty.capacity.get(pods) == 7));
        let again = catalogs.listed(&ec2).unwrap();
        assert!(Arc::ptr_eq(&listed, &again), "it is computed once");
        let other = class("example.com", "Cloud", json!({}));
        let error = catalogs.listed(&other).unwrap_err().to_string();
        assert!(
            error.contains("does not know Cloud of example.com"),
            "{error}"
        );
    }

    #[test]
    fn a_file_is_read_by_the_rules_of_its_class() {
        let text = r#"[{"name": "m5.large", "architecture": "amd64",
            "resources": {"cpu": "2", "memory": "8Gi"}, "overhead": {"cpu": "70m"},
            "offerings": [{"Price": 0.1, "Available": false, "Requirements": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}]"#;
        let types = joiner_state::parse_instance_types("types.json", text).unwrap();
        let catalogs = Catalogs::new(&Settings {
            instance_types: Some(types),
            ..Settings::default()
        });
        let sold = |group: &str, kind: &str| {
            let listed = catalogs.listed(&class(group, kind, json!({}))).unwrap();
            let ty = &listed.types[0];
            let room = ty.allocatable().unwrap().to_string();
            (
                room,
                ty.offerings[0].available,
                ty.labels.contains_key(kwok::INSTANCE_SIZE),
            )
        };
        let of_kwok = "cpu 1900m, memory 8182Mi, pods 110".to_owned();
        assert_eq!(sold(kwok::GROUP, KWOK_CLASS), (of_kwok, true, true));
        let of_ec2 = "cpu 1930m, memory 8Gi, pods 110".to_owned();
        assert_eq!(sold(aws::GROUP, EC2_CLASS), (of_ec2, false, false));
    }
}
