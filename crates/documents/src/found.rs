//! The files at a place of documents.

use std::collections::BTreeMap;

use nearprint_storage::InputFile;

/// The files at a place of documents.
#[derive(Debug, Default)]
pub struct FoundFiles {
    /// The files by path.
    pub files: BTreeMap<String, InputFile>,
    /// Things that look like files but cannot be read, each with the reason; by path.
    pub unusable: BTreeMap<String, (InputFile, String)>,
    /// The table that the files belong to.
    pub table: Option<FoundTable>,
}

impl FoundFiles {
    /// Creates files that belong to no table, and things that cannot be read, each with the reason.
    pub fn new(
        files: impl IntoIterator<Item = InputFile>,
        unusable: impl IntoIterator<Item = (InputFile, String)>,
    ) -> Self {
        let files = files.into_iter().map(|file| (file.url.clone(), file)).collect();
        let unusable = unusable.into_iter().map(|(file, reason)| (file.url.clone(), (file, reason))).collect();
        Self { files, unusable, table: None }
    }
}

/// The inputs of a night that a manifest names. They are read in place of what a place of documents has now.
#[derive(Debug, Clone, Default)]
pub struct KnownFiles {
    /// The files.
    pub files: Vec<InputFile>,
    /// Things that look like files but cannot be read, each with the reason.
    pub unusable: Vec<(InputFile, String)>,
    /// Files that were passed over because their names have none of the [`endings`](crate::endings). They are not looked
    /// for.
    pub ignored: Vec<String>,
    /// The folder of the ids of HTML files, as [`WebPages::root`](crate::WebPages::root) has it. `None` means that the place of
    /// the documents says it.
    pub html_root: Option<String>,
}

/// A table whose files were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTable {
    /// The path or URL of the table.
    pub url: String,
    /// The columns whose values are in the log of a Delta table and not in its files.
    pub partition_columns: Vec<String>,
}
