//! Windows: a block of PowerShell, the user's lines first.

use super::Bootstrap;
use super::flags::kubelet_flags;

/// The block.
pub(super) fn user_data(bootstrap: &Bootstrap<'_>) -> String {
    let cluster = bootstrap.cluster;
    let mut lines = vec!["<powershell>".to_owned()];
    lines.extend(bootstrap.custom().map(str::to_owned));
    lines.push(
        r#"[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1""#
            .to_owned(),
    );
    let mut call = format!(
        "& $EKSBootstrapScriptFile -EKSClusterName '{}' -APIServerEndpoint '{}'",
        cluster.name, cluster.endpoint
    );
    let flags = kubelet_flags(bootstrap).join(" ");
    let dns = bootstrap.cluster_dns();
    let arguments = [
        ("-Base64ClusterCA", cluster.ca_bundle.as_deref()),
        ("-KubeletExtraArgs", Some(flags.as_str())),
        ("-DNSClusterIP", dns.first().copied()),
    ];
    for (name, value) in arguments {
        if let Some(value) = value {
            call += &format!(" {name} '{value}'");
        }
    }
    lines.push(call);
    lines.push("</powershell>".to_owned());
    lines.join("\n")
}
