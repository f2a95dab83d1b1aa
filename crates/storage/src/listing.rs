//! Listing what can be read at a path, folder, glob or S3 prefix: files, things that look like files but cannot be
//! read, and the marks of tables.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path as LocalPath;
use std::time::SystemTime;

use futures::TryStreamExt;
use nearprint_fault::{Fault, Part, Result, words};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use walkdir::WalkDir;

use crate::error::request;
use crate::folder::Folder;
use crate::input::InputFile;
use crate::local::{is_absence, names_in, special_kind};
use crate::runtime::blocking;
use crate::table_format::TableFormat;
use crate::tables::{TablePlace, warn_of_unknown};

/// The result of listing a place and everything below it.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files, sorted by path.
    pub files: Vec<InputFile>,
    /// Things that look like files but cannot be read as such, each with the reason; sorted by path.
    pub unusable: Vec<(InputFile, String)>,
    /// A table to which some of the files belong.
    pub table: Option<TablePlace>,
    /// Iceberg tables that were passed by on a local disk. They count if a file lies in them.
    passed_by: Vec<TablePlace>,
}

/// The files that a listing is to find.
#[derive(Debug, Clone)]
pub enum WantedFiles {
    All,
    Matching(Glob),
}

/// A glob as a whole, and divided at its slashes.
#[derive(Debug, Clone)]
pub struct Glob {
    whole: glob::Pattern,
    parts: Vec<glob::Pattern>,
}

/// `*` and `?` match within one component of a path.
const OPTIONS: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

impl Glob {
    /// Parses a glob.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the glob is malformed.
    pub fn parse(pattern: &str) -> Result<Self> {
        let invalid = |e: glob::PatternError| Fault::usage(format!("{pattern}: {e}: mend the glob"));
        let whole = glob::Pattern::new(pattern).map_err(invalid)?;
        let parts =
            pattern.split('/').map(glob::Pattern::new).collect::<std::result::Result<_, _>>().map_err(invalid)?;
        Ok(Self { whole, parts })
    }

    fn is_matched_by(&self, url: &str) -> bool {
        self.whole.matches_with(plain(url), OPTIONS)
    }

    /// Returns whether something below `url` may match.
    fn may_match_below(&self, url: &str) -> bool {
        let mut parts = self.parts.iter();
        for name in plain(url).split('/').filter(|_| plain(url) != ".") {
            match parts.next() {
                Some(part) if part.as_str() == "**" => return true,
                Some(part) if part.matches_with(name, OPTIONS) => {}
                _ => return false,
            }
        }
        parts.next().is_some()
    }
}

/// Removes a leading `./`. A glob without a folder is about names in the working folder, whose paths may start with
/// `./`.
fn plain(url: &str) -> &str {
    url.strip_prefix("./").unwrap_or(url)
}

impl WantedFiles {
    pub fn has(&self, url: &str) -> bool {
        match self {
            Self::All => true,
            Self::Matching(glob) => glob.is_matched_by(url),
        }
    }

    pub fn may_be_below(&self, url: &str) -> bool {
        match self {
            Self::All => true,
            Self::Matching(glob) => glob.may_match_below(url),
        }
    }
}

/// Returns whether listings pass over a name, together with everything below it.
#[must_use]
pub fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

impl Folder {
    /// Lists the wanted files of this place, without those under hidden names. The listing is empty if the place does
    /// not exist. If a place on a local disk is not a folder, the listing consists of the place itself. Links are
    /// followed. Only folders and files are ever opened.
    ///
    /// # Errors
    /// The place cannot be listed.
    pub async fn listing(&self, wanted: WantedFiles) -> Result<Listing> {
        let mut listing = if self.is_remote() {
            self.remote_listing(&wanted).await?
        } else {
            let folder = self.clone();
            blocking("list", move || folder.local_listing(&wanted)).await?
        };
        listing.files.sort_by(|a, b| a.url.cmp(&b.url));
        listing.unusable.sort_by(|a, b| a.0.url.cmp(&b.0.url));
        Ok(listing)
    }

    /// Lists all files below this place, like [`Storage::files`](crate::Storage::files), whatever table they belong to.
    ///
    /// # Errors
    /// The place cannot be listed.
    pub async fn files_below(&self) -> Result<Listing> {
        self.listing(WantedFiles::All).await
    }

