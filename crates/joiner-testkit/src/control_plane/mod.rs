//! A real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl.
//!
//! ```no_run
//! # fn main() -> Result<(), joiner_testkit::control_plane::Error> {
//! use joiner_testkit::control_plane::ControlPlane;
//!
//! let Some(plane) = ControlPlane::start()? else {
//!     println!("skipped: there is no control plane");
//!     return Ok(());
//! };
//! println!("{}", plane.kubectl(&["get", "namespaces"])?);
//! # Ok(())
//! # }
//! ```
//!
//! *Flow.* [`Programs`] are found, or there is nothing to start. Each start takes free ports of the
//! loopback interface and a temporary folder, and returns when the API server is ready and the
//! controllers have begun to work.
//!
//! *Guarantees.* Nothing of one control plane is seen by another, so tests need not share. Dropping
//! one kills its processes and removes its folder; should this process die first, a guard does it.
//! A control plane in a static is therefore fine, too.
//!
//! *Assumptions.* Unix, a shell, and a folder for temporary files. There are no nodes and no
//! kubelets: a pod is scheduled at most. Pods get no service account tokens; whoever asks for one
//! gets it, as [`apply_chart`] does to act with exactly the chart's permissions.

mod chart;
mod helm;
mod processes;
mod programs;
mod shared;

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::json;

pub use chart::{Chart, apply_chart, apply_chart_on};
pub use helm::{HELM_VARIABLE, HELM_VERSION, Helm, helm_cache};
use processes::{Processes, random_token};
pub use programs::{FOLDER_VARIABLE, Program, Programs, VERSION, assets, cache_folder, is_ci};
pub use shared::SHARED_VARIABLE;

/// Another process may take a port before ours does; then we try again.
const TRIES: usize = 3;
/// A machine that is busy compiling takes its time.
const START_MAX: Duration = Duration::from_secs(120);
const CERTIFICATES: &str = "certificates";
const CA: &str = "ca.crt";
const KUBECONFIG: &str = "kubeconfig";

/// Why there is no control plane, or why it does not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody has built the programs.
    #[error(
        "there is no control plane: run `cargo xtask control-plane build`, which needs Go, or set \
         KUBEBUILDER_ASSETS"
    )]
    NotBuilt,
    /// A folder was named that is not one of programs.
    #[error("{program} is not in {}", folder.display())]
    Missing {
        /// The file that is not there.
        program: &'static str,
        /// The folder.
        folder: PathBuf,
    },
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
    /// A program that should run does not.
    #[error("{name} ended with {status}: {log}")]
    Ended {
        /// The program.
        name: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// Its last words.
        log: String,
    },
    /// A program runs but is of no use.
    #[error("waited {} s for {what}: {log}", limit.as_secs())]
    TooSlow {
        /// What was awaited.
        what: &'static str,
        /// How long.
        limit: Duration,
        /// The last lines of the log.
        log: String,
    },
    /// The command failed; often that is what a test is about.
    #[error("kubectl {arguments}: {message}")]
    Kubectl {
        /// The command.
        arguments: String,
        /// What it said.
        message: String,
    },
    /// Nobody has built helm.
    #[error("there is no helm: run `cargo xtask helm`, which needs Go, or set JOINER_HELM")]
    NoHelm,
    /// A helm was named that is not there.
    #[error("JOINER_HELM names {}, which is no file", path.display())]
    NotHelm {
        /// What was named.
        path: PathBuf,
    },
    /// The command failed; often that is what a test is about.
    #[error("helm {arguments}: {message}")]
    Helm {
        /// The command.
        arguments: String,
        /// What it said.
        message: String,
    },
}

impl Error {
    /// What to make of a refusal of the system.
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}

/// A running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    processes: Processes,
    programs: Programs,
    kubectl: PathBuf,
    url: String,
    token: String,
    ca: String,
}

impl ControlPlane {
    /// Starts one, or none when there are no programs and this is not CI.
    ///
    /// # Errors
    /// When there should be programs and are not, or when they do not work.
    pub fn start() -> Result<Option<Self>, Error> {
        match Programs::find()? {
            Some(programs) => Self::start_with(&programs).map(Some),
            None => Ok(None),
        }
    }

    /// Starts one from these programs.
    ///
    /// # Errors
    /// When they do not work.
    pub fn start_with(programs: &Programs) -> Result<Self, Error> {
        let mut tries_left = TRIES;
        loop {
            tries_left -= 1;
            match Self::try_start(programs) {
                // A port was taken meanwhile, or a busy machine was too slow for one of them.
                Err(Error::Ended { .. } | Error::TooSlow { .. }) if tries_left > 0 => {}
                result => return result,
            }
        }
    }

