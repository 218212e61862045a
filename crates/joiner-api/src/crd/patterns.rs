//! Patterns of text fields, and the words for them.

/// Kubernetes quantities.
pub(super) const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// Label keys, taint keys, condition types.
pub(super) const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// Label values; the empty one is legal.
pub(super) const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// Durations in hours, minutes and seconds.
pub(super) const DURATION: &str = "^([0-9]+(s|m|h))+$";
/// The same, or the word for no end.
pub(super) const DURATION_OR_NEVER: &str = "^(([0-9]+(s|m|h))+|Never)$";
/// Any duration that Go can read, if it is not negative.
pub(super) const GO_DURATION: &str = r"^(0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$";
/// Length of a budget's window.
pub(super) const WINDOW: &str = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$";
/// Nodes of a budget.
pub(super) const BUDGET_NODES: &str = "^((100|[0-9]{1,2})%|[0-9]+)$";
/// Cron expressions, loosely: what cannot be read later allows no disruption.
pub(super) const SCHEDULE: &str =
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$";
/// Group of a node class.
pub(super) const NO_SLASH: &str = "^[^/]*$";
/// Absolute prices.
pub(super) const PRICE: &str = r"^[0-9]+(\.[0-9]+)?$";
/// Shifts of prices.
pub(super) const PRICE_ADJUSTMENT: &str =
    r"^([+-][0-9]*\.?[0-9]+|\+[0-9]*\.?[0-9]+%|-([0-9]{1,2}(\.[0-9]+)?|100(\.0+)?)%)$";
/// Reasons of conditions.
pub(super) const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
/// Reasons of conditions, where none may be given.
pub(super) const REASON_OR_NONE: &str = "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$";
/// Sizes of EBS volumes.
pub(super) const VOLUME_SIZE: &str = "^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|([1-9]|[1-4][0-9]|5[0-8])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$";
/// Ids of subnets, anywhere in the text.
pub(super) const SUBNET_ID: &str = "subnet-[0-9a-z]+";
/// Ids of security groups, anywhere in the text.
pub(super) const SECURITY_GROUP_ID: &str = "sg-[0-9a-z]+";
/// Ids of images, anywhere in the text.
pub(super) const AMI_ID: &str = "ami-[0-9a-z]+";
/// Ids of capacity reservations.
pub(super) const RESERVATION_ID: &str = "^cr-[0-9a-z]+$";
/// Ids of placement groups.
pub(super) const PLACEMENT_GROUP_ID: &str = "^pg-[0-9a-z]+$";
/// Ids of AWS accounts.
pub(super) const ACCOUNT_ID: &str = "^[0-9]{12}$";
/// Aliases of images.
pub(super) const AMI_ALIAS: &str = "^[a-z0-9]+@.+$";

const WORDS: &[(&str, &str)] = &[
    (QUANTITY, "must be a quantity such as 500m, 4Gi or 10"),
    (
        QUALIFIED_NAME,
        "must be a name of letters, digits, '-', '_' and '.', with an optional prefix such as \
         example.com/",
    ),
    (
        LABEL_VALUE,
        "must be a label value: letters, digits, '-', '_' and '.', with a letter or digit at both \
         ends",
    ),
    (
        DURATION,
        "must be a duration in h, m and s such as 30s, 5m or 1h30m",
    ),
    (
        DURATION_OR_NEVER,
        "must be a duration in h, m and s such as 30s, 5m or 1h30m, or Never",
    ),
    (
        GO_DURATION,
        "must be a duration such as 500ms, 30s or 1h30m",
    ),
    (
        WINDOW,
        "must be a duration of hours and minutes such as 8h, 30m or 1h30m",
    ),
    (
        BUDGET_NODES,
        "must be a number of nodes or a share from 0% to 100%",
    ),
    (
        SCHEDULE,
        "must be a cron expression of five fields, or one such as @daily",
    ),
    (NO_SLASH, "must be an API group without a version"),
    (PRICE, "must be a price such as 5 or 0.25"),
    (
        PRICE_ADJUSTMENT,
        "must be a signed amount such as +5 or -0.02, or a signed percentage not below -100%",
    ),
    (REASON, "must be one CamelCase word"),
    (REASON_OR_NONE, "must be one CamelCase word or empty"),
    (VOLUME_SIZE, "must be a size from 1G to 64T, or 1Gi to 58Ti"),
    (SUBNET_ID, "must be a subnet id such as subnet-0123abcd"),
    (
        SECURITY_GROUP_ID,
        "must be a security group id such as sg-0123abcd",
    ),
    (AMI_ID, "must be an image id such as ami-0123abcd"),
    (
        RESERVATION_ID,
        "must be a reservation id such as cr-0123abcd",
    ),
    (
        PLACEMENT_GROUP_ID,
        "must be a placement group id such as pg-0123abcd",
    ),
    (ACCOUNT_ID, "must be an account id of 12 digits"),
    (AMI_ALIAS, "must be family@version such as al2023@latest"),
];

/// What a pattern asks for, in words, if it is one of ours.
pub(crate) fn pattern_in_words(pattern: &str) -> Option<&'static str> {
    WORDS
        .iter()
        .find(|(known, _)| *known == pattern)
        .map(|(_, words)| *words)
}
