//! What EC2 answers, field by field as its API names them.
//!
//! Only fields that something rests on are read, and every one of them may be missing: a reader decides what
//! that means.

mod described;
mod instance_type;
mod launched;

pub use described::{
    CapacityReservation, Image, InstanceState, InstanceStatus, LaunchTemplate, PlacementGroup,
    ScheduledEvent, SecurityGroup, SpotPrice, StatusDetail, StatusSummary, Subnet,
};
pub use instance_type::{
    AcceleratorDevice, AcceleratorMemory, Devices, EbsBandwidth, EbsInfo, EfaInfo, GpuDevice,
    InstanceStorage, InstanceTypeInfo, InstanceTypeOffering, MemoryInfo, NetworkCard, NetworkInfo,
    NeuronCoreInfo, NeuronDevice, PlacementGroupInfo, ProcessorInfo, VCpuInfo,
};
pub use launched::{
    CreateFleetResult, FleetError, FleetInstance, GroupIdentifier, Instance,
    InstanceNetworkInterface, InstancePlacement, LaunchTemplateAndOverrides,
    ReservationSpecification, StateChange,
};
