//! Where the programs of a control plane are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Error;

/// The version of Kubernetes that tests run against.
pub const VERSION: &str = "v1.36.3";
/// Names the folder with the programs; `cargo xtask test` sets it for tests.
pub const FOLDER_VARIABLE: &str = "JOINER_CONTROL_PLANE";
/// What other tools call that folder; it may do without the controllers.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// A program of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers: garbage collection, workloads, service accounts and others.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The client.
    Kubectl,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
    ];

    /// The name of its file.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
        }
    }

    /// True when there is no control plane without it.
    const fn is_needed(self) -> bool {
        match self {
            Self::Etcd | Self::ApiServer | Self::Kubectl => true,
            Self::ControllerManager | Self::Scheduler => false,
        }
    }
}

/// A folder that holds the programs.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// The folder that the environment names (`JOINER_CONTROL_PLANE`, else `KUBEBUILDER_ASSETS`),
    /// else the cache, if it is filled.
    ///
    /// # Errors
    /// When the named folder lacks a program, or when there is none and `CI` is `true`.
    pub fn find() -> Result<Option<Self>, Error> {
        let named = setting(FOLDER_VARIABLE).map(PathBuf::from).or_else(assets);
        if let Some(folder) = named {
            return Self::in_folder(&folder).map(Some);
        }
        let cached = cache_folder().filter(|folder| folder.is_dir());
        match cached {
            Some(folder) => Self::in_folder(&folder).map(Some),
            None if is_ci() => Err(Error::NotBuilt),
            None => Ok(None),
        }
    }

    /// The programs in a folder.
    ///
    /// # Errors
    /// When the folder lacks etcd, kube-apiserver or kubectl.
    pub fn in_folder(folder: &Path) -> Result<Self, Error> {
        let programs = Self {
            folder: folder.to_owned(),
        };
        let missing = |program: &Program| program.is_needed() && programs.path(*program).is_none();
        match Program::ALL.into_iter().find(missing) {
            Some(program) => Err(Error::Missing {
                program: program.file_name(),
                folder: folder.to_owned(),
            }),
            None => Ok(programs),
        }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a program, if it is there.
    #[must_use]
    pub fn path(&self, program: Program) -> Option<PathBuf> {
        let path = self.folder.join(program.file_name());
        path.is_file().then_some(path)
    }
}

/// The folder that `KUBEBUILDER_ASSETS` names.
#[must_use]
pub fn assets() -> Option<PathBuf> {
    setting(ASSETS_VARIABLE).map(PathBuf::from)
}

/// Where programs that were built from source are kept, outside of any tree: below `JOINER_CACHE`,
/// else below the user's cache folder. `None` when the environment names neither.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    Some(cache()?.join("control-plane").join(VERSION))
}

/// Where everything is kept that was built from source.
pub(super) fn cache() -> Option<PathBuf> {
    let ours = setting("JOINER_CACHE").map(PathBuf::from);
    let users = || setting("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("joiner"));
    let home = || setting("HOME").map(|home| PathBuf::from(home).join(".cache/joiner"));
    ours.or_else(users).or_else(home)
}

/// True where a test that cannot run is a failure.
#[must_use]
pub fn is_ci() -> bool {
    setting("CI").is_some_and(|value| value == OsStr::new("true"))
}

/// A variable of the environment that is set to something.
pub(super) fn setting(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