    async fn remote_listing(&self, wanted: &WantedFiles) -> Result<Listing> {
        let store = self.backend.store().await?;
        let mut listed = store.list(Some(&self.prefix));
        let mut listing = Listing::default();
        let mut folders = HashSet::new();
        while let Some(meta) = listed.try_next().await.map_err(|source| self.unlisted(source))? {
            let names: Vec<String> =
                meta.location.prefix_match(&self.prefix).into_iter().flatten().map(|p| p.as_ref().to_owned()).collect();
            listing.note_table(self, &names, wanted);
            let url = self.below(&names);
            if !names.is_empty() && !names.iter().any(|name| is_hidden(name)) && wanted.has(&url) {
                listing.files.push(self.input(meta, url));
            }
            folders.extend((1..names.len()).map(|n| self.below(&names[..n])));
        }
        // Programs mark folders by objects without bytes; their names have lost the slash at the end.
        listing.files.retain(|file| file.size > 0 || !folders.contains(&file.url));
        Ok(listing)
    }

    /// Makes the fault of a listing that failed. No request can name an object whose key has an empty part, `.`, `..` or a control
    /// character.
    fn unlisted(&self, source: object_store::Error) -> Fault {
        match &source {
            object_store::Error::InvalidPath { source } => {
                let reason = words!["the name of an object in ", Part::Place, format!(" cannot be read: {source}")];
                Fault::bad_data(&self.url, reason).remedy("rename or delete that object")
            }
            _ => request("list", &self.url)(source),
        }
    }

    /// Returns the path or URL to which `names` lead from here.
    pub fn below(&self, names: &[impl AsRef<str>]) -> String {
        names.iter().fold(self.url.trim_end_matches('/').to_owned(), |url, name| format!("{url}/{}", name.as_ref()))
    }

    fn local_listing(&self, wanted: &WantedFiles) -> Result<Listing> {
        let mut listing = Listing::default();
        let Some(root) = &self.local else { return Ok(listing) };
        match std::fs::metadata(root) {
            Ok(there) if there.is_dir() => drop(std::fs::read_dir(root).map_err(Fault::io(root))?),
            Ok(there) => listing.add(self, root, self.url.clone(), &there),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(Fault::io(root)(error)),
            Err(error) if is_absence(&error) && !root.is_symlink() => return Ok(listing),
            Err(error) => listing.add_unusable(self, root, self.url.clone(), reason(root, &error)),
        }
        let mut entries = WalkDir::new(root).min_depth(1).follow_links(true).into_iter();
        while let Some(entry) = entries.next() {
            if self.take(&mut listing, root, &entry, wanted) == Below::PassedOver {
                entries.skip_current_dir();
            }
        }
        let has_file = |table: &TablePlace| {
            let below = format!("{}/", table.url);
            listing.files.iter().any(|file| file.url.starts_with(&below) && file.is_parquet())
        };
        if listing.table.is_none() {
            listing.table = listing.passed_by.iter().find(|table| has_file(table)).cloned();
        }
        Ok(listing)
    }

    fn take(
        &self,
        listing: &mut Listing,
        root: &LocalPath,
        entry: &walkdir::Result<walkdir::DirEntry>,
        wanted: &WantedFiles,
    ) -> Below {
        let path = entry.as_ref().map_or_else(|e| e.path().unwrap_or(root), walkdir::DirEntry::path);
        let below = path.strip_prefix(root).unwrap_or(LocalPath::new(""));
        let names: Vec<_> = below.iter().map(OsStr::to_string_lossy).collect();
        let (url, is_folder) = (self.below(&names), entry.as_ref().is_ok_and(|e| e.file_type().is_dir()));
        listing.note_table(self, &names, wanted);
        if names.is_empty() || names.last().is_some_and(|name| is_hidden(name)) {
            return if is_folder { Below::PassedOver } else { Below::Walked };
        }
        match entry {
            _ if is_folder && wanted.may_be_below(&url) => return Below::Walked,
            _ if is_folder => {
                listing.note_passed_by(self, path, &names, wanted);
                return Below::PassedOver;
            }
            Ok(entry) if wanted.has(&url) => match entry.metadata() {
                Ok(there) => listing.add(self, path, url, &there),
                Err(error) => listing.add_failed(self, path, url, &error),
            },
            // An entry that cannot be examined may be a folder with files.
            Err(error) if wanted.has(&url) || wanted.may_be_below(&url) => listing.add_failed(self, path, url, error),
            _ => {}
        }
        Below::Walked
    }
}

