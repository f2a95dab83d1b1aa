//! Opening places by path or URL, and finding the files that a pattern names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use nearprint_fault::{Fault, Result};
use object_store::path::Path;
use tokio::sync::OnceCell;

use crate::backend::Backend;
use crate::error::bad_file;
use crate::folder::{Folder, local_folder};
use crate::input::InputFile;
use crate::listing::{Glob, Listing, WantedFiles};
use crate::locked::locked;
use crate::redact::{holds_secrets, redact};
use crate::roots::Roots;
use crate::s3::{Bucket, Requests, S3Config, Shared};
use crate::table_format::TableFormat;

/// Opens places by path or URL. Clones share connections, credentials and counts.
#[derive(Debug, Clone)]
pub struct Storage {
    s3: S3Config,
    shared: Arc<Shared>,
    buckets: Arc<Mutex<BTreeMap<String, Arc<Bucket>>>>,
    /// The folder below which relative local paths lie. Empty stands for the working folder.
    base: PathBuf,
    pub(crate) roots: Arc<Roots>,
    /// The folders that were examined and are no tables, by path or URL, so that a command examines each folder once.
    pub(crate) no_tables: Examined<()>,
    /// The folders that are no Iceberg tables, likewise, each with whether the one above it is to be looked at.
    outside_iceberg: Examined<bool>,
}

/// What was found out about folders, by path or URL, or is being found out.
type Examined<T> = Arc<Mutex<BTreeMap<String, Arc<OnceCell<T>>>>>;

impl Default for Storage {
    fn default() -> Self {
        Self::new(S3Config::default())
    }
}

const NOTHING_THERE: &str = "check the path; nothing was read or written";

impl Storage {
    /// Creates a storage that accesses `s3://` places with the settings `s3`.
    #[must_use]
    pub fn new(s3: S3Config) -> Self {
        let shared = Arc::new(Shared::new(&s3));
        let (buckets, base) = (Arc::default(), PathBuf::new());
        let (no_tables, outside_iceberg) = (Arc::default(), Arc::default());
        Self { s3, shared, buckets, base, roots: Arc::default(), no_tables, outside_iceberg }
    }

    /// Returns this storage with another folder below which relative local paths lie, such as that of the file that names
    /// them.
    #[must_use]
    pub fn below(self, base: PathBuf) -> Self {
        Self { base, ..self }
    }

    /// Returns the folder below which relative local paths lie. Empty stands for the working folder.
    #[must_use]
    pub fn base(&self) -> &std::path::Path {
        &self.base
    }

    /// Returns the settings by which `s3://` places are accessed.
    #[must_use]
    pub fn s3(&self) -> &S3Config {
        &self.s3
    }

