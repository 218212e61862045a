//! The real server: kube-apiserver on its own etcd, without controllers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use joiner_testkit::control_plane::{ControlPlane, Program, Programs};
use serde_json::Value;

/// A real API server that can be made to forget.
pub(crate) struct Real {
    plane: ControlPlane,
    _folder: Folder,
}

impl Real {
    /// Starts one, if there is one to be had.
    pub(crate) fn start() -> Option<Self> {
        let programs = Programs::find().expect("a control plane to test on")?;
        let folder = Folder::new();
        for (program, more) in [
            (Program::Etcd, ""),
            // Else lists are served from memory after the store has forgotten them.
            (
                Program::ApiServer,
                "--feature-gates=ListFromCacheSnapshot=false",
            ),
        ] {
            let path = programs.path(program).expect("a program that is needed");
            let name = program.file_name();
            // What a program is started with is noted: that is how the port of etcd is known.
            let script = format!(
                "#!/bin/sh\nprintf '%s\\n' \"$@\" > {name}.arguments\nexec '{}' \"$@\" {more}\n",
                path.display()
            );
            let file = folder.0.join(name);
            std::fs::write(&file, script).expect("a script");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&file, mode).expect("a script that runs");
        }
        let kubectl = programs.path(Program::Kubectl).expect("kubectl");
        let link = folder.0.join(Program::Kubectl.file_name());
        std::os::unix::fs::symlink(kubectl, link).expect("a link to kubectl");
        let few = Programs::in_folder(&folder.0).expect("the programs that were named");
        let plane = ControlPlane::start_with(&few).expect("a control plane");
        Some(Self {
            plane,
            _folder: folder,
        })
    }

    /// A client of an administrator.
    pub(crate) async fn client(&self) -> kube::Client {
        kube::Client::try_from(self.config().await).expect("a client")
    }

    /// A client without credentials.
    pub(crate) async fn bare_client(&self) -> kube::Client {
        let mut config = self.config().await;
        config.auth_info = kube::config::AuthInfo::default();
        kube::Client::try_from(config).expect("a client")
    }

    async fn config(&self) -> kube::Config {
        let path = self.plane.kubeconfig();
        let file = kube::config::Kubeconfig::read_from(path).expect("a kubeconfig");
        let options = kube::config::KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(file, &options)
            .await
            .expect("a configuration");
        config.disable_compression = true;
        config.default_retry = false;
        config
    }

    /// Makes the store forget all but the present.
    pub(crate) fn compact(&self) {
        let found = self.store("/v3/kv/range", "{\"key\": \"AA==\"}");
        let revision = &found["header"]["revision"];
        let asked = format!("{{\"revision\": {revision}, \"physical\": true}}");
        let done = self.store("/v3/kv/compaction", &asked);
        assert_eq!(&done["header"]["revision"], revision, "{done}");
    }

    /// Asks the store something.
    fn store(&self, path: &str, body: &str) -> Value {
        let noted = self.plane.folder().join("etcd.arguments");
        let noted = std::fs::read_to_string(noted).expect("how etcd was started");
        let mut lines = noted.lines();
        let address = lines.find_map(|line| line.strip_prefix("--listen-client-urls=http://"));
        let address = address.expect("an address of etcd");
        let mut stream = TcpStream::connect(address).expect("a connection to etcd");
        let length = body.len();
        let request =
            format!("POST {path} HTTP/1.0\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

/// A temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("joiner-differential-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}
