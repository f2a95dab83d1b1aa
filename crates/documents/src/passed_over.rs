//! Files that are passed over by their names, and hold documents all the same.

use nearprint_fault::Result;
use nearprint_storage::InputFile;

use super::file_name::ending;
use super::foreign::{Foreign, by_long_beginning, by_name, read_beginning};
use super::formats::is_document_name;

/// Returns the format that is not read and that a file has, by its name, or by its first bytes if its name has no ending.
///
/// # Errors
/// The file has no ending, and cannot be read: nobody knows what it holds.
pub async fn foreign(file: &InputFile) -> Result<Option<Foreign>> {
    match ending(&file.url) {
        Some(_) => Ok(by_names(&file.url)),
        None => Ok(by_long_beginning(&read_beginning(file).await?)),
    }
}

/// A file that is packed in another way than those that are read has what its ending before says, or may have anything.
fn by_names(url: &str) -> Option<Foreign> {
    let format = by_name(url)?;
    let stem = url.rsplit_once('.').filter(|_| format.is_packing()).map(|(stem, _)| stem);
    match stem {
        Some(stem) if ending(stem).is_some() && !is_document_name(stem) => by_names(stem),
        _ => Some(format),
    }
}

#[cfg(test)]
mod tests {
    use super::by_names;

    #[test]
    fn of_packed_files_those_count_that_may_hold_documents() {
        for url in ["a.jsonl.bz2", "a.warc.xz", "part-0.snappy", "a.parquet.bz2", "a.csv.xz", "a.tar.xz", "a.zip"] {
            assert!(by_names(url).is_some(), "{url}");
        }
        for url in ["crawl.log.xz", "notes.txt.bz2", "README.md"] {
            assert_eq!(by_names(url), None, "{url}");
        }
        assert!(by_names("p.tar.xz").unwrap().reason("p.tar.xz").contains("tar -xf p.tar.xz"));
    }
}
