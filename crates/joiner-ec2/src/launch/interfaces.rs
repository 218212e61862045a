//! Network interfaces of a machine.

use joiner_api::types::{Ec2NodeClassSpec, InterfaceType, NetworkInterface};

use crate::request::{ConnectionTrackingSpecification, NetworkInterfaceSpecification};

/// The interfaces of a template: those of the class; else as many for Elastic Fabric Adapters as the type has,
/// if the claim asks for some; else one.
pub(super) fn interfaces(
    spec: &Ec2NodeClassSpec,
    groups: &[String],
    efa: u32,
    is_ipv6: bool,
) -> Vec<NetworkInterfaceSpecification> {
    let ordinary = || NetworkInterfaceSpecification {
        associate_public_ip_address: spec.associate_public_ip_address,
        connection_tracking_specification: tracking(spec),
        groups: groups.to_vec(),
        ipv4_prefix_count: spec.ip_prefix_count.filter(|_| !is_ipv6),
        ipv6_prefix_count: spec.ip_prefix_count.filter(|_| is_ipv6),
        ipv6_address_count: is_ipv6.then_some(1),
        primary_ipv6: is_ipv6.then_some(true),
        ..NetworkInterfaceSpecification::default()
    };
    let given = spec.network_interfaces.as_deref().unwrap_or_default();
    if !given.is_empty() {
        let one = |interface: &NetworkInterface| NetworkInterfaceSpecification {
            device_index: interface.device_index,
            interface_type: Some(interface.interface_type.as_str().to_owned()),
            network_card_index: Some(interface.network_card_index),
            ..match interface.interface_type {
                InterfaceType::Interface => ordinary(),
                // It has no address.
                InterfaceType::EfaOnly => NetworkInterfaceSpecification {
                    groups: groups.to_vec(),
                    ..NetworkInterfaceSpecification::default()
                },
            }
        };
        return given.iter().map(one).collect();
    }
    if efa == 0 {
        return vec![ordinary()];
    }
    let card = |card: u32| NetworkInterfaceSpecification {
        device_index: i32::from(card > 0),
        interface_type: Some("efa".to_owned()),
        network_card_index: i32::try_from(card).ok(),
        ..ordinary()
    };
    (0..efa).map(card).collect()
}

fn tracking(spec: &Ec2NodeClassSpec) -> Option<ConnectionTrackingSpecification> {
    let tracking = spec.connection_tracking.as_ref()?;
    Some(ConnectionTrackingSpecification {
        tcp_established_timeout: tracking.tcp_established_timeout,
        udp_stream_timeout: tracking.udp_stream_timeout,
        udp_timeout: tracking.udp_timeout,
    })
}
