//! Names that derive from the uid of a claim, so that the same claim always means the same machine.

use joiner_cluster::{Digest, hex};

/// Letters and digits that spell no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of a short name: 47 bits.
const SHORT: usize = 10;
/// What names of ConfigMaps start with.
const PREFIX: &str = "simulated-instance-";
/// Scheme of machines of KWOKNodeClasses.
const KWOK: &str = "kwok://";
/// Scheme of machines of EC2NodeClasses.
const SIMULATED: &str = "simulated:///";

/// The number that all names of a claim's machine spell.
pub(crate) fn number(claim_uid: &str) -> u64 {
    Digest::default().text(claim_uid).finish()
}

fn short(mut number: u64) -> String {
    let letters = ALPHABET.len() as u64;
    let mut spelled = String::with_capacity(SHORT);
    for _ in 0..SHORT {
        let letter = usize::try_from(number % letters).unwrap_or(0);
        spelled.push(char::from(ALPHABET[letter]));
        number /= letters;
    }
    spelled
}

/// Name of the ConfigMap of a claim's machine.
pub(crate) fn record_name(claim_uid: &str) -> String {
    format!("{PREFIX}{}", short(number(claim_uid)))
}

/// Name of the ConfigMap of a machine; none for machines of other clouds.
pub(crate) fn record_name_of(provider_id: &str) -> Option<String> {
    let ending = if let Some(node) = provider_id.strip_prefix(KWOK) {
        node.rsplit('-').next().unwrap_or(node).to_owned()
    } else {
        let id = provider_id.strip_prefix(SIMULATED)?.rsplit('/').next()?;
        short(u64::from_str_radix(id.strip_prefix("i-")?, 16).ok()?)
    };
    let spelled = ending.len() == SHORT && ending.bytes().all(|b| ALPHABET.contains(&b));
    spelled.then(|| format!("{PREFIX}{ending}"))
}

/// True when a Node with this provider id is one of ours.
pub(crate) fn is_ours(provider_id: &str) -> bool {
    provider_id.starts_with(KWOK) || provider_id.starts_with(SIMULATED)
}

/// Name of the Node of a KWOKNodeClass's machine.
pub(crate) fn kwok_node_name(claim: &str, claim_uid: &str) -> String {
    format!("kwok-{claim}-{}", short(number(claim_uid)))
}

/// Provider id of a KWOKNodeClass's machine.
pub(crate) fn kwok_provider_id(node_name: &str) -> String {
    format!("{KWOK}{node_name}")
}

/// Provider id of an EC2NodeClass's machine.
pub(crate) fn ec2_provider_id(zone: &str, claim_uid: &str) -> String {
    format!("{SIMULATED}{zone}/i-0{}", hex(number(claim_uid)))
}

/// Address and Node name of an EC2NodeClass's machine. There are six million of them; `attempt`
/// moves on to another one when a name is taken.
pub(crate) fn ec2_address(claim_uid: &str, attempt: u32, region: &str) -> (String, String) {
    let digest = Digest::default()
        .text(claim_uid)
        .number(u64::from(attempt))
        .finish();
    // Below 10.96, where services are, and above 10.0, which sandboxes hand out.
    let (a, b, c) = (1 + digest % 95, digest >> 16 & 255, digest >> 24 & 255);
    let domain = match region {
        "us-east-1" => "ec2.internal".to_owned(),
        region => format!("{region}.compute.internal"),
    };
    (
        format!("10.{a}.{b}.{c}"),
        format!("ip-10-{a}-{b}-{c}.{domain}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_and_provider_id_lead_to_the_same_record() {
        for n in 0..100 {
            let uid = format!("4f0f4b1c-0000-4000-8000-{n:012}");
            let name = record_name(&uid);
            let kwok = kwok_provider_id(&kwok_node_name("default-x7k2p", &uid));
            assert_eq!(record_name_of(&kwok).as_ref(), Some(&name), "{kwok}");
            let ec2 = ec2_provider_id("us-east-1a", &uid);
            assert_eq!(record_name_of(&ec2).as_ref(), Some(&name), "{ec2}");
            assert!(ec2.ends_with(&hex(number(&uid))), "{ec2}");
            assert_eq!(ec2.len(), "simulated:///us-east-1a/i-".len() + 17);
        }
    }

    #[test]
    fn other_ids_lead_nowhere() {
        for id in [
            "",
            "aws:///us-east-1a/i-0123",
            "kwok://",
            "kwok://web",
            "simulated:///a/b",
        ] {
            assert_eq!(record_name_of(id), None, "{id}");
        }
    }

    #[test]
    fn a_taken_address_leads_to_another() {
        let (one, name) = ec2_address("uid", 0, "eu-west-1");
        let (two, _) = ec2_address("uid", 1, "eu-west-1");
        assert_ne!(one, two);
        assert_eq!(
            name,
            format!("ip-{}.eu-west-1.compute.internal", one.replace('.', "-"))
        );
    }
}
