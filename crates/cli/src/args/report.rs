//! The arguments of `nearprint report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::file_names::{local_path, named_html};
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Job file
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night; latest, today, yesterday
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
    /// Number of dropped documents and of clusters to show; documents that are alike count once [default: 3 on a terminal, 20 with -v and on a page]
    #[arg(long, value_name = "N")]
    pub examples: Option<usize>,
    /// Write the report as a page too, which replaces an earlier one of this name
    #[arg(long, value_name = "FILE.html", value_parser = named_html)]
    pub html: Option<Given>,
    /// Write the page of the night to DIR/DATE.html, with links to other nights, and that of all nights to DIR/index.html
    #[arg(long, value_name = "DIR", value_parser = place)]
    pub pages: Option<Given>,
    /// Format of the report on standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a terminal
    Text,
    /// Markdown: small tables for chats and continuous integration
    Md,
}
