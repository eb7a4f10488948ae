//! Places for qlog and TLS secrets: those of the environment's variables, or a folder in virtual time.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub struct Records {
    qlog_folder: Option<PathBuf>,
    /// Opened at once: later, TLS takes no error.
    secrets: Option<Arc<File>>,
}

impl Records {
    /// Returns the records that the variables QLOGDIR and SSLKEYLOGFILE ask for. An error is one line.
    pub fn of_process() -> Result<Self, String> {
        let qlog_folder = variable("QLOGDIR");
        if let Some(folder) = &qlog_folder {
            fs::create_dir_all(folder).map_err(|error| format!("QLOGDIR: {}: {error}", folder.display()))?;
        }
        let secrets = variable("SSLKEYLOGFILE").map(|path| appended_to(&path)).transpose();
        Ok(Self { qlog_folder, secrets: secrets.map_err(|error| format!("SSLKEYLOGFILE: {error}"))? })
    }

    /// Returns records in a folder. An error is one line.
    pub fn in_folder(folder: &Path) -> Result<Self, String> {
        Ok(Self { qlog_folder: Some(folder.to_owned()), secrets: Some(appended_to(&folder.join("keys.log"))?) })
    }

    /// Whether qlog is asked for.
    pub fn has_qlog(&self) -> bool {
        self.qlog_folder.is_some()
    }

    /// A new file of qlog, if that is asked for. An error is one line.
    pub fn qlog(&self, name: &str) -> Result<Option<File>, String> {
        let Some(folder) = &self.qlog_folder else {
            return Ok(None);
        };
        let path = folder.join(format!("{name}.sqlog"));
        File::create(&path).map(Some).map_err(|error| format!("qlog: {}: {error}", path.display()))
    }

    /// The file that TLS secrets are appended to, if they are asked for.
    pub fn secrets(&self) -> Option<Arc<File>> {
        self.secrets.clone()
    }
}

fn appended_to(path: &Path) -> Result<Arc<File>, String> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.map(Arc::new).map_err(|error| format!("{}: {error}", path.display()))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
