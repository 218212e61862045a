//! Checks of single machines: launched once, found, and ended.

use futures::future::join_all;
use joiner_model::keys;

use super::{
    Outcome, Subject, catalog_of, ensure, failed, launch, list, offerings, order, terminate,
};
use crate::{Instance, ProviderId, Termination};

/// Labels that every machine must have.
const LABELS: [&str; 5] = [
    keys::INSTANCE_TYPE,
    keys::ZONE,
    keys::CAPACITY_TYPE,
    keys::ARCH,
    keys::OS,
];

/// The machine is the cheapest of those that were asked for, and says what it is.
pub(super) async fn cheapest(subject: &dyn Subject) -> Outcome {
    let order = order(subject, "000000000001").await?;
    let types = catalog_of(subject).await?;
    let listed = offerings(&types);
    let mut wanted = listed
        .iter()
        .filter(|(ty, _)| order.types.contains(&ty.name));
    let price = wanted.next().map(|(_, offering)| offering.price);
    let instance = launch(subject, &order).await?;
    for key in LABELS {
        ensure(instance.labels.contains_key(key), || {
            format!("label {key} is missing")
        })?;
    }
    let label = |key: &str| instance.labels.get(key);
    let bought = listed.iter().find(|(ty, offering)| {
        let labels = &offering.labels;
        Some(&ty.name) == label(keys::INSTANCE_TYPE)
            && labels.get(keys::ZONE) == label(keys::ZONE)
            && labels.get(keys::CAPACITY_TYPE) == label(keys::CAPACITY_TYPE)
    });
    let Some((ty, offering)) = bought else {
        return Err(format!("the catalog does not have {:?}", instance.labels));
    };
    ensure(Some(offering.price) == price, || {
        format!("{} costs {}, not {price:?}", ty.name, offering.price)
    })?;
    ensure(order.requests.fits(&instance.allocatable), || {
        format!("{} does not hold {}", instance.allocatable, order.requests)
    })?;
    ensure(instance.allocatable.fits(&instance.capacity), || {
        format!("{} exceeds {}", instance.allocatable, instance.capacity)
    })?;
    ensure(!instance.terminating, || {
        "a new machine is on its way out".to_owned()
    })
}

fn same(one: &Instance, two: &Instance) -> Outcome {
    ensure(one.id == two.id, || {
        format!("the same order got {} and {}", one.id, two.id)
    })?;
    ensure(one.labels == two.labels, || {
        format!("{} changed its labels", one.id)
    })
}

/// However often an order is placed, also at the same time, there is one machine.
pub(super) async fn one_machine(subject: &dyn Subject) -> Outcome {
    let order = order(subject, "000000000002").await?;
    let at_once = (0..4).map(|_| launch(subject, &order));
    let mut all = Vec::new();
    for launched in join_all(at_once).await {
        all.push(launched?);
    }
    all.push(launch(subject, &order).await?);
    for pair in all.windows(2) {
        same(&pair[0], &pair[1])?;
    }
    let listed = list(subject).await?;
    ensure(listed.len() == 1, || {
        format!("there are {} machines", listed.len())
    })
}

/// Who starts anew finds the machines of before, even if they could not be bought now.
pub(super) async fn crash(subject: &dyn Subject) -> Outcome {
    let order = order(subject, "000000000003").await?;
    let before = launch(subject, &order).await?;
    subject.crash().await;
    same(&before, &launch(subject, &order).await?)?;
    let types = catalog_of(subject).await?;
    let all = offerings(&types).into_iter();
    let all = all.map(|(ty, offering)| (ty.name.clone(), offering.labels.clone()));
    subject.sell_out(&all.collect::<Vec<_>>()).await;
    let again = launch(subject, &order).await;
    subject.sell_out(&[]).await;
    same(&before, &again?)?;
    let listed = list(subject).await?;
    ensure(listed.len() == 1, || {
        format!("there are {} machines", listed.len())
    })?;
    terminate(subject, &before.id).await?;
    subject.crash().await;
    let left = list(subject).await?;
    ensure(left.is_empty(), || {
        "a machine came back after a crash".to_owned()
    })
}

/// Machines are found by their ids, and only by theirs.
pub(super) async fn found(subject: &dyn Subject) -> Outcome {
    let cloud = subject.cloud();
    let one = launch(subject, &order(subject, "000000000004").await?).await?;
    let two = launch(subject, &order(subject, "000000000005").await?).await?;
    ensure(one.id != two.id, || format!("two orders got {}", one.id))?;
    for instance in [&one, &two] {
        let found = cloud.instance(&instance.id).await;
        let found = found.map_err(|error| failed("instance", error))?;
        let found = found.ok_or_else(|| format!("{} is not found", instance.id))?;
        same(instance, &found)?;
        ensure(
            found.claim == instance.claim && found.claim.is_some(),
            || format!("{} does not say whose it is", instance.id),
        )?;
    }
    let listed = list(subject).await?;
    ensure(listed.len() == 2, || {
        format!("{} of 2 machines are listed", listed.len())
    })?;
    let unknown = ProviderId("nowhere:///zone/i-0".into());
    let found = cloud.instance(&unknown).await;
    let found = found.map_err(|error| failed("instance", error))?;
    ensure(found.is_none(), || {
        "a machine that never was is found".to_owned()
    })
}

/// A machine ends, stays ended, and takes no other one with it.
pub(super) async fn end(subject: &dyn Subject) -> Outcome {
    let cloud = subject.cloud();
    let one = launch(subject, &order(subject, "000000000006").await?).await?;
    let two = launch(subject, &order(subject, "000000000007").await?).await?;
    terminate(subject, &one.id).await?;
    let found = cloud.instance(&one.id).await;
    let found = found.map_err(|error| failed("instance", error))?;
    ensure(found.is_none_or(|found| found.terminating), || {
        format!("{} is still there", one.id)
    })?;
    let listed = list(subject).await?;
    let ids: Vec<&ProviderId> = listed.iter().map(|instance| &instance.id).collect();
    ensure(ids == [&two.id], || {
        format!("{ids:?} are listed, not {}", two.id)
    })?;
    for id in [&one.id, &ProviderId("nowhere:///zone/i-0".into())] {
        let answer = cloud.terminate(id).await;
        let answer = answer.map_err(|error| failed("terminate", error))?;
        ensure(answer == Termination::Gone, || format!("{id} is not gone"))?;
    }
    Ok(())
}
