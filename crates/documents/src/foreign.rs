//! Formats that are not read, and how to convert them. They are known by the ending of a file's name, and where the
//! format has them, by the file's first bytes.

use nearprint_storage::InputFile;
use nearprint_warc::Packing;

use super::file_name::ending;

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
pub const BEGINNING: usize = 16;

/// Returns the format that is not read and that a file has according to its name.
pub fn by_name(url: &str) -> Option<Foreign> {
    let ending = ending(url)?;
    FOREIGN.into_iter().find(|format| format.endings.contains(&&*ending))
}

/// Returns the format that is not read and that begins with these bytes.
pub fn by_beginning(bytes: &[u8]) -> Option<Foreign> {
    FOREIGN.into_iter().find(|format| format.begins.iter().any(|begins| bytes.starts_with(begins)))
}

/// Returns the first bytes of a file. If they cannot be read, there are none, and that is for others to say.
pub async fn beginning(file: &InputFile) -> Vec<u8> {
    let bytes = file.read_range(0..file.size.min(BEGINNING as u64)).await;
    bytes.map(|bytes| bytes.to_vec()).unwrap_or_default()
}

/// Returns the reason why a file of the given size is refused that begins with these bytes: it is empty though its name
/// says that it is packed, or it is packed in another way than its name says. `plain` begins files that are not packed.
pub fn mispacked(url: &str, size: u64, beginning: &[u8], plain: &[u8]) -> Option<String> {
    let (named, stem) = Packing::split(url);
    if size == 0 && named != Packing::Plain {
        return Some(format!("it is empty, and so no {}: fetch it again", name_of(named)));
    }
    let packed = Packing::PACKED.into_iter().find(|packing| beginning.starts_with(packing.magic()));
    let is_plain = !plain.is_empty() && beginning.starts_with(plain);
    let (found, name) = match packed {
        Some(packing) => (packing, format!("{stem}.{}", packing.ending())),
        None if is_plain => (Packing::Plain, stem.to_owned()),
        None => return None,
    };
    let says = match (named, found) {
        (Packing::Plain, _) => format!("it is {}", name_of(found)),
        (_, Packing::Plain) => format!("it is not {} (it begins with {})", name_of(named), shown(beginning)),
        _ => format!("it is not {} but {}", name_of(named), name_of(found)),
    };
    (named != found).then(|| format!("{says}: rename it to {name}"))
}

fn name_of(packing: Packing) -> &'static str {
    match packing {
        Packing::Plain => "plain",
        Packing::Gzip => "gzip",
        Packing::Zstd => "zstd",
    }
}

/// Returns the first bytes of a file for a message.
pub fn shown(beginning: &[u8]) -> String {
    // Of a beginning of line breaks alone, nothing is shown.
    let line = beginning.split(|byte| matches!(byte, b'\r' | b'\n')).find(|line| !line.is_empty()).unwrap_or_default();
    format!("\"{}\"", line.escape_ascii())
}

impl Foreign {
    /// Returns whether it is ARC, in whose files there may be pages like those of WARC files.
    pub fn is_arc(self) -> bool {
        self.name == "ARC"
    }

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
    use super::{by_beginning, by_name, mispacked};

    #[test]
    fn foreign_formats_are_known_by_their_endings_and_first_bytes() {
        assert_eq!(by_name("s3://b/dt=2026-11-20/PAGES.CSV.gz").map(|f| f.name), Some("CSV"));
        assert_eq!(by_name("a.csv/part-0.parquet"), None);
        assert_eq!(by_beginning(b"Obj\x01\x04").map(|f| f.name), Some("Avro"));
        assert_eq!(by_beginning(b"PAR1"), None);
    }

    #[test]
    fn a_file_whose_name_says_another_packing_is_to_be_renamed() {
        for (url, beginning, expected) in [
            ("a.warc.gz", &b"WARC/1.0\r\n"[..], "it is not gzip (it begins with \"WARC/1.0\"): rename it to a.warc"),
            ("a.warc", b"\x1f\x8b\x08\x00", "it is gzip: rename it to a.warc.gz"),
            ("a.warc.gz", b"\x28\xb5\x2f\xfd", "it is not gzip but zstd: rename it to a.warc.zst"),
            ("a.warc.zst", b"", "it is empty, and so no zstd: fetch it again"),
        ] {
            let size = beginning.len() as u64;
            assert_eq!(mispacked(url, size, beginning, b"WARC/").as_deref(), Some(expected));
        }
        for (url, beginning) in [("a.warc", &b""[..]), ("a.warc", b"WARC/1.0"), ("a.warc.gz", b"<!DOCTYPE html>")] {
            assert_eq!(mispacked(url, beginning.len() as u64, beginning, b"WARC/"), None, "{url}");
        }
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
