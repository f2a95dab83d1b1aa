//! The folder below which the paths of HTML files are their documents' ids.

use nearprint_fault::Result;
use nearprint_storage::{Folder, Storage};

use super::place::DocumentPlace;
use super::reader::Format;
use super::web_pages::WebPages;

impl WebPages {
    /// Sets the folder of the ids of HTML files to the place of the documents, unless it is set. That of a list is empty.
    pub(super) fn set_root(&mut self, storage: &Storage, place: &DocumentPlace) -> Result<()> {
        if self.root.is_none() {
            self.root = Some(match place {
                DocumentPlace::Pattern { pattern, .. } => Self::root_of(&storage.base_of(pattern)?),
                DocumentPlace::List(_) => String::new(),
            });
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
}
