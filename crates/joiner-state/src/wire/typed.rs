//! Objects of our own kinds that are there already, as they would be on the wire: nothing is written
//! and read again.

use std::borrow::Cow;

use joiner_api::types;

use super::pool::{
    NodeClaimTemplate, NodeClassReference, NodeOverlay, NodeOverlaySpec, NodePool, NodePoolSpec,
    NodePoolTemplate, Status,
};
use super::{Amount, Amounts, Condition, Expression, Meta, Taint, Text, TextMap};
use crate::error::ReadError;
use crate::quantity::Quantity;

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

fn text(given: &str) -> Option<Text<'_>> {
    Some(given.into())
}

fn meta(given: &types::ObjectMeta) -> Meta<'_> {
    Meta {
        name: text(&given.name),
        deletion_timestamp: given.deletion_timestamp.as_deref().map(Into::into),
        ..Meta::default()
    }
}

fn expression(given: &types::Requirement) -> Expression<'_> {
    Expression {
        key: text(&given.key),
        operator: text(given.operator.as_str()),
        values: Some(given.values.iter().map(|own| own.as_str().into()).collect()),
        min_values: given.min_values.map(i64::from),
    }
}

fn taint(given: &types::Taint) -> Taint<'_> {
    Taint {
        key: text(&given.key),
        value: given.value.as_deref().map(Into::into),
        effect: text(given.effect.as_str()),
    }
}

fn taints(given: Option<&Vec<types::Taint>>) -> Option<Vec<Taint<'_>>> {
    given.map(|all| all.iter().map(taint).collect())
}

fn condition(given: &types::Condition) -> Condition<'_> {
    Condition {
        kind: text(&given.type_),
        status: text(given.status.as_str()),
        reason: given.reason.as_deref().map(Into::into),
        message: given.message.as_deref().map(Into::into),
    }
}

fn labels(given: &types::TemplateMeta) -> Option<TextMap<'_>> {
    let pairs = given.labels.as_ref()?.iter();
    let pairs = pairs.map(|(key, value)| (key.as_str().into(), value.as_str().into()));
    Some(pairs.collect())
}

/// Amounts by resource; `field` is where they are.
fn amounts<'a>(given: &'a types::ResourceMap, field: &str) -> Result<Amounts<'a>, ReadError> {
    let amount = |(name, given): (&'a String, &'a types::Quantity)| {
        let resource = joiner_model::ResourceName::parse(name);
        let amount = Quantity::parse_amount_of(&resource, given.as_str());
        let amount = amount
            .map_err(|why| ReadError::new(why.to_string()).field(format!("{field}.{name}")))?;
        Ok((Text::from(name.as_str()), Amount(amount)))
    };
    Ok(Amounts(given.iter().map(amount).collect::<Result<_, _>>()?))
}

impl<'a> NodePool<'a> {
    /// A pool as it would be on the wire.
    ///
    /// # Errors
    /// A limit that is no amount.
    pub(crate) fn of(pool: &'a types::NodePool) -> Result<Self, ReadError> {
        let types::NodePoolSpec {
            template,
            limits,
            weight,
            replicas,
            ..
        } = &pool.spec;
        let node = &template.spec;
        let class = &node.node_class_ref;
        let template_meta = template.metadata.as_ref().map(|own| Meta {
            labels: labels(own),
            ..Meta::default()
        });
        let limits = limits.as_ref().map(|own| amounts(own, "spec.limits"));
        let conditions = |own: &'a types::NodePoolStatus| Status {
            conditions: own
                .conditions
                .as_ref()
                .map(|all| all.iter().map(condition).collect()),
        };
        Ok(Self {
            metadata: Some(meta(&pool.metadata)),
            spec: Some(NodePoolSpec {
                template: Some(NodePoolTemplate {
                    metadata: template_meta,
                    spec: Some(NodeClaimTemplate {
                        requirements: Some(node.requirements.iter().map(expression).collect()),
                        taints: taints(node.taints.as_ref()),
                        startup_taints: taints(node.startup_taints.as_ref()),
                        node_class_ref: Some(NodeClassReference {
                            group: text(&class.group),
                            kind: text(&class.kind),
                            name: text(&class.name),
                        }),
                    }),
                }),
                limits: limits.transpose()?,
                weight: *weight,
                replicas: *replicas,
            }),
            status: pool.status.as_ref().map(conditions),
        })
    }
}

impl<'a> NodeOverlay<'a> {
    /// An overlay as it would be on the wire.
    ///
    /// # Errors
    /// A capacity that is no amount.
    pub(crate) fn of(overlay: &'a types::NodeOverlay) -> Result<Self, ReadError> {
        let spec = &overlay.spec;
        let capacity = spec.capacity.as_ref();
        let capacity = capacity.map(|own| amounts(own, "spec.capacity"));
        Ok(Self {
            metadata: Some(meta(&overlay.metadata)),
            spec: Some(NodeOverlaySpec {
                requirements: Some(spec.requirements.iter().map(expression).collect()),
                price: spec.price.as_deref().map(Into::into),
                price_adjustment: spec.price_adjustment.as_deref().map(Into::into),
                capacity: capacity.transpose()?,
                weight: spec.weight,
            }),
        })
    }
}
