//! Rows of documents from web pages, and the columns that they have.

use std::sync::Arc;

use arrow::array::builder::BinaryViewBuilder;
use arrow::array::{ArrayRef, Int64Array, LargeStringArray, StringArray};
use arrow::datatypes::DataType;
use nearprint_fault::Result;
use nearprint_parquet::{MAX_VALUE_BYTES, missing_column, of_arrow};

use super::batch::{DocumentBatch, DocumentColumns, ReadContext, RevisitColumns};
use super::keep_column::{TIME, to_keep_type};
use crate::quarantine::BadReason;

pub const URL: &str = "url";
pub const HOST: &str = "host";
/// The column of the time at which a page was fetched, in microseconds since 1970 in UTC.
pub const FETCH_TIME: &str = "fetch_time";
const CONTENT_TYPE: &str = "content_type";
/// The column of the title that a page gives itself.
pub const TITLE: &str = "title";

/// A web page.
#[derive(Debug, Default)]
pub struct WebRow {
    /// The number of the row.
    pub row: u64,
    pub id: Option<String>,
    pub url: Option<String>,
    /// The time at which it was fetched, in microseconds since 1970 in UTC.
    pub fetch_time: Option<i64>,
    pub content_type: Option<String>,
    /// Its title, if that is wanted.
    pub title: Option<String>,
    pub text: Option<Vec<u8>>,
    /// The record that it refers to, if it is a revisit.
    pub revisit: Option<RevisitTarget>,
    pub fault: Option<BadReason>,
}

/// The record whose text a revisit has.
#[derive(Debug)]
pub struct RevisitTarget {
    /// The id of its document.
    pub id: String,
    /// The time at which it was fetched, in microseconds since 1970 in UTC.
    pub time: Option<i64>,
}

/// Returns the types of the columns of the keep order. The time at which a page was fetched tells how new it is, whatever the
/// column is named that tells it elsewhere.
///
/// # Errors
/// Web pages have no such column.
pub fn column_types(url: &str, columns: &DocumentColumns) -> Result<Vec<(String, DataType)>> {
    let type_of = |column: &String| match column.as_str() {
        URL | HOST | CONTENT_TYPE | TITLE => Ok((column.clone(), DataType::LargeUtf8)),
        FETCH_TIME => Ok((column.clone(), TIME)),
        _ => Err(missing_column(
            url,
            column,
            None,
            [URL, HOST, FETCH_TIME, CONTENT_TYPE, TITLE].map(str::to_owned).to_vec(),
            "change keep or source_column",
        )),
    };
    columns.keep.iter().map(type_of).collect()
}

/// Returns whether the titles of pages are wanted.
pub fn wants_title(columns: &DocumentColumns) -> bool {
    columns.keep.iter().any(|column| column == TITLE)
}

/// Makes a batch of some pages.
///
/// # Errors
/// A column of the keep order has another type in the night.
pub fn to_documents(
    url: &str,
    mut rows: Vec<WebRow>,
    columns: &DocumentColumns,
    keep_types: &[DataType],
    context: &ReadContext,
) -> Result<DocumentBatch> {
    for row in &mut rows {
        if row.id.as_ref().is_some_and(|id| id.len() > MAX_VALUE_BYTES) {
            row.id = None;
            row.fault = row.fault.or(Some(BadReason::TooLarge));
        }
        if row.text.as_ref().is_some_and(|text| text.len() as u64 > context.max_doc_bytes) {
            row.text = None;
            row.fault = row.fault.or(Some(BadReason::TooLarge));
        }
    }
    debug_assert_eq!(columns.kept().count(), keep_types.len(), "each column that is kept has a type");
    debug_assert!(
        rows.is_sorted_by(|a, b| a.row < b.row),
        "rows keep the order of their file, and each has its own number"
    );
    let mut faults: Vec<Option<BadReason>> = rows.iter().map(|row| row.fault).collect();
    let keep = columns.keep.iter().zip(keep_types).map(|(column, data_type)| {
        let array = keep_array(&rows, column);
        to_keep_type(&array, data_type, &mut faults).map_err(|error| of_arrow(url, error))
    });
    let keep = keep.collect::<Result<Vec<_>>>()?;
    let newest_by = fetch_times(&rows);
    let revisits = rows.iter().any(|row| row.revisit.is_some()).then(|| revisit_columns(&rows));
    let mut texts = BinaryViewBuilder::with_capacity(rows.len());
    rows.iter_mut().for_each(|row| texts.append_option(row.text.take()));
    Ok(DocumentBatch {
        ids: rows.iter().map(|row| row.id.as_deref()).collect::<StringArray>(),
        texts: texts.finish(),
        keep,
        newest_by,
        rows: rows.iter().map(|row| row.row).collect(),
        faults,
        revisits,
        max_doc_bytes: context.max_doc_bytes,
    })
}

/// The microseconds of a second. Crawlers may write the time of a record more exactly in itself than where they refer to it.
const SECOND: i64 = 1_000_000;

fn revisit_columns(rows: &[WebRow]) -> RevisitColumns {
    let targets = || rows.iter().map(|row| row.revisit.as_ref());
    let starts = || targets().map(|target| Some(target?.time?.div_euclid(SECOND) * SECOND));
    let ends = starts().map(|start| start.map(|start| start + SECOND - 1));
    RevisitColumns {
        of: targets().map(|target| target.map(|target| target.id.as_str())).collect(),
        newest_by: [starts().collect(), ends.collect()],
    }
}

fn fetch_times(rows: &[WebRow]) -> Int64Array {
    rows.iter().map(|row| row.fetch_time).collect()
}

fn keep_array(rows: &[WebRow], column: &str) -> ArrayRef {
    if column == FETCH_TIME {
        return Arc::new(fetch_times(rows));
    }
    let rows = rows.iter();
    match column {
        HOST => {
            let host = |row: &WebRow| row.url.as_deref().and_then(url_host).map(str::to_ascii_lowercase);
            Arc::new(rows.map(host).collect::<LargeStringArray>())
        }
        URL => Arc::new(rows.map(|row| row.url.as_deref()).collect::<LargeStringArray>()),
        TITLE => Arc::new(rows.map(|row| row.title.as_deref()).collect::<LargeStringArray>()),
        _ => Arc::new(rows.map(|row| row.content_type.as_deref()).collect::<LargeStringArray>()),
    }
}

/// Returns the host of a URL as the URL has it, without user, password and port. The case of a host does not matter.
///
/// ```
/// use nearprint_documents::url_host;
///
/// assert_eq!(url_host("https://user@Example.org:8080/a"), Some("Example.org"));
/// assert_eq!(url_host("mailto:user@example.org"), None);
/// ```
#[must_use]
pub fn url_host(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let authority = rest.split(['/', '?', '#']).next()?;
    let address = authority.rsplit('@').next()?;
    let host = match address.find(']') {
        Some(at) => &address[..=at],
        None => address.split(':').next()?,
    };
    (is_scheme && !host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::url_host;

    #[test]
    fn a_host_has_neither_user_nor_port() {
        for (url, expected) in [
            ("https://Example.ORG/a?b", Some("Example.ORG")),
            ("http://user:pw@a.b:8080", Some("a.b")),
            ("http://[::1]:80/", Some("[::1]")),
            ("dns:a.b", None),
            ("http:///x", None),
            ("a title: see http://a.b", None),
        ] {
            assert_eq!(url_host(url), expected, "{url}");
        }
    }
}
