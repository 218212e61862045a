//! The instance types of every node class, as the cloud last gave them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use joiner_api::labels::RESERVED;
use joiner_cloud::{CatalogError, Cloud, CloudError, NodeClass};
use joiner_engine::Failure;
use joiner_model::{InstanceType, NanoDollars, keys};
use joiner_state::NodeClassRef;
use joiner_state::live::{LiveClass, Snapshot};

/// Lists by class.
pub type Lists = BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>>;

/// The instance types of every node class.
#[derive(Clone, Debug, Default)]
pub struct Catalogs {
    lists: Arc<Mutex<Arc<Lists>>>,
}

impl Catalogs {
    /// Everything as it was last given.
    #[must_use]
    pub fn lists(&self) -> Arc<Lists> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&lists)
    }

    /// The types of one class.
    #[must_use]
    pub fn of(&self, class: &NodeClassRef) -> Option<Arc<Vec<InstanceType>>> {
        self.lists().get(class).cloned()
    }

    /// Asks the cloud anew for all classes that pools name. A class that cannot be used is left
    /// out, and one that the cloud does not answer for has the types that it had last; why is returned.
    pub async fn refresh(&self, cloud: &dyn Cloud, now: &Snapshot) -> Vec<(NodeClassRef, String)> {
        let before = self.lists();
        let mut lists = Lists::new();
        let mut troubles = Vec::new();
        for pool in now.pools() {
            if lists.contains_key(&pool.class) {
                continue;
            }
            let Some(class) = now.class(&pool.class) else {
                continue;
            };
            match cloud.instance_types(&for_cloud(class)).await {
                Ok(types) => {
                    lists.insert(pool.class.clone(), types);
                }
                Err(error) => {
                    let last = before.get(&pool.class);
                    let last = last.filter(|_| matches!(error, CatalogError::Other(_)));
                    lists.extend(last.map(|own| (pool.class.clone(), Arc::clone(own))));
                    troubles.push((pool.class.clone(), error.to_string()));
                }
            }
        }
        let mut own = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Arc::new(lists);
        troubles
    }
}

/// What a machine of this type costs that has these labels, whether it could be had again or not:
/// the cheapest offering in its zone and of its capacity type that is not told apart from it by
/// another label, such as the reservation. What is reserved is paid for in any case: out of a
/// reservation that is not listed any more it costs nothing.
pub(crate) fn price<'l>(
    own: &InstanceType,
    label: impl Fn(&str) -> Option<&'l str>,
) -> Option<NanoDollars> {
    let is_own = |key: &str, value: &str| {
        let exactly = [keys::ZONE, keys::CAPACITY_TYPE].contains(&key);
        label(key).map_or(!exactly, |own| own == value)
    };
    let offerings = own.offerings.iter().filter(|offering| {
        let mut labels = offering.labels.iter();
        labels.all(|(key, value)| is_own(key, value))
    });
    let cheapest = offerings.map(|offering| offering.price).min();
    let is_reserved = label(keys::CAPACITY_TYPE) == Some(RESERVED);
    cheapest.or(is_reserved.then_some(NanoDollars::ZERO))
}

/// A class as clouds take it.
#[must_use]
pub fn for_cloud(class: &LiveClass) -> NodeClass {
    NodeClass {
        group: class.reference.group.clone(),
        kind: class.reference.kind.clone(),
        name: class.reference.name.clone(),
        object: Arc::clone(&class.object),
    }
}

/// What a controller makes of a cloud that says no.
#[must_use]
pub(crate) fn cloud_failed(error: CloudError) -> Failure {
    match error {
        CloudError::Throttled(why) => Failure::Throttled(why),
        CloudError::Other(why) => Failure::Other(why),
    }
}

#[cfg(test)]
pub(crate) mod made {
    //! A cloud that sells and does nothing else.

    use async_trait::async_trait;
    use joiner_api::types::NodeClaim;
    use joiner_cloud::{
        CatalogError, ClassKind, CloudError, Instance, LaunchError, Order, ProviderId, Termination,
    };
    use joiner_model::Name;

    use super::{Arc, Cloud, InstanceType, Mutex, NodeClass};

    /// Sells the same to all classes, but not always.
    pub(crate) struct Moody {
        types: Arc<Vec<InstanceType>>,
        refused: Mutex<Option<&'static str>>,
    }

    impl Moody {
        pub(crate) fn new(types: Arc<Vec<InstanceType>>) -> Self {
            let refused = Mutex::new(None);
            Self { types, refused }
        }

        /// From now on it tells this class nothing.
        pub(crate) fn refuse(&self, class: Option<&'static str>) {
            *self.refused.lock().unwrap() = class;
        }
    }

