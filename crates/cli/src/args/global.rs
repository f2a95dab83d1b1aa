//! The options of every command.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use nearprint_join::KernelName;

use super::file_names::{local_path, named_json};
use crate::bytes::Bytes;

/// The options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Print one JSON summary as the last line
    #[arg(long, global = true)]
    pub json: bool,
    /// Write the JSON summary to FILE too, also after a failure; replaces what an earlier command wrote
    #[arg(long, global = true, value_name = "FILE", value_parser = named_json())]
    pub summary_file: Option<PathBuf>,
    /// Threads [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Memory limit, such as 4GiB; a command that needs less uses less [default: unlimited]
    #[arg(long, global = true, value_name = "BYTES")]
    pub memory_limit: Option<Bytes>,
    /// Memory for the reduce alone, within --memory-limit; beyond it, the reduce spills to disk [default: 1GiB]
    #[arg(long, global = true, value_name = "BYTES")]
    pub reduce_memory: Option<Bytes>,
    /// Folder for temporary files [default: the system's]
    #[arg(long, global = true, value_name = "DIR", value_parser = local_path())]
    pub spill_dir: Option<PathBuf>,
    /// Most bytes that the reduce may hold in --spill-dir at once [default: unlimited]
    #[arg(long, global = true, value_name = "BYTES")]
    pub max_spill: Option<Bytes>,
    /// Instruction set of the join [default: the best that the processor has]
    #[arg(long, global = true, value_name = "NAME", value_parser = kernel_name())]
    pub kernel: Option<KernelName>,
    /// Log more; give it twice to log still more
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Show no progress, and log warnings and errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Format of the log lines on standard error
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

fn kernel_name() -> impl TypedValueParser<Value = KernelName> {
    PossibleValuesParser::new(KernelName::ALL.map(KernelName::name)).try_map(|name| name.parse())
}
