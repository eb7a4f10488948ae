//! Where an endpoint leaves qlog and TLS secrets: what the environment says, or a folder in virtual time.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default)]
pub struct Records {
    qlog_folder: Option<PathBuf>,
    secrets: Option<PathBuf>,
}

impl Records {
    /// Those that the variables QLOGDIR and SSLKEYLOGFILE ask for. An error is one line.
    pub fn of_process() -> Result<Self, String> {
        let qlog_folder = variable("QLOGDIR");
        if let Some(folder) = &qlog_folder {
            fs::create_dir_all(folder).map_err(|error| format!("QLOGDIR: {}: {error}", folder.display()))?;
        }
        Ok(Self { qlog_folder, secrets: variable("SSLKEYLOGFILE") })
    }

    /// Both in a folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { qlog_folder: Some(folder.to_owned()), secrets: Some(folder.join("keys.log")) }
    }

    /// A new file of qlog, if that is asked for. An error is one line.
    pub fn qlog(&self, name: &str) -> Result<Option<File>, String> {
        let Some(folder) = &self.qlog_folder else {
            return Ok(None);
        };
        let path = folder.join(format!("{name}.sqlog"));
        File::create(&path).map(Some).map_err(|error| format!("qlog: {}: {error}", path.display()))
    }

    /// The file that TLS secrets are appended to, if they are asked for. An error is one line.
    pub fn secrets(&self) -> Result<Option<File>, String> {
        let Some(path) = &self.secrets else {
            return Ok(None);
        };
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.map(Some).map_err(|error| format!("TLS secrets: {}: {error}", path.display()))
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
