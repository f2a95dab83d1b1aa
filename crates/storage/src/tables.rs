//! Tables that consist of Parquet files and a log. The log says which rows of the files still count, so the files alone
//! must not be read.

use crate::error::{Result, StorageError};
use crate::folder::{Folder, resolved};
use crate::table_format::TableFormat;

/// A table and its place.
#[derive(Debug)]
pub struct Table {
    pub url: String,
    pub format: TableFormat,
}

impl Table {
    /// Returns the error that refuses to read the table.
    pub fn refused(&self) -> StorageError {
        StorageError::Table { url: self.url.clone(), format: self.format }
    }
}

impl Folder {
    /// Refuses a place inside a table. The folders above the place are examined as long as the names below them could
    /// be those of a table's partitions.
    ///
    /// # Errors
    /// [`StorageError::Table`] if one of these folders is a table.
    pub async fn refuse_table_above(&self) -> Result<()> {
        let mut place = self.clone();
        while let Some(above) = place.above() {
            let may_be_part = |name: &str| name.contains('=') || name == "data" || name.contains('.');
            if !place.name().is_some_and(|name| may_be_part(&name)) {
                break;
            }
            above.refuse_table().await?;
            place = above;
        }
        Ok(())
    }

    /// Refuses a folder that is a table itself. If the folder cannot be listed, it passes: reading it then reports the
    /// error.
    ///
    /// # Errors
    /// [`StorageError::Table`] if the folder is a table.
    pub async fn refuse_table(&self) -> Result<()> {
        let mut marks: Vec<[String; 2]> = Vec::new();
        for name in self.names().await.unwrap_or_default() {
            if name == "metadata" {
                let files = self.join("metadata").names().await.unwrap_or_default();
                marks.extend(files.into_iter().map(|file| [name.clone(), file]));
            } else {
                marks.push([name, String::new()]);
            }
        }
        match marks.iter().find_map(|mark| TableFormat::marked_by(mark)) {
            Some((_, format)) => Err(Table { url: self.url().to_owned(), format }.refused()),
            None => Ok(()),
        }
    }

    fn name(&self) -> Option<String> {
        self.prefix.filename().map(str::to_owned)
    }

    fn above(&self) -> Option<Self> {
        let mut parts: Vec<_> = self.prefix.parts().collect();
        parts.pop()?;
        let written = self.url.trim_end_matches('/').rsplit_once('/').map(|(above, _)| above.to_owned());
        let local = self.local.as_ref().and_then(|path| path.parent()).map(std::path::Path::to_path_buf);
        let url = match (&local, written) {
            // The resolved path may differ from the path as it was written, because of `..` and links.
            (Some(path), Some(written)) if resolved(&written).is_ok_and(|w| w == *path) => written,
            (Some(path), _) => path.display().to_string(),
            (None, written) => written?,
        };
        Some(Self { backend: self.backend.clone(), prefix: parts.into_iter().collect(), url, local })
    }
}
