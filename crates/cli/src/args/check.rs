//! The arguments of `nearprint check`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Job file
    #[arg(long, short, value_name = "FILE", required_unless_present = "store", value_parser = local_path())]
    pub config: Option<PathBuf>,
    /// Store, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub store: Option<Given>,
    /// This night only; latest, today, yesterday [default: all]
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: Option<String>,
}