    fn try_start(programs: &Programs) -> Result<Self, Error> {
        let [store_port, api_port] = free_ports()?;
        let needed = |program: Program| {
            programs.path(program).ok_or_else(|| Error::Missing {
                program: program.file_name(),
                folder: programs.folder().to_owned(),
            })
        };
        let mut plane = Self {
            processes: Processes::new()?,
            programs: programs.clone(),
            kubectl: needed(Program::Kubectl)?,
            url: format!("https://127.0.0.1:{api_port}"),
            token: random_token()?,
            ca: String::new(),
        };
        let store = format!("http://127.0.0.1:{store_port}");
        plane.launch(Program::Etcd, store_arguments(&store))?;
        plane.write("tokens.csv", &tokens(&plane.token))?;
        plane.launch(
            Program::ApiServer,
            api_server_arguments(&store, api_port, plane.processes.folder()),
        )?;
        plane.trust()?;
        plane.await_answer("the API server to be ready", &["get", "--raw=/readyz"])?;
        for program in [Program::ControllerManager, Program::Scheduler] {
            if programs.path(program).is_some() {
                let arguments = controller_arguments(program, plane.processes.folder());
                plane.launch(program, arguments)?;
            }
        }
        if programs.path(Program::ControllerManager).is_some() {
            let account = ["get", "serviceaccount", "default"];
            plane.await_answer("the controllers to work", &account)?;
        }
        Ok(plane)
    }

    /// The address of the API server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bearer token of somebody who may do anything.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The certificate, as PEM, that the API server's is signed by.
    #[must_use]
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// A kubeconfig for somebody who may do anything. Gone with the control plane.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.processes.folder().join(KUBECONFIG)
    }

    /// The folder with data and logs. Gone with the control plane.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.processes.folder()
    }

    /// True when this program is part of it: what other tools provide lacks the controllers.
    #[must_use]
    pub fn has(&self, program: Program) -> bool {
        self.programs.path(program).is_some()
    }

    /// Fails when one of its programs has ended.
    ///
    /// # Errors
    /// The program, and its last words.
    pub fn check(&mut self) -> Result<(), Error> {
        self.processes.check()
    }

    /// Runs kubectl and returns what it prints.
    ///
    /// # Errors
    /// When kubectl fails: the message is what it says.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        self.run_kubectl(arguments, Stdio::null())
    }

    /// Runs kubectl with this text as its standard input, and returns what it prints.
    ///
    /// # Errors
    /// When kubectl fails: the message is what it says.
    pub fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        let admin = self.folder().join(KUBECONFIG);
        kubectl_with(&self.kubectl, &admin, arguments, input)
    }

    fn run_kubectl(&self, arguments: &[&str], input: Stdio) -> Result<String, Error> {
        run_kubectl(&self.kubectl, self.folder(), arguments, input)
    }

    fn launch(&mut self, program: Program, arguments: Vec<String>) -> Result<(), Error> {
        let path = self.programs.folder().join(program.file_name());
        self.processes.start(program.file_name(), &path, &arguments)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let written = std::fs::write(self.folder().join(name), text);
        written.map_err(Error::io(format!("write {name}")))
    }

    /// Takes over the authority that the API server has made for itself.
    fn trust(&mut self) -> Result<(), Error> {
        let mut found = None;
        let what = "the certificate of the API server";
        self.processes.wait_for(what, START_MAX, |folder| {
            let path = folder.join(CERTIFICATES).join("apiserver.crt");
            let bundle = std::fs::read_to_string(path).unwrap_or_default();
            found = authority(&bundle);
            found.is_some()
        })?;
        self.ca = found.unwrap_or_default();
        self.write(CA, &self.ca)?;
        let text = self.kubeconfig_for("admin", &self.token, "default");
        self.write(KUBECONFIG, &text)
    }

    /// The text of a kubeconfig for whoever has this token.
    fn kubeconfig_for(&self, user: &str, token: &str, namespace: &str) -> String {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {
                "server": self.url,
                "certificate-authority": self.folder().join(CA).display().to_string(),
            }}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {
                "cluster": "test", "user": user, "namespace": namespace,
            }}],
            "current-context": "test",
        });
        format!("{config:#}\n")
    }

    fn await_answer(&mut self, what: &'static str, arguments: &[&str]) -> Result<(), Error> {
        let kubectl = &self.kubectl;
        self.processes.wait_for(what, START_MAX, |folder| {
            run_kubectl(kubectl, folder, arguments, Stdio::null()).is_ok()
        })
    }
}

