//! The options that choose a profile and the columns that it reads.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nearprint_documents::WarcId;
use nearprint_profile::{HtmlText, profiles};

use super::file_names::local_path;

/// The profile, and the columns of the documents.
#[derive(Debug, Clone, Args)]
pub struct ProfileArgs {
    /// Job file with profile, columns and overrides
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = profile_help())]
    pub profile: Option<String>,
    /// Override one key of the profile, such as tokenize.features.weight=count; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Column of the ids
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
    /// Column of the texts
    #[arg(long, value_name = "NAME")]
    pub text_column: Option<String>,
    /// Id of a document in a WARC file [default: url]
    #[arg(long, value_name = "ID")]
    pub warc_id: Option<WarcIdArg>,
    /// Text of a web page: main, all, or selector=CSS [default: main]
    #[arg(long, value_name = "TEXT")]
    pub html_text: Option<HtmlText>,
}

impl ProfileArgs {
    /// Returns the words of a command line that give the same fingerprints of texts. The columns have no part in them.
    pub fn of_fingerprints(&self) -> Vec<String> {
        let config = self.config.iter().map(|file| ("--config", file.display().to_string()));
        let profile = self.profile.iter().map(|name| ("--profile", name.clone()));
        let overrides = self.overrides.iter().map(|of| ("--set", of.clone()));
        let html_text = self.html_text.iter().map(|text| ("--html-text", text.to_string()));
        let flags = config.chain(profile).chain(overrides).chain(html_text);
        flags.flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }
}

/// The id of a document in a WARC file.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum WarcIdArg {
    /// The URL of the page
    Url,
    /// The time of the record, a blank, and the URL of the page
    UrlTime,
    /// The id of the record
    RecordId,
}

impl From<WarcIdArg> for WarcId {
    fn from(id: WarcIdArg) -> Self {
        match id {
            WarcIdArg::Url => Self::Url,
            WarcIdArg::UrlTime => Self::UrlTime,
            WarcIdArg::RecordId => Self::RecordId,
        }
    }
}

pub fn profile_help() -> String {
    let names: Vec<&str> = profiles().map(|(name, ..)| *name).collect();
    format!("Named profile: {}", names.join(", "))
}
