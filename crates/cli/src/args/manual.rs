//! The arguments of `nearprint completions` and `nearprint man`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;

#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Folder for nearprint.1 and a page for each command [default: the page of nearprint on standard output]
    #[arg(value_name = "DIR", value_parser = local_path())]
    pub dir: Option<PathBuf>,
}