#[derive(PartialEq, Eq)]
enum Below {
    Walked,
    PassedOver,
}

impl Listing {
    /// Returns whether nothing was found, neither files nor things that cannot be read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.unusable.is_empty()
    }

    fn note_table(&mut self, place: &Folder, names: &[impl AsRef<str>], wanted: &WantedFiles) {
        if let Some((n, format)) = TableFormat::marked_by(names).filter(|_| self.table.is_none()) {
            let url = place.below(&names[..n]);
            self.table = wanted.may_be_below(&url).then_some(TablePlace { url, format });
        }
    }

    /// Notes an Iceberg table by the names in the folder of its metadata, in which no wanted file can be.
    fn note_passed_by(&mut self, place: &Folder, path: &LocalPath, names: &[impl AsRef<str>], wanted: &WantedFiles) {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let Some((&TableFormat::ICEBERG_FOLDER, above)) = names.split_last() else { return };
        let (url, above) = (place.below(&names), place.below(above));
        if !wanted.may_be_below(&above) {
            return;
        }
        match names_in(path) {
            Ok(names) => {
                let found = TableFormat::in_folder(TableFormat::ICEBERG_FOLDER, names);
                self.passed_by.extend(found.map(|format| TablePlace { url: above, format }));
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                warn_of_unknown(&above, &format!("{}/", TableFormat::ICEBERG_FOLDER));
            }
            Err(error) if is_absence(&error) => {}
            Err(error) => self.add_unusable(place, path, url, reason(path, &error)),
        }
    }

    fn add(&mut self, place: &Folder, path: &LocalPath, url: String, there: &Metadata) {
        match (special_kind(there), Path::from_absolute_path(path)) {
            (Some(kind), _) => self.add_unusable(place, path, url, format!("it is {kind} and no file")),
            (None, Err(_)) => {
                let odd = "its name is not UTF-8, or has control characters";
                self.add_unusable(place, path, url, odd.to_owned());
            }
            (None, Ok(location)) => self.files.push(place.input(meta(location, there), url)),
        }
    }

    /// Notes an entry that cannot be read. An entry that disappeared after its folder was read counts as never found.
    fn add_failed(&mut self, place: &Folder, path: &LocalPath, url: String, error: &walkdir::Error) {
        let gone = std::fs::symlink_metadata(path).is_err_and(|e| is_absence(&e));
        let reason = match error.io_error() {
            Some(_) if gone => return,
            Some(io) => reason(path, io),
            None => "it is a link to a folder that it lies in".to_owned(),
        };
        self.add_unusable(place, path, url, reason);
    }

    fn add_unusable(&mut self, place: &Folder, path: &LocalPath, url: String, reason: String) {
        let link = std::fs::symlink_metadata(path).and_then(|there| there.modified());
        let last_modified = link.unwrap_or(SystemTime::UNIX_EPOCH).into();
        let below = place.local.as_deref().and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        let location = below.iter().fold(place.prefix.clone(), |folder, name| folder.join(&*name.to_string_lossy()));
        let meta = ObjectMeta { location, last_modified, size: 0, e_tag: None, version: None };
        self.unusable.push((place.input(meta, url), reason));
    }
}

/// Describes a file in the way object_store does when it opens one. The ETag tells one version from another.
fn meta(location: Path, there: &Metadata) -> ObjectMeta {
    let modified = there.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    // As object_store does, a time before 1970 counts as that.
    let micros = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    let e_tag = Some(format!("{:x}-{micros:x}-{:x}", there.ino(), there.len()));
    ObjectMeta { location, last_modified: modified.into(), size: there.len(), e_tag, version: None }
}

fn reason(path: &LocalPath, error: &Error) -> String {
    let is_dangling = is_absence(error) && path.is_symlink();
    if is_dangling { "it is a link to nothing".to_owned() } else { format!("it cannot be read: {error}") }
}
