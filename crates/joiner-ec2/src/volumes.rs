//! Volumes of a machine: those of the class, or the defaults of its family.

use joiner_api::types::{AmiFamily, BlockDevice, BlockDeviceMapping, Quantity};

use crate::request;

const GIB: u128 = 1 << 30;

/// The mappings that a launch template carries. Mappings of the class replace the defaults entirely.
#[must_use]
pub fn mappings(
    given: Option<&[BlockDeviceMapping]>,
    family: AmiFamily,
) -> Vec<request::BlockDeviceMapping> {
    match given.filter(|given| !given.is_empty()) {
        Some(given) => given.iter().map(mapping).collect(),
        None => defaults(family).into_iter().map(default).collect(),
    }
}

/// Device and GiB of each volume that a family starts with; none where the image decides.
fn defaults(family: AmiFamily) -> Vec<(&'static str, i32)> {
    match family {
        AmiFamily::Al2 | AmiFamily::Al2023 => vec![("/dev/xvda", 20)],
        AmiFamily::Bottlerocket => vec![("/dev/xvda", 4), ("/dev/xvdb", 20)],
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            vec![("/dev/sda1", 50)]
        }
        AmiFamily::Custom => Vec::new(),
    }
}

fn default((device, gib): (&str, i32)) -> request::BlockDeviceMapping {
    request::BlockDeviceMapping {
        device_name: Some(device.to_owned()),
        ebs: Some(request::EbsBlockDevice {
            encrypted: Some(true),
            volume_size: Some(gib),
            volume_type: Some("gp3".to_owned()),
            ..request::EbsBlockDevice::default()
        }),
    }
}

fn mapping(given: &BlockDeviceMapping) -> request::BlockDeviceMapping {
    request::BlockDeviceMapping {
        device_name: given.device_name.clone(),
        ebs: given.ebs.as_ref().map(volume),
    }
}

fn volume(given: &BlockDevice) -> request::EbsBlockDevice {
    let number = |number: Option<i64>| {
        let number = number.and_then(|number| i32::try_from(number).ok());
        number.filter(|number| *number != 0)
    };
    request::EbsBlockDevice {
        delete_on_termination: given.delete_on_termination,
        encrypted: given.encrypted,
        iops: number(given.iops),
        kms_key_id: given.kms_key_id.clone(),
        snapshot_id: given.snapshot_id.clone(),
        throughput: number(given.throughput),
        volume_initialization_rate: given.volume_initialization_rate,
        volume_size: given.volume_size.as_ref().and_then(gib),
        volume_type: given
            .volume_type
            .map(|volume_type| volume_type.as_str().to_owned()),
    }
}

/// A size in GiB, rounded up. What is no size is none; the schema keeps it out.
#[must_use]
pub fn gib(size: &Quantity) -> Option<i32> {
    i32::try_from(bytes(size)?.div_ceil(GIB)).ok()
}

/// A size in bytes, as the schema allows it: a whole number of `Gi`, `G`, `Ti` or `T`.
#[must_use]
pub fn bytes(size: &Quantity) -> Option<u128> {
    const UNITS: [(&str, u128); 4] = [
        ("Gi", GIB),
        ("Ti", GIB << 10),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ];
    UNITS.iter().find_map(|(unit, bytes)| {
        let number: u64 = size.as_str().strip_suffix(unit)?.parse().ok()?;
        u128::from(number).checked_mul(*bytes)
    })
}