    fn never() -> CloudError {
        CloudError::Other("it only sells".to_owned())
    }

    #[async_trait]
    impl Cloud for Moody {
        fn name(&self) -> &'static str {
            "moody"
        }

        fn classes(&self) -> &'static [ClassKind] {
            &[]
        }

        async fn instance_types(
            &self,
            class: &NodeClass,
        ) -> Result<Arc<Vec<InstanceType>>, CatalogError> {
            match *self.refused.lock().unwrap() {
                Some(refused) if *class.name == *refused => {
                    Err(CatalogError::Other("not today".to_owned()))
                }
                Some(_) | None => Ok(Arc::clone(&self.types)),
            }
        }

        async fn launch(&self, _: &Order) -> Result<Instance, LaunchError> {
            Err(LaunchError::Other("it only sells".to_owned()))
        }

        async fn terminate(&self, _: &ProviderId) -> Result<Termination, CloudError> {
            Err(never())
        }

        async fn instance(&self, _: &ProviderId) -> Result<Option<Instance>, CloudError> {
            Err(never())
        }

        /// To this it never answers.
        async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
            std::future::pending().await
        }

        async fn drift(&self, _: &NodeClaim, _: &NodeClass) -> Result<Option<Name>, CloudError> {
            Err(never())
        }
    }
}

#[cfg(test)]
mod tests {
    use joiner_model::{Labels, Offering, Resources};
    use joiner_state::live::Kind;
    use serde_json::json;

    use super::*;

    const ID: &str = "karpenter.k8s.aws/capacity-reservation-id";

    fn labels(own: &[(&str, &str)]) -> Labels {
        let pairs = own.iter();
        pairs.map(|(k, v)| ((*k).into(), (*v).into())).collect()
    }

    /// Labels of a machine or offering in zone a.
    fn paid(capacity_type: &str, more: &[(&str, &str)]) -> Labels {
        let own = [(keys::ZONE, "a"), (keys::CAPACITY_TYPE, capacity_type)];
        labels(&[&own, more].concat())
    }

    #[tokio::test]
    async fn a_class_that_gets_no_answer_has_what_it_had_last() {
        let cloud = made::Moody::new(Arc::new(Vec::new()));
        let mut cluster = crate::nodeclaim::lifecycle::made::Cluster::default();
        cluster.put(
            Kind::NodePool,
            crate::nodeclaim::lifecycle::made::pool("uid-p"),
        );
        let class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
            "metadata": {"name": "k", "uid": "uid-k"}});
        cluster.put(Kind::NodeClass, class);
        let now = cluster.snapshot();
        let catalogs = Catalogs::default();
        cloud.refuse(Some("k"));
        assert_eq!(catalogs.refresh(&cloud, &now).await.len(), 1);
        assert!(catalogs.lists().is_empty(), "nothing was known");
        cloud.refuse(None);
        assert!(catalogs.refresh(&cloud, &now).await.is_empty());
        assert_eq!(catalogs.lists().len(), 1);
        cloud.refuse(Some("k"));
        let troubles = catalogs.refresh(&cloud, &now).await;
        assert_eq!(troubles[0].1, "not today");
        assert_eq!(catalogs.lists().len(), 1);
    }

    #[test]
    fn core_204_a_node_costs_what_its_own_reservation_does() {
        let offerings = [
            (paid("reserved", &[(ID, "dear")]), 4),
            (paid("reserved", &[(ID, "cheap")]), 2),
            (paid("on-demand", &[]), 100),
            (
                labels(&[(keys::ZONE, "b"), (keys::CAPACITY_TYPE, "spot")]),
                50,
            ),
        ];
        let own = InstanceType {
            name: "m".into(),
            labels: BTreeMap::new(),
            capacity: Resources::new(),
            overhead: Resources::new(),
            offerings: offerings
                .map(|(labels, nanos)| Offering {
                    labels,
                    price: NanoDollars::new(nanos),
                    available: false,
                    reservation: None,
                    extra_capacity: Resources::new(),
                })
                .into(),
        };
        for (labels, expected) in [
            (paid("reserved", &[(ID, "dear")]), Some(4)),
            (paid("reserved", &[(ID, "cheap")]), Some(2)),
            (paid("reserved", &[]), Some(2)),
            (paid("reserved", &[(ID, "over")]), Some(0)),
            (paid("on-demand", &[("team", "x")]), Some(100)),
            (paid("spot", &[]), None),
            (labels(&[(keys::CAPACITY_TYPE, "on-demand")]), None),
            (labels(&[(keys::ZONE, "a")]), None),
        ] {
            let found = price(&own, |key| labels.get(key).map(AsRef::as_ref));
            assert_eq!(found.map(NanoDollars::get), expected, "{labels:?}");
        }
    }
}
