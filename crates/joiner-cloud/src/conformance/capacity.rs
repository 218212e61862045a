//! Checks of what can be had: the catalog, shortages, classes, and too many calls.

use std::sync::Arc;
use std::time::Duration;

use joiner_model::{InstanceType, Labels, Name, Requirement, ResourceName, keys};

use super::{Outcome, Subject, catalog_of, ensure, failed, launch, list, offerings, order};
use crate::{CloudError, Instance, LaunchError, NodeClass, ProviderId, Retry};

/// After this long a cloud has forgotten that something was sold out.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Types and offerings have the labels that decisions rest on.
pub(super) async fn catalog(subject: &dyn Subject) -> Outcome {
    let types = catalog_of(subject).await?;
    ensure(!offerings(&types).is_empty(), || {
        "nothing is for sale".to_owned()
    })?;
    for ty in types.iter() {
        let named = ty.labels.get(keys::INSTANCE_TYPE).map(Vec::as_slice);
        ensure(named == Some(std::slice::from_ref(&ty.name)), || {
            format!("{} has another instance-type label", ty.name)
        })?;
        for key in [keys::ARCH, keys::OS] {
            ensure(ty.labels.contains_key(key), || {
                format!("{} lacks {key}", ty.name)
            })?;
        }
        for offering in &ty.offerings {
            for key in [keys::ZONE, keys::CAPACITY_TYPE] {
                ensure(offering.labels.contains_key(key), || {
                    format!("an offering of {} lacks {key}", ty.name)
                })?;
            }
        }
    }
    Ok(())
}

/// What an order does not allow is not launched.
pub(super) async fn requirements(subject: &dyn Subject) -> Outcome {
    let cloud = subject.cloud();
    let types = catalog_of(subject).await?;
    let zones: Vec<Name> = offerings(&types)
        .iter()
        .filter_map(|(_, offering)| offering.labels.get(keys::ZONE).cloned())
        .collect();
    let last = zones.iter().max().cloned().ok_or("no zone is for sale")?;
    let mut narrow = order(subject, "000000000008").await?;
    narrow
        .requirements
        .add(Requirement::is(keys::ZONE, last.clone()));
    let instance = launch(subject, &narrow).await?;
    let zone = instance.labels.get(keys::ZONE);
    ensure(zone == Some(&last), || {
        format!("{zone:?} was launched instead of {last}")
    })?;
    ensure(narrow.requirements.hold_for(&instance.labels), || {
        format!("{:?} breaks {}", instance.labels, narrow.requirements)
    })?;
    let mut nowhere = order(subject, "000000000009").await?;
    nowhere
        .requirements
        .add(Requirement::is(keys::ZONE, "nowhere".into()));
    is_insufficient(&cloud.launch(&nowhere).await)?;
    let mut huge = order(subject, "000000000010").await?;
    huge.requests.set(ResourceName::Cpu, 10_000_000);
    is_insufficient(&cloud.launch(&huge).await)?;
    let listed = list(subject).await?;
    ensure(listed.len() == 1, || {
        format!("there are {} machines", listed.len())
    })
}

fn is_insufficient(launched: &Result<Instance, LaunchError>) -> Outcome {
    match launched {
        Err(LaunchError::InsufficientCapacity(_)) => Ok(()),
        Err(other) => Err(format!("the error is not about capacity: {other}")),
        Ok(instance) => Err(format!("{} was launched against the order", instance.id)),
    }
}

/// Sold out offerings are told, shown as unavailable, and come back.
pub(super) async fn sold_out(subject: &dyn Subject) -> Outcome {
    let cloud = subject.cloud();
    let order = order(subject, "000000000011").await?;
    let types = catalog_of(subject).await?;
    let wanted: Vec<(Name, Labels)> = offerings(&types)
        .iter()
        .filter(|(ty, _)| order.types.contains(&ty.name))
        .map(|(ty, offering)| (ty.name.clone(), offering.labels.clone()))
        .collect();
    subject.sell_out(&wanted).await;
    let refused = cloud.launch(&order).await;
    is_insufficient(&refused)?;
    let retry = refused.err().map(|error| error.retry());
    ensure(retry == Some(Retry::DecideAnew), || {
        format!("{retry:?} is no way out")
    })?;
    let shown = catalog_of(subject).await?;
    ensure(shown.len() == types.len(), || {
        "sold out types are left out".to_owned()
    })?;
    let still = offerings(&shown);
    let still = still
        .iter()
        .filter(|(ty, _)| order.types.contains(&ty.name))
        .count();
    ensure(still == 0, || {
        format!("{still} offerings are shown as available")
    })?;
    let cheapest: Vec<_> = wanted.iter().take(1).cloned().collect();
    subject.sell_out(&cheapest).await;
    subject.pass(FORGOTTEN_AFTER).await;
    let instance = launch(subject, &order).await?;
    let (ty, labels) = &wanted[0];
    let is_first = instance.labels.get(keys::INSTANCE_TYPE) == Some(ty)
        && instance.labels.get(keys::ZONE) == labels.get(keys::ZONE)
        && instance.labels.get(keys::CAPACITY_TYPE) == labels.get(keys::CAPACITY_TYPE);
    subject.sell_out(&[]).await;
    ensure(!is_first, || "what is sold out was sold".to_owned())?;
    subject.pass(FORGOTTEN_AFTER).await;
    let shown = catalog_of(subject).await?;
    ensure(offerings(&shown).len() == offerings(&types).len(), || {
        "what was sold out did not come back".to_owned()
    })
}

