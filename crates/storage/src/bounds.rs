//! The bounds of what a storage reads.

use std::sync::Arc;

use nearprint_fault::{Fault, Result, Words, key, words};

use crate::folder::Folder;
use crate::input::InputFile;
use crate::redact::redact;
use crate::roots::Roots;
use crate::storage::Storage;

impl Storage {
    /// Returns this storage with bounds for what it reads.
    ///
    /// ```
    /// use nearprint_fault::ErrorKind;
    /// use nearprint_storage::{Roots, Storage};
    ///
    /// let roots = Roots { roots: vec!["s3://crawl/a".to_owned()], ..Roots::default() };
    /// let storage = Storage::default().within(roots);
    /// assert!(storage.input("s3://crawl/a/dt=2026-11-20").is_ok());
    /// for outside in ["s3://crawl/ab", "s3://crawl", "s3://crawl/a/../b", "s3://other/a", "s3://crawl%2Fa/b", "/a"] {
    ///     assert_eq!(storage.input(outside).unwrap_err().kind(), ErrorKind::Usage, "{outside}");
    /// }
    /// ```
    #[must_use]
    pub fn within(mut self, roots: Roots) -> Self {
        self.roots = Arc::new(roots);
        self
    }

    /// Refuses a place that a key names if it is neither one of the roots nor below one. Links and `..` are resolved
    /// first. For a glob, only the folder before the first wildcard is checked: wildcards match existing names, never
    /// `..`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage), with `key` in its message, if the place is outside; an
    /// error if the place or a root cannot be opened.
    pub fn refuse_outside(&self, key: &str, url: &str) -> Result<()> {
        let roots = &self.roots.roots;
        if roots.is_empty() || self.is_in(roots, &self.base_of(url)?)? { Ok(()) } else { Err(outside(key, url, roots)) }
    }

    /// Returns the folder or file at a place that is read as input, whoever names it. It need not exist. No request is
    /// sent.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the place lies outside the roots; otherwise those of
    /// [`folder`](Self::folder).
    pub fn input(&self, url: &str) -> Result<Folder> {
        let place = self.folder(url)?;
        self.refuse_input_outside(&place)?;
        Ok(place)
    }

    /// Returns the place of a file that a table names by a path that may lead out of it. No request is
    /// sent.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if it lies neither in one of the places of
    /// [`clone_roots`](Roots::clone_roots) nor in the roots, or, where there are no roots, in the table;
    /// otherwise those of [`folder`](Self::folder).
    pub fn file_of_table(&self, table: &Folder, path: &str) -> Result<Folder> {
        let place = self.folder(path)?;
        let Roots { roots, clone_roots } = &*self.roots;
        let is_own = if roots.is_empty() { table.contains(&place) } else { self.is_in(roots, &place)? };
        if is_own || self.is_in(clone_roots, &place)? {
            return Ok(place);
        }
        let bounds = if roots.is_empty() {
            Words::from("the table")
        } else {
            words![key("root"), format!(" {}", roots.join(", "))]
        };
        let reason = words![
            format!(
                "{}: this table names {}, which lies outside of {bounds}: if its files may lie there, name the place in ",
                redact(table.url()),
                redact(path)
            ),
            key("clone_roots"),
            " of the job file"
        ];
        Err(Fault::usage(reason))
    }

    /// Refuses files of a listing that are links, or lie below links, to places outside the roots.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if a file is outside; an error if a path cannot be
    /// resolved.
    pub fn refuse_links_outside<'a>(&self, files: impl IntoIterator<Item = &'a InputFile>) -> Result<()> {
        if self.roots.roots.is_empty() {
            return Ok(());
        }
        let mut local = files.into_iter().filter(|file| !file.is_remote());
        local.try_for_each(|file| self.input(&file.url).map(drop))
    }

    pub(crate) fn refuse_input_outside(&self, place: &Folder) -> Result<()> {
        let Roots { roots, clone_roots } = &*self.roots;
        if roots.is_empty() || self.is_in(roots, place)? || self.is_in(clone_roots, place)? {
            return Ok(());
        }
        Err(outside("input", place.url(), roots))
    }

    fn is_in(&self, roots: &[String], place: &Folder) -> Result<bool> {
        for root in roots {
            if self.folder(root)?.contains(place) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn outside(what: &str, url: &str, roots: &[String]) -> Fault {
    let reason =
        words![format!("{what} {} lies outside of ", redact(url)), key("root"), format!(" {}", roots.join(", "))];
    Fault::usage(reason)
}