    /// Returns the counts of the requests that were sent to object stores so far.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.shared.traffic.requests()
    }

    /// Aborts the multipart uploads that were left open when work failed or was stopped. Takes at most 5 seconds.
    pub async fn abort_uploads(&self) {
        self.shared.abort_uploads().await;
    }

    /// Returns the folder at a local path or `s3://bucket/prefix`. It need not exist.
    ///
    /// ```
    /// use nearprint_fault::ErrorKind;
    /// use nearprint_storage::Storage;
    ///
    /// let storage = Storage::default();
    /// assert_eq!(storage.folder("out/store/")?.url(), "out/store");
    /// assert!(storage.folder("s3://bucket/prefix")?.is_remote());
    /// let refused = storage.folder("https://example.org/pages").unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Usage);
    /// # Ok::<(), nearprint_fault::Fault>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the URL has another scheme or holds credentials; an
    /// error if the path or prefix is not valid.
    pub fn folder(&self, url: &str) -> Result<Folder> {
        if holds_secrets(url) {
            let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
            let reason = format!(
                "{scheme}://…: a URL must not hold credentials: write s3://bucket/prefix and give them by the environment or a profile"
            );
            return Err(Fault::usage(reason));
        }
        let url = if url == "/" { url } else { url.trim_end_matches('/') };
        match url.split_once("://") {
            Some(("s3", rest)) => self.s3_folder(url, rest),
            Some(("file", path)) => local_folder(&self.base, path),
            None => local_folder(&self.base, url),
            Some(("hf", rest)) => Err(Fault::usage(hugging_face(url, rest))),
            Some((scheme, _)) => {
                let use_this = match scheme {
                    "s3a" | "s3n" => "write s3://bucket/prefix",
                    "delta" | "iceberg" => "name the table's folder, as a local path or s3://bucket/prefix",
                    _ => "use a local path or s3://bucket/prefix",
                };
                let reason = format!("{url}: no support for {scheme}://: {use_this}");
                Err(Fault::usage(reason))
            }
        }
    }

    fn s3_folder(&self, url: &str, rest: &str) -> Result<Folder> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Path::parse(prefix).map_err(|e| Fault::usage(format!("{url}: {e}")))?;
        let mut buckets = locked(&self.buckets);
        let new = || Arc::new(Bucket::new(bucket, &self.s3, &self.shared));
        let bucket = Arc::clone(buckets.entry(bucket.to_owned()).or_insert_with(new));
        Ok(Folder { backend: Backend::Bucket(bucket), prefix, url: url.to_owned(), local: None })
    }

    /// Returns the files that a path, folder, glob or S3 prefix names, sorted by path. In folders and globs, names that
    /// start with `_` or `.` are passed over at any depth.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if there are no files (its message calls
    /// them `what`); [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if something looks like a file but
    /// cannot be read; [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a table is found; an error if
    /// the place cannot be listed.
    pub async fn files(&self, pattern: &str, what: &'static str) -> Result<Vec<InputFile>> {
        let listed = self.listing(pattern, what).await?;
        match listed.unusable.into_iter().next() {
            Some((file, reason)) => Err(bad_file(file.url, reason)),
            None => Ok(listed.files),
        }
    }

    /// Lists the same files as [`files`](Self::files). Things that look like files but cannot be read are no error
    /// here: the listing names them.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if nothing is found;
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a table is found; an error if the
    /// place cannot be listed; [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the place or a file lies
    /// outside the roots.
    pub async fn listing(&self, pattern: &str, what: &'static str) -> Result<Listing> {
        let listed = self.listed(pattern).await?;
        if let Some(table) = &listed.table {
            return Err(table.refused());
        }
        self.refuse_links_outside(&listed.files)?;
        if listed.is_empty() {
            return Err(Fault::input_missing(what, redact(pattern), NOTHING_THERE));
        }
        Ok(listed)
    }

    async fn listed(&self, pattern: &str) -> Result<Listing> {
        // If the path exists exactly as it is written, its brackets belong to the name.
        if pattern.contains('[') {
            match self.file_or_folder(pattern).await {
                Ok(listed) if listed.is_empty() => {}
                Err(error) if error.matter::<TableFormat>().is_none() => {}
                as_written => return as_written,
            }
        }
        match self.place_of(pattern)? {
            (base, Some(glob)) => {
                self.refuse_input_outside(&base)?;
                let listed = base.listing(WantedFiles::Matching(glob)).await?;
                self.refuse_table_above(&base, &listed).await?;
                Ok(listed)
            }
            (_, None) => self.file_or_folder(pattern).await,
        }
    }

    /// Returns the folder before the first wildcard of a pattern, or the place itself if there is no wildcard.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the glob is malformed or the URL is not supported.
    pub fn base_of(&self, pattern: &str) -> Result<Folder> {
        self.place_of(pattern).map(|(base, _)| base)
    }

    /// Returns the same folder together with the glob, if the pattern is one.
    pub(crate) fn place_of(&self, pattern: &str) -> Result<(Folder, Option<Glob>)> {
        let Some(wildcard) = pattern.find(['*', '?', '[']) else {
            return Ok((self.folder(pattern)?, None));
        };
        let base = pattern[..wildcard].rsplit_once('/').map_or(".", |(base, _)| base);
        let base = if base.is_empty() { "/" } else { base };
        Ok((self.folder(base)?, Some(Glob::parse(pattern)?)))
    }

    /// Lists a folder or a single file. The place is treated as a folder first, because that is the usual case, and
    /// because only a listing tells a missing bucket from a missing prefix.
    async fn file_or_folder(&self, pattern: &str) -> Result<Listing> {
        let place = self.input(pattern)?;
        let mut listed = place.listing(WantedFiles::All).await?;
        if pattern.ends_with('/') {
            listed.files.retain(|file| file.url != place.url);
        } else if place.is_remote() && listed.files.is_empty() && !place.prefix.as_ref().is_empty() {
            listed.files.extend(place.find().await?);
        }
        // What a table within another one has, its own log says.
        if listed.table.as_ref().is_none_or(|table| table.url != place.url) {
            self.refuse_table_above(&place, &listed).await?;
        }
        Ok(listed)
    }

    /// Refuses a place inside a table, of which this is the listing. The folders above the place are examined as long as the names
    /// below them could be those of a table's partitions. Above these, only Iceberg tables are looked for, whose Parquet files may
    /// lie in folders of any name: with a LIST for each folder up to the root of the bucket or disk, which a command sends once.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if one of these folders is a table; an error if one
    /// of them cannot be examined.
    async fn refuse_table_above(&self, place: &Folder, listed: &Listing) -> Result<()> {
        let mut place = place.clone();
        while let Some(above) = place.above() {
            let may_be_part = |name: &str| name.contains('=') || name == "data" || name.contains('.');
            if !place.name().is_some_and(|name| may_be_part(&name)) {
                return match listed.files.iter().any(InputFile::is_parquet) {
                    true => self.refuse_iceberg_from(above).await,
                    false => Ok(()),
                };
            }
            self.refuse_table(&above).await?;
            place = above;
        }
        Ok(())
    }

    /// Refuses a folder that is an Iceberg table or lies in one. Where a place refuses to say, nothing above is looked at.
    async fn refuse_iceberg_from(&self, folder: Folder) -> Result<()> {
        let mut next = Some(folder);
        while let Some(folder) = next {
            let examined = Arc::clone(locked(&self.outside_iceberg).entry(folder.whole_path()).or_default());
            let goes_on = *examined.get_or_try_init(|| folder.refuse_iceberg()).await?;
            next = if goes_on { folder.above() } else { None };
        }
        Ok(())
    }

    /// Refuses a folder that is a table itself. The marks of tables are looked for by their own names, because a folder
    /// that may not be listed may still be read. If the permissions forbid that too, a warning says what is unknown.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the folder is a table; an error if it cannot be
    /// examined.
    pub async fn refuse_table(&self, folder: &Folder) -> Result<()> {
        let examined = Arc::clone(locked(&self.no_tables).entry(folder.whole_path()).or_default());
        examined.get_or_try_init(|| folder.refuse_table()).await.copied()
    }
}

/// Returns why a dataset of Hugging Face is not read, and the command that downloads it.
fn hugging_face(url: &str, rest: &str) -> String {
    let mut names = rest.trim_start_matches("datasets/").split('/');
    let (owner, name) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    let name = name.split('@').next().unwrap_or_default();
    format!(
        "{url}: nearprint does not read datasets from Hugging Face itself: download this one with \
         `hf download {owner}/{name} --repo-type dataset --local-dir {name}`, and name the folder {name}"
    )
}
