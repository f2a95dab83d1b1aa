//! The sources of a night's documents: the sites or feeds that they come from.

use std::collections::HashMap;

use nearprint_documents::url_host;
use nearprint_join::RowSet;
use nearprint_storage::row_number;
use nearprint_tasks::{QueryBatch, Sources};

/// The source of documents that have no value in the column of sources, or whose ids are not URLs.
pub const NO_SOURCE: &str = "-";

/// The source of each document: its value in the column of sources or, without such a column, the host that its id names,
/// in lower case.
#[derive(Debug)]
pub struct RowSources {
    /// The names of the sources, without order.
    pub names: Vec<String>,
    /// The position of each row's source among the names.
    pub of_rows: Vec<u32>,
}

impl RowSources {
    /// Finds the sources of the documents of a batch.
    #[must_use]
    pub fn of(batch: &QueryBatch) -> Self {
        match &batch.sources {
            Some(sources) => Self::of_column(batch, sources),
            None => Self::of_hosts(batch),
        }
    }

    fn of_column(batch: &QueryBatch, sources: &Sources) -> Self {
        let none = row_number(sources.names.len());
        let names = sources.names.iter().cloned().chain([NO_SOURCE.to_owned()]).collect();
        let of_rows = batch.rows().map(|row| sources.of_rows.get(row).copied().unwrap_or(none)).collect();
        Self { names, of_rows }
    }

    fn of_hosts(batch: &QueryBatch) -> Self {
        let (mut names, mut known) = (Vec::new(), HashMap::<String, u32>::new());
        let mut position = |host: &str| match known.get(host) {
            Some(&position) => position,
            None => {
                let position = row_number(names.len());
                names.push(host.to_owned());
                known.insert(host.to_owned(), position);
                position
            }
        };
        let mut last = (String::new(), None);
        let of_row = |row: u32| {
            let id = batch.id(row);
            let host = url_host(address(&id)).unwrap_or(NO_SOURCE);
            // Ids ascend, so those of one host mostly follow one another.
            match last {
                (ref name, Some(at)) if name == host => at,
                _ => {
                    let lower_case = host.bytes().any(|b| b.is_ascii_uppercase()).then(|| host.to_ascii_lowercase());
                    let at = position(lower_case.as_deref().unwrap_or(host));
                    last = (host.to_owned(), Some(at));
                    at
                }
            }
        };
        let of_rows = batch.rows().map(of_row).collect();
        Self { names, of_rows }
    }

    /// Returns the sources without some rows. The others move up, and all names stay.
    #[must_use]
    pub fn without(mut self, rows: &RowSet) -> Self {
        let mut row = 0..;
        self.of_rows.retain(|_| row.next().is_some_and(|row| !rows.contains(row)));
        self
    }

    /// Returns the bytes that the sources hold.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.capacity() + size_of::<String>()).sum();
        self.of_rows.capacity() * size_of::<u32>() + names
    }
}

/// Returns the URL of an id of `warc_id = "url_time"`, which has a time and a blank before it, and other ids whole.
pub(crate) fn address(id: &str) -> &str {
    let is_time = |time: &str| time.contains('T') && time.starts_with(|c: char| c.is_ascii_digit());
    id.split_once(' ').filter(|(time, _)| is_time(time)).map_or(id, |(_, url)| url)
}
