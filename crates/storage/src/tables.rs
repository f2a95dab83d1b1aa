//! Tables that consist of Parquet files and a log. The log says which rows of the files still count, so the files alone
//! must not be read.

use nearprint_fault::{ErrorKind, Fault, Part, Result, words};

use crate::error::{is_forbidden, is_refused};
use crate::folder::{Folder, resolved};
use crate::local::is_absence;
use crate::table_format::TableFormat;

/// Returns a path or URL that an engine wrote into a table, with a scheme that a [`Storage`](crate::Storage) knows.
///
/// ```
/// use nearprint_storage::known_scheme;
///
/// assert_eq!(known_scheme("s3a://bucket/a.parquet"), "s3://bucket/a.parquet");
/// for local in ["file:/data/a.parquet", "file:///data/a.parquet", "/data/a.parquet"] {
///     assert_eq!(known_scheme(local), "/data/a.parquet");
/// }
/// assert_eq!(known_scheme("dt=2026-11-20/a.parquet"), "dt=2026-11-20/a.parquet");
/// ```
#[must_use]
pub fn known_scheme(path: &str) -> String {
    match path.split_once("://") {
        Some(("s3a" | "s3n", rest)) => format!("s3://{rest}"),
        Some(("file", rest)) if rest.starts_with('/') => rest.to_owned(),
        // `file:/path`, as Hadoop writes it.
        None if path.starts_with("file:/") => path.trim_start_matches("file:").to_owned(),
        _ => path.to_owned(),
    }
}

/// A table and its place.
#[derive(Debug, Clone)]
pub struct TablePlace {
    pub url: String,
    pub format: TableFormat,
}

impl TablePlace {
    /// Returns the error that refuses to read the table.
    pub fn refused(&self) -> Fault {
        let format = self.format;
        let reason = words![
            Part::Place,
            format!(
                " is {format} table: rows that it removed still stand in its files, so these are not read as they are: {}",
                format.remedy()
            ),
        ];
        Fault::bad_data(&self.url, reason).about(format)
    }
}

/// Warns of a folder of which the permissions forbid to find out whether it is a table. `marks` are the names that cannot be
/// listed.
pub(crate) fn warn_of_unknown(url: &str, marks: &str) {
    tracing::warn!(
        "{url}: cannot tell whether this is a table, because listing {marks} there is forbidden. If it is one, rows that it \
         removed are read with the others: allow listing these names"
    );
}

/// The number of objects in a folder `metadata` on S3 among which the metadata of an Iceberg table are looked for: the first ones, whose
/// names begin with a digit, and the first whose names begin with `v`, each with five requests.
const METADATA_NAMES: usize = 5_000;

impl Folder {
    /// Refuses a folder that is a table itself, and warns if the permissions forbid to find out.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the folder is a table; an error if it cannot be
    /// examined.
    pub(crate) async fn refuse_table(&self) -> Result<()> {
        let mut unknown = Vec::new();
        let marks = TableFormat::FOLDERS.map(|name| async move { (name, self.format_by(name).await) });
        for (name, found) in futures::future::join_all(marks).await {
            match found {
                Ok(Some(format)) => return Err(TablePlace { url: self.url().to_owned(), format }.refused()),
                Ok(None) => {}
                Err(error) if is_forbidden(&error) => unknown.push(format!("{name}/")),
                // Without the bucket there is no table.
                Err(error) if error.kind() == ErrorKind::InputMissing => {}
                Err(error) => return Err(error),
            }
        }
        if !unknown.is_empty() {
            warn_of_unknown(self.url(), &unknown.join(", "));
        }
        Ok(())
    }

    /// Refuses a folder that is an Iceberg table. Returns `false` if the place refuses to say. A folder `metadata` may be
    /// that of another program: of a large one on S3, only the first names are seen.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the folder is such a table; an error if it cannot be
    /// examined.
    pub(crate) async fn refuse_iceberg(&self) -> Result<bool> {
        let mark = TableFormat::ICEBERG_FOLDER;
        let names = match self.join(mark).first_names("u~", METADATA_NAMES).await {
            Ok(names) => names,
            // Without the bucket there is no table.
            Err(error) if error.kind() == ErrorKind::InputMissing => return Ok(true),
            Err(error) if is_refused(&error) => {
                tracing::debug!(folder = self.url(), %error, "whether this is an Iceberg table is unknown");
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        match TableFormat::in_folder(mark, names) {
            Some(format) => Err(TablePlace { url: self.url().to_owned(), format }.refused()),
            None => Ok(true),
        }
    }

    /// Returns the path or URL, however it was written. No other folder has the same.
    pub(crate) fn whole_path(&self) -> String {
        self.local.as_ref().map_or_else(|| self.url.clone(), |path| path.display().to_string())
    }

    /// Returns the format of which this folder is a table, if the folder `mark` in it says so.
    async fn format_by(&self, mark: &str) -> Result<Option<TableFormat>> {
        let (place, by_name) = (self.join(mark), TableFormat::marked_by(&[mark]).map(|(_, format)| format));
        if let Some(path) = &place.local {
            match path.symlink_metadata() {
                Err(error) if is_absence(&error) => return Ok(None),
                Err(error) => return Err(Fault::io(path)(error)),
                Ok(_) if by_name.is_some() => return Ok(by_name),
                Ok(_) => {}
            }
        }
        Ok(TableFormat::in_folder(mark, place.names().await?))
    }

    /// Returns the last name of the path.
    pub(crate) fn name(&self) -> Option<String> {
        self.prefix.filename().map(str::to_owned)
    }

    /// Returns the folder that this one lies in, or `None` at the top.
    #[must_use]
    pub fn above(&self) -> Option<Self> {
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
