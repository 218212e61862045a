//! Amazon Linux 2: a shell script that calls `bootstrap.sh`, as the last part of a MIME archive.

use std::fmt::Write as _;

use super::flags::kubelet_flags;
use super::mime::{self, Part};
use super::{Bootstrap, UserDataError};
use crate::cluster::is_ipv6;

/// The user's parts, then ours.
pub(super) fn user_data(bootstrap: &Bootstrap<'_>) -> Result<String, UserDataError> {
    let mut parts = match bootstrap.custom() {
        Some(text) if mime::is_archive(text) => {
            mime::parse(text).map_err(|problem| bootstrap.wrong(problem))?
        }
        Some(text) => vec![Part::new(mime::SHELL_SCRIPT, text)],
        None => Vec::new(),
    };
    parts.push(Part::new(mime::SHELL_SCRIPT, script(bootstrap)));
    Ok(mime::render(&parts))
}

/// The script. What is passed to `bootstrap.sh` has no equal signs, which it does not understand.
fn script(bootstrap: &Bootstrap<'_>) -> String {
    let cluster = bootstrap.cluster;
    let mut script = format!(
        "#!/bin/bash -xe\n\
         exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n\
         /etc/eks/bootstrap.sh '{}' --apiserver-endpoint '{}' ",
        cluster.name, cluster.endpoint
    );
    // Writing to a string does not fail.
    if let Some(bundle) = &cluster.ca_bundle {
        let _ = write!(script, "--b64-cluster-ca '{bundle}'");
    }
    let dns = bootstrap.cluster_dns();
    if dns.first().is_some_and(|address| is_ipv6(address)) {
        script.push_str(" \\\n--ip-family ipv6");
    }
    if let Some(address) = dns.first() {
        let _ = write!(script, " \\\n--dns-cluster-ip '{address}'");
    }
    let flags = kubelet_flags(bootstrap).join(" ");
    let _ = write!(
        script,
        " \\\n--use-max-pods false \\\n--kubelet-extra-args '{flags}'"
    );
    if bootstrap.raid0 {
        script.push_str(" \\\n--local-disks raid0");
    }
    script
}
