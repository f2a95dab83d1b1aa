//! The ways to read web pages: which of their texts are read, and which ids they have.

use nearprint_html::HtmlText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The id of a document in a WARC file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// What becomes of the revisit records of WARC files, which say that a page has the text of an earlier record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revisits {
    /// They are passed over.
    #[default]
    PassedOver,
    /// They are rows that name the document whose text they have. Only pages whose ids are their URLs have such rows.
    Given,
}

/// The way to read the pages of WARC and HTML files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebPages {
    /// The id of a document in a WARC file.
    pub warc_id: WarcId,
    /// Which text of a page is its document's.
    pub html_text: HtmlText,
    /// The folder below which the path of an HTML file is its document's id. If the file does not lie there, or the folder is
    /// empty, its whole path or URL is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

impl WebPages {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the id of the document in an HTML file.
    pub(super) fn id_of<'a>(&self, url: &'a str) -> &'a str {
        let root = self.root.as_deref().filter(|root| !root.is_empty());
        let below = root.and_then(|root| url.strip_prefix(root));
        below.map_or(url, |path| path.trim_start_matches('/'))
    }
}