fn run_kubectl(
    program: &Path,
    folder: &Path,
    arguments: &[&str],
    input: Stdio,
) -> Result<String, Error> {
    run_with(program, &folder.join(KUBECONFIG), arguments, input)
}

/// Runs kubectl with this kubeconfig, and this text as its standard input.
fn kubectl_with(
    program: &Path,
    kubeconfig: &Path,
    arguments: &[&str],
    input: &str,
) -> Result<String, Error> {
    // From a file: a pipe may fill up on both ends. It is gone as soon as it is open.
    let path = kubeconfig.with_file_name(format!("input-{}", random_token()?));
    let write = || {
        std::fs::write(&path, input)?;
        let file = File::open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    };
    let file = write().map_err(Error::io("hand over the input of kubectl"))?;
    run_with(program, kubeconfig, arguments, Stdio::from(file))
}

fn run_with(
    program: &Path,
    kubeconfig: &Path,
    arguments: &[&str],
    input: Stdio,
) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig);
    command.args(arguments).stdin(input);
    // Neither settings nor caches of the user.
    let folder = kubeconfig.parent().unwrap_or(kubeconfig);
    command.env("HOME", folder).env("KUBERC", "off");
    let output = command.output();
    let output = output.map_err(Error::io(format!("run {}", program.display())))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Kubectl {
        arguments: arguments.join(" "),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// Ports that nobody listens on right now.
fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    let mut ports = [0; N];
    let mut listeners = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(Error::io("find a free port"))?;
        let address = listener.local_addr();
        *port = address.map_err(Error::io("find a free port"))?.port();
        // All stay open until the last is found, so that no port comes twice.
        listeners.push(listener);
    }
    Ok(ports)
}

fn tokens(admin: &str) -> String {
    format!("{admin},admin,admin,\"system:masters\"\n")
}

fn store_arguments(url: &str) -> Vec<String> {
    vec![
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn api_server_arguments(store: &str, port: u16, folder: &Path) -> Vec<String> {
    let certificates = folder.join(CERTIFICATES);
    let certificates = certificates.display();
    vec![
        format!("--etcd-servers={store}"),
        "--bind-address=127.0.0.1".to_owned(),
        // Else it looks for a default route, which a machine without a network lacks.
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={certificates}"),
        format!("--token-auth-file={}/tokens.csv", folder.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        // The key that it makes for itself is as good as any.
        format!("--service-account-key-file={certificates}/apiserver.key"),
        format!("--service-account-signing-key-file={certificates}/apiserver.key"),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--allow-privileged=true".to_owned(),
    ]
}

fn controller_arguments(program: Program, folder: &Path) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut arguments = vec![
        format!("--kubeconfig={}", path(KUBECONFIG)),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        // By default 20 pods a second are created: a story of 5,000 would take minutes to begin.
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
    ];
    if program == Program::ControllerManager {
        let key = path(&format!("{CERTIFICATES}/apiserver.key"));
        arguments.push(format!("--service-account-private-key-file={key}"));
        arguments.push(format!("--root-ca-file={}", path(CA)));
    }
    arguments
}

/// The last certificate of a bundle: the server's own comes before the one that signed it.
fn authority(bundle: &str) -> Option<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    // A file that is still being written ends early.
    let whole = bundle.trim_end().strip_suffix(END)?;
    let (others, last) = whole.rsplit_once(BEGIN)?;
    let certificate = format!("{BEGIN}{last}{END}\n");
    others.contains(BEGIN).then_some(certificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_the_last_of_a_whole_bundle() {
        let certificate = |text: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        let bundle = format!("{}{}", certificate("server"), certificate("signer"));
        assert_eq!(authority(&bundle), Some(certificate("signer")));
        assert_eq!(authority(&bundle[..bundle.len() - 9]), None);
        assert_eq!(authority(&certificate("server")), None);
    }

    #[test]
    fn ports_differ() {
        let ports: [u16; 5] = free_ports().expect("there are free ports");
        let mut sorted = ports.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), ports.len());
    }

    #[test]
    fn a_folder_without_programs_is_named() {
        let error = Programs::in_folder(Path::new("nowhere")).expect_err("it is not there");
        assert_eq!(error.to_string(), "etcd is not in nowhere");
    }
}
