//! One control plane for several processes: one starts it, the others find it by a variable.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::processes::Processes;
use super::programs::setting;
use super::{CA, ControlPlane, Error, Program, Programs};

/// Names the folder of a control plane that tests are to share.
pub const SHARED_VARIABLE: &str = "JOINER_TEST_PLANE";
/// What others need to know of it, in its folder.
const ABOUT: &str = "shared.json";

impl ControlPlane {
    /// Lets other processes use this one; returns what [`SHARED_VARIABLE`] must say to them.
    ///
    /// # Errors
    /// When its folder cannot be written.
    pub fn share(&self) -> Result<PathBuf, Error> {
        let about =
            json!({"url": self.url, "token": self.token, "programs": self.programs.folder()});
        self.write(ABOUT, &about.to_string())?;
        Ok(self.folder().to_owned())
    }

    /// The control plane that [`SHARED_VARIABLE`] names; without it one of our own, or none when there
    /// are no programs and this is not CI.
    ///
    /// # Errors
    /// When what is named is not there, or does not work.
    pub fn shared() -> Result<Option<Self>, Error> {
        match setting(SHARED_VARIABLE) {
            Some(folder) => Self::attach(Path::new(&folder)).map(Some),
            None => Self::start(),
        }
    }

    fn attach(folder: &Path) -> Result<Self, Error> {
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name));
            text.map_err(Error::io(format!(
                "read {name} of the shared control plane"
            )))
        };
        let about: Value = serde_json::from_str(&read(ABOUT)?).unwrap_or_default();
        let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
        let programs = Programs::in_folder(Path::new(&text("programs")))?;
        let kubectl = programs.path(Program::Kubectl);
        Ok(Self {
            kubectl: kubectl.unwrap_or_default(),
            processes: Processes::attached(folder.to_owned()),
            programs,
            url: text("url"),
            token: text("token"),
            ca: read(CA)?,
        })
    }
}