/// The catalog is the same list until something changes, and needs no call to the cloud.
pub(super) async fn from_memory(subject: &dyn Subject) -> Outcome {
    let listed = unchanged(subject).await?;
    let order = order(subject, "000000000015").await?;
    let cheapest: Vec<(Name, Labels)> = offerings(&listed)
        .iter()
        .take(1)
        .map(|(ty, offering)| (ty.name.clone(), offering.labels.clone()))
        .collect();
    subject.sell_out(&cheapest).await;
    let launched = launch(subject, &order).await;
    subject.sell_out(&[]).await;
    launched?;
    let short = unchanged(subject).await?;
    ensure(!Arc::ptr_eq(&listed, &short), || {
        "a refusal did not change the catalog".to_owned()
    })?;
    subject.throttle(true).await;
    let throttled = unchanged(subject).await;
    subject.throttle(false).await;
    let throttled = throttled?;
    ensure(Arc::ptr_eq(&short, &throttled), || {
        "the catalog changed when calls were refused".to_owned()
    })?;
    subject.pass(FORGOTTEN_AFTER).await;
    unchanged(subject).await.map(drop)
}

/// The catalog, which equal classes share.
async fn unchanged(subject: &dyn Subject) -> Result<Arc<Vec<InstanceType>>, String> {
    let cloud = subject.cloud();
    let class = subject.class();
    let equal = NodeClass {
        object: Arc::new((*class.object).clone()),
        ..class.clone()
    };
    let types = catalog_of(subject).await?;
    for class in [&class, &equal] {
        let again = cloud.instance_types(class).await;
        let again = again.map_err(|error| failed("instance_types", error))?;
        ensure(Arc::ptr_eq(&types, &again), || {
            "the same catalog comes as another list".to_owned()
        })?;
    }
    Ok(types)
}

/// Without a class, or with one that is not ready, nothing is launched.
pub(super) async fn classes(subject: &dyn Subject) -> Outcome {
    let cloud = subject.cloud();
    let mut missing = order(subject, "000000000012").await?;
    missing.class = None;
    let refused = cloud.launch(&missing).await.err();
    ensure(
        refused.as_ref().map(LaunchError::retry) == Some(Retry::DecideAnew),
        || format!("without a class the answer is {refused:?}"),
    )?;
    let mut unready = order(subject, "000000000013").await?;
    unready.class = Some(subject.unready_class());
    let refused = cloud.launch(&unready).await;
    ensure(
        matches!(refused, Err(LaunchError::ClassNotReady(_))),
        || format!("with a class that is not ready the answer is {refused:?}"),
    )?;
    let listed = list(subject).await?;
    ensure(listed.is_empty(), || {
        format!("there are {} machines", listed.len())
    })
}

/// Too many calls are not mistaken for anything else.
pub(super) async fn throttled(subject: &dyn Subject) -> Outcome {
    let order = order(subject, "000000000014").await?;
    subject.throttle(true).await;
    let cloud = subject.cloud();
    let launched = cloud.launch(&order).await;
    let listed = cloud.instances().await;
    let ended = cloud
        .terminate(&ProviderId("nowhere:///zone/i-0".into()))
        .await;
    subject.throttle(false).await;
    ensure(matches!(launched, Err(LaunchError::Throttled(_))), || {
        format!("launch answers {launched:?}")
    })?;
    ensure(matches!(listed, Err(CloudError::Throttled(_))), || {
        format!("instances answers {listed:?}")
    })?;
    ensure(matches!(ended, Err(CloudError::Throttled(_))), || {
        format!("terminate answers {ended:?}")
    })?;
    subject.pass(Duration::from_secs(60)).await;
    launch(subject, &order).await.map(drop)
}
