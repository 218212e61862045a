//! What selects pods: Services, and the owners that kube-scheduler looks at.

use std::sync::Arc;

use imbl::OrdMap;
use joiner_model::{Labels, Name, Selector, SelectorExpr, SelectorOp};
use serde_json::Value;

use crate::documents::Document;
use crate::error::{Place, ReadError};
use crate::live::{Kind, labels_of};
use crate::objects::{Objects, Owner};
use crate::pod;
use crate::wire::workload::MapSelecting;

/// The label by which the ReplicaSets of a Deployment tell their pods apart.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Which pods something selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// None.
    Nothing,
    /// Those with all of these labels: a Service, a ReplicationController.
    Labels(Labels),
    /// Those that match: a ReplicaSet, a StatefulSet.
    Selector(Selector),
}

/// Which pods each thing selects that does, by kind and `namespace/name`.
pub(crate) type Choices = OrdMap<(Kind, Name), Arc<Choice>>;

impl Choice {
    /// Reads the selector of a Service or an owner of pods.
    pub(crate) fn read(kind: Kind, selector: &Value, reader: &mut Objects) -> Result<Self, String> {
        if selector.is_null() {
            return Ok(Self::Nothing);
        }
        if matches!(kind, Kind::Service | Kind::ReplicationController) {
            return Ok(Self::Labels(labels_of(selector, &mut reader.names)));
        }
        let selector = reader.selector(selector)?;
        Ok(selector.map_or(Self::Nothing, Self::Selector))
    }
}

/// Which pods the Services of a namespace select.
pub(crate) fn services_of<'c>(
    choices: &'c Choices,
    namespace: &str,
) -> impl Iterator<Item = &'c Choice> + use<'c> {
    let start = format!("{namespace}/");
    choices
        .range((Kind::Service, Name::from(start.as_str()))..)
        .take_while(move |((kind, name), _)| {
            *kind == Kind::Service && name.starts_with(start.as_str())
        })
        .map(|(_, choice)| &**choice)
}

/// Which pods the owner of a pod with these labels selects. Files often have a Deployment without
/// the ReplicaSets it made; those select by the labels of the Deployment and a hash.
pub(crate) fn of_owner(choices: &Choices, owner: &Owner, labels: &Labels) -> Option<Choice> {
    let find = |kind: Kind, name: Name| choices.get(&(kind, name)).map(|choice| (**choice).clone());
    match &*owner.kind {
        "StatefulSet" => find(Kind::StatefulSet, owner.name.clone()),
        "ReplicationController" => find(Kind::ReplicationController, owner.name.clone()),
        "Deployment" => find(Kind::Deployment, owner.name.clone()),
        "ReplicaSet" => find(Kind::ReplicaSet, owner.name.clone()).or_else(|| {
            let (deployment, _) = owner.name.rsplit_once('-')?;
            let made = find(Kind::Deployment, deployment.into())?;
            Some(of_revision(made, labels))
        }),
        _ => None,
    }
}

/// Of the pods of a Deployment, those of the revision that a pod with these labels is of.
fn of_revision(choice: Choice, labels: &Labels) -> Choice {
    match (choice, labels.get_key_value(TEMPLATE_HASH)) {
        (Choice::Selector(selector), Some((key, value))) => {
            let hash = SelectorExpr {
                key: key.clone(),
                op: SelectorOp::In,
                values: [value.clone()].into(),
            };
            let exprs = selector.exprs().iter().cloned().chain([hash]);
            Choice::Selector(Selector::new(exprs.collect()))
        }
        (choice, _) => choice,
    }
}

impl Objects {
    /// Keeps which pods a Service or a ReplicationController selects.
    pub(crate) fn take_map_selecting(
        &mut self,
        kind: Kind,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let object: MapSelecting<'_> = document.parse(place)?;
        let meta = object.metadata.unwrap_or_default();
        let spec = object.spec.unwrap_or_default();
        let own_name = meta.own_name(self.choices.len());
        let name = self.register(kind.api().3, Some(meta.namespace()), &own_name, place)?;
        let choice = match &spec.selector {
            Some(given) => Choice::Labels(pod::labels(Some(given), &mut self.names)),
            None => Choice::Nothing,
        };
        self.choices.insert((kind, name), Arc::new(choice));
        Ok(())
    }

    /// Keeps which pods a workload selects, if somebody will ask.
    pub(crate) fn choose(&mut self, owner: &Owner, selector: Option<&Selector>) {
        let kind = match &*owner.kind {
            "Deployment" => Kind::Deployment,
            "ReplicaSet" => Kind::ReplicaSet,
            "StatefulSet" => Kind::StatefulSet,
            _ => return,
        };
        if self.spread_defaults.is_some() {
            let choice = selector.cloned().map_or(Choice::Nothing, Choice::Selector);
            let key = (kind, owner.name.clone());
            self.choices.insert(key, Arc::new(choice));
        }
    }
}
