//! How web pages are read: which of their texts, and by which ids.

use nearprint_html::HtmlText;
use nearprint_storage::{Folder, Storage};
use serde::{Deserialize, Serialize};

use super::place::DocumentPlace;
use super::reader::Format;
use crate::error::Result;

/// What is the id of a document in a WARC file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarcId {
    /// The URL of the page.
    #[default]
    Url,
    /// The time of the record and the URL of the page, with a blank between them.
    UrlTime,
    /// The id of the record, without angle brackets.
    RecordId,
}

/// How the pages of WARC and HTML files are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebPages {
    /// What is the id of a document in a WARC file.
    pub warc_id: WarcId,
    /// Which text of a page is its document's.
    pub html_text: HtmlText,
    /// The folder below which the path of an HTML file is its document's id. If the file does not lie there, its whole
    /// path or URL is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

impl WebPages {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the folder of the ids of HTML files to the place of the documents, unless it is set. A list has none.
    pub(super) fn set_root(&mut self, storage: &Storage, place: &DocumentPlace) -> Result<()> {
        if let DocumentPlace::Pattern { pattern, .. } = place
            && self.root.is_none()
        {
            self.root = Some(Self::root_of(&storage.base_of(pattern)?));
        }
        Ok(())
    }

    /// Returns the folder of the ids of HTML files, for documents at a place. If the place is a file, it is the folder
    /// of the file.
    #[must_use]
    pub fn root_of(base: &Folder) -> String {
        let url = base.url().trim_end_matches('/');
        let is_file = Format::of(url).is_some() && !base.is_local_folder();
        if is_file { url.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned() } else { url.to_owned() }
    }

    /// Returns the id of the document in an HTML file.
    pub(super) fn id_of<'a>(&self, url: &'a str) -> &'a str {
        let below = self.root.as_deref().and_then(|root| url.strip_prefix(root));
        below.map_or(url, |path| path.trim_start_matches('/'))
    }
}
