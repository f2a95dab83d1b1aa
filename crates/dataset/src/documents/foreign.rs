//! Formats that are not read, and how to convert them. They are known by the ending of a file's name, and where the
//! format has them, by the file's first bytes.

use nearprint_storage::InputFile;

/// A format that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    name: &'static str,
    endings: &'static [&'static str],
    /// The bytes with which a file may begin.
    begins: &'static [&'static [u8]],
    /// The name and the ending of the format that it can be converted to.
    into: (&'static str, &'static str),
    /// A command that writes a file `NEW` in that format from a file `OLD`.
    command: &'static str,
}

const PARQUET: (&str, &str) = ("Parquet", "parquet");

const FOREIGN: [Foreign; 5] = [
    Foreign {
        name: "ARC",
        endings: &["arc"],
        begins: &[b"filedesc:"],
        into: ("WARC", "warc.gz"),
        command: "warcio recompress OLD NEW",
    },
    Foreign {
        name: "CSV",
        endings: &["csv", "tsv"],
        begins: &[],
        into: PARQUET,
        command: "duckdb -c \"COPY (FROM read_csv('OLD')) TO 'NEW'\"",
    },
    Foreign {
        name: "Arrow IPC (Feather)",
        endings: &["arrow", "feather", "ipc"],
        begins: &[b"ARROW1", b"FEA1"],
        into: PARQUET,
        command: "python3 -c \"import pyarrow.feather as f, pyarrow.parquet as p; p.write_table(f.read_table('OLD'), 'NEW')\"",
    },
    Foreign {
        name: "Avro",
        endings: &["avro"],
        begins: &[b"Obj\x01"],
        into: PARQUET,
        command: "duckdb -c \"INSTALL avro; LOAD avro; COPY (FROM read_avro('OLD')) TO 'NEW'\"",
    },
    Foreign {
        name: "ORC",
        endings: &["orc"],
        begins: &[b"ORC"],
        into: PARQUET,
        command: "python3 -c \"import pyarrow.orc as o, pyarrow.parquet as p; p.write_table(o.read_table('OLD'), 'NEW')\"",
    },
];

/// The number of bytes that tell the formats apart.
pub const BEGINNING: usize = 9;

/// Returns the format that is not read and that a file has according to its name.
pub fn by_name(url: &str) -> Option<Foreign> {
    let name = url.rsplit('/').next().unwrap_or(url).to_ascii_lowercase();
    let plain = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let (_, ending) = plain.rsplit_once('.')?;
    FOREIGN.into_iter().find(|format| format.endings.contains(&ending))
}

/// Returns the format that is not read and that begins with these bytes.
pub fn by_beginning(bytes: &[u8]) -> Option<Foreign> {
    FOREIGN.into_iter().find(|format| format.begins.iter().any(|begins| bytes.starts_with(begins)))
}

/// Returns the format that is not read and that a file has according to its first bytes. If these cannot be read, that
/// is for others to say.
pub async fn by_content(file: &InputFile) -> Option<Foreign> {
    let bytes = file.read_range(0..file.size.min(BEGINNING as u64)).await.ok()?;
    by_beginning(&bytes)
}

impl Foreign {
    /// Returns the reason why a file of this format is refused, and the remedy.
    pub fn reason(self, url: &str) -> String {
        let stem = url.rsplit_once('.').map_or(url, |(stem, _)| stem);
        let own = |ending: &&str| stem.strip_suffix(ending)?.strip_suffix('.');
        let stem = self.endings.iter().find_map(own).unwrap_or(stem);
        let (format, ending) = self.into;
        let command = self.command.replace("NEW", &format!("{stem}.{ending}")).replace("OLD", url);
        format!("it is {}, which is not read: write it as {format}, for example with: {command}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::{by_beginning, by_name};

    #[test]
    fn foreign_formats_are_known_by_their_endings_and_first_bytes() {
        assert_eq!(by_name("s3://b/dt=2026-11-20/PAGES.CSV.gz").map(|f| f.name), Some("CSV"));
        assert_eq!(by_name("a.csv/part-0.parquet"), None);
        assert_eq!(by_beginning(b"Obj\x01\x04").map(|f| f.name), Some("Avro"));
        assert_eq!(by_beginning(b"PAR1"), None);
    }

    #[test]
    fn the_remedy_names_the_file_and_its_place_as_parquet() {
        let said = by_name("crawl/pages.csv.gz").unwrap().reason("crawl/pages.csv.gz");
        assert!(
            said.ends_with("duckdb -c \"COPY (FROM read_csv('crawl/pages.csv.gz')) TO 'crawl/pages.parquet'\""),
            "{said}"
        );
        let said = by_name("old/a.arc.gz").unwrap().reason("old/a.arc.gz");
        assert!(
            said.ends_with("write it as WARC, for example with: warcio recompress old/a.arc.gz old/a.warc.gz"),
            "{said}"
        );
    }
}
