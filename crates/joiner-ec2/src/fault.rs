//! Errors of AWS, sorted by what is to be done about them.

/// An error as AWS says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Fault {
    /// One word.
    pub code: String,
    /// In a sentence.
    pub message: String,
    /// The fault is AWS's: a status of 500 and above.
    pub is_server_side: bool,
}

/// What an error calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    /// It would have worked: the answer to a dry run.
    DryRun,
    /// Too many calls: again, more slowly.
    Throttled,
    /// The fault is AWS's: again.
    ServerSide,
    /// There is no such thing; what was to be deleted is gone.
    NotFound,
    /// There is one already; what was to be made is there.
    AlreadyExists,
    /// Credentials have expired or are not valid: again, once there are others.
    Credentials,
    /// No permission: a person must do something.
    Unauthorized,
    /// Anything else: a person must look at it.
    Other,
}

const NOT_FOUND: [&str; 9] = [
    "InvalidCapacityReservationId.NotFound",
    "InvalidInstanceID.NotFound",
    "InvalidLaunchTemplateName.NotFoundException",
    "InvalidLaunchTemplateId.NotFound",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchEntity",
    "NoSuchEntityException",
    "ParameterNotFound",
];
const ALREADY_EXISTS: [&str; 3] = [
    "EntityAlreadyExists",
    "EntityAlreadyExistsException",
    "InvalidLaunchTemplateName.AlreadyExistsException",
];
const THROTTLED: [&str; 7] = [
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
];
const CREDENTIALS: [&str; 8] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
];
const UNAUTHORIZED: [&str; 5] = [
    "UnauthorizedOperation",
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "UnauthorizedException",
];
const SERVER_SIDE: [&str; 5] = [
    "InternalError",
    "InternalFailure",
    "ServiceUnavailable",
    "Unavailable",
    "InternalServerError",
];

/// The template that a fleet or a machine was to be made from is gone.
pub(crate) const TEMPLATE_NOT_FOUND: [&str; 2] = [
    "InvalidLaunchTemplateName.NotFoundException",
    "InvalidLaunchTemplateId.NotFound",
];

impl Fault {
    /// A fault of the caller.
    #[must_use]
    pub fn new(code: &str, message: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: message.to_owned(),
            is_server_side: false,
        }
    }

    /// What it calls for.
    #[must_use]
    pub fn class(&self) -> FaultClass {
        let code = self.code.as_str();
        let is = |list: &[&str]| list.contains(&code);
        match () {
            () if code == "DryRunOperation" => FaultClass::DryRun,
            () if is(&THROTTLED) => FaultClass::Throttled,
            () if is(&NOT_FOUND) => FaultClass::NotFound,
            () if is(&ALREADY_EXISTS) => FaultClass::AlreadyExists,
            () if is(&CREDENTIALS) => FaultClass::Credentials,
            () if is(&UNAUTHORIZED) => FaultClass::Unauthorized,
            () if self.is_server_side || is(&SERVER_SIDE) => FaultClass::ServerSide,
            () => FaultClass::Other,
        }
    }

    /// The template is gone.
    #[must_use]
    pub fn is_template_gone(&self) -> bool {
        TEMPLATE_NOT_FOUND.contains(&self.code.as_str())
    }

    /// The role of a profile is gone, not the profile: IAM has one code for both.
    #[must_use]
    pub fn is_role_gone(&self) -> bool {
        self.class() == FaultClass::NotFound && self.message.contains("role")
    }

    /// User data is too long.
    #[must_use]
    pub fn is_user_data_too_long(&self) -> bool {
        self.message.contains("User data is limited to")
    }

    /// The profile does not exist, or has not come to where machines are made.
    #[must_use]
    pub fn is_profile_invalid(&self) -> bool {
        let message = self.message.to_lowercase();
        message.contains("iaminstanceprofile") || message.contains("iam instance profile")
    }

    /// The reason that the condition of a claim gives for a launch that failed like this.
    #[must_use]
    pub fn launch_reason(&self) -> &'static str {
        launch_reason(&self.code, &self.message)
    }
}

/// Marks in code or message, and the reason that each stands for. The first that is found counts.
const REASONS: [(&[&str], &str); 17] = [
    (
        &["AuthFailure.ServiceLinkedRoleCreationNotPermitted"],
        "SpotSLRCreationFailed",
    ),
    (
        &["not authorized for images", "Not authorized for images"],
        "AMIAuthorizationFailure",
    ),
    (
        &["UnauthorizedOperation", "AccessDenied", "AuthFailure"],
        "Unauthorized",
    ),
    (
        &["belong to different networks"],
        "SecurityGroupSubnetVPCMismatch",
    ),
    (
        &[
            "iamInstanceProfile.name is invalid",
            "Invalid IAM Instance Profile name",
        ],
        "InstanceProfileNameInvalid",
    ),
    (&TEMPLATE_NOT_FOUND, "LaunchTemplateNotFound"),
    (&["User data is limited to"], "UserDataSizeLimitExceeded"),
    (&["InvalidAMIID.Malformed"], "InvalidAMIID"),
    (
        &["InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"],
        "AMINotFound",
    ),
    (&["RequestLimitExceeded"], "RequestLimitExceeded"),
    (&["InternalError"], "InternalError"),
    (&["Free Tier", "FreeTier"], "FreeTierIneligible"),
    (&["MaxFleetCountExceeded"], "FleetQuotaExceeded"),
    (&["PendingVerification"], "AccountPendingVerification"),
    (&["MaxSpotInstanceCountExceeded"], "SpotQuotaExceeded"),
    (&["VcpuLimitExceeded"], "VCPULimitExceeded"),
    (
        &["InsufficientFreeAddressesInSubnet"],
        "InsufficientFreeAddressesInSubnet",
    ),
];

pub(crate) fn launch_reason(code: &str, message: &str) -> &'static str {
    let said = |mark: &&str| code.contains(*mark) || message.contains(*mark);
    let found = REASONS.iter().find(|(marks, _)| marks.iter().any(said));
    found.map_or("LaunchFailed", |(_, reason)| reason)
}
