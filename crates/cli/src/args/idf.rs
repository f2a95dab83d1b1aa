//! The arguments of `nearprint idf`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::file_names::local_path;
use super::inputs::DocumentsArgs;
use super::profile::ProfileArgs;

#[derive(Debug, Clone, Subcommand)]
pub enum IdfCommand {
    /// Count in how many documents each token occurs, and write the table
    Build(IdfBuildArgs),
}

#[derive(Debug, Clone, Args)]
pub struct IdfBuildArgs {
    #[command(flatten)]
    pub documents: DocumentsArgs,
    /// The table, a local file for the job's `idf`
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    pub output: PathBuf,
    /// Leave out tokens that occur in fewer documents
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub min_documents: u64,
    /// Replace a table that exists
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub profile: ProfileArgs,
}
