//! The harness of tests and trials of the real `nearprint` command: it runs the command, stands between it and S3, traces what it does,
//! makes nights, and reads what they leave.
#![allow(missing_docs, reason = "a test tool")]

use std::path::{Path, PathBuf};

pub mod delta;
pub mod folder;
pub mod measured;
pub mod night;
pub mod proxy;
pub mod random;
pub mod row;
pub mod runner;
#[cfg(feature = "schema")]
pub mod schema;
pub mod secrets;
pub mod server;
pub mod tracer;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

/// Options of every subcommand that runs trials.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// The binary under test
    #[arg(long, value_name = "PATH")]
    pub nearprint: PathBuf,
    /// File that the rows are appended to
    #[arg(long, value_name = "FILE", global = true)]
    pub results: Option<PathBuf>,
    /// Scratch folder, emptied of what the trials made [default: the system's]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Seeds of each row, from 0
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub seeds: u64,
    /// Only these rows, such as F9,F10
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub only: Vec<String>,
}

impl Common {
    /// Without results, with the system's scratch folder.
    pub fn new(nearprint: &Path, seeds: u64, only: &[&str]) -> Self {
        let only = only.iter().map(|&id| id.to_owned()).collect();
        Self { nearprint: nearprint.to_owned(), results: None, work: None, seeds, only }
    }

    /// Returns whether this row was asked for.
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == id)
    }

    /// A folder that goes when the value does.
    pub fn scratch(&self) -> Result<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("trials-");
        Ok(match &self.work {
            None => builder.tempdir()?,
            Some(work) => {
                std::fs::create_dir_all(work)?;
                builder.tempdir_in(work)?
            }
        })
    }
}

/// Fails a trial: what is required did not happen.
#[macro_export]
macro_rules! require {
    ($holds:expr, $($said:tt)+) => {
        if $holds {
        } else {
            return Err(format!($($said)+).into());
        }
    };
}
