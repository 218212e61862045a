//! Requests to EC2, field by field as its API names them.
//!
//! Fields that are not set are left out; EC2 then has a default of its own.

mod fleet;
mod query;
mod template;

pub use fleet::{
    AllocationOptions, CreateFleet, FleetLaunchTemplateConfig, FleetLaunchTemplateOverrides,
    LaunchTemplateSpecification, ReservedCapacityOptions, RunInstances, TargetCapacity,
};
pub use query::{Filter, Query};
pub use template::{
    BlockDeviceMapping, CapacityReservationSpecification, CapacityReservationTarget,
    ConnectionTrackingSpecification, CpuOptions, CreateLaunchTemplate, EbsBlockDevice,
    EnclaveOptions, IamInstanceProfile, InstanceMarketOptions, LaunchTemplateData, MetadataOptions,
    Monitoring, NetworkInterfaceSpecification, Placement,
};
