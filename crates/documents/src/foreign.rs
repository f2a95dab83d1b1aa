//! Formats that are not read, and how to convert them. They are known by the ending of a file's name, and where the
//! format has them, by the file's first bytes.

use nearprint_fault::Result;
use nearprint_storage::InputFile;
use nearprint_warc::Packing;

use super::file_name::ending;

/// A format that is not read, or a name that does not say the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    name: &'static str,
    endings: &'static [&'static str],
    /// The bytes with which a file may begin.
    begins: &'static [&'static [u8]],
    /// What to do with a file, and the ending of what comes of it.
    remedy: (&'static str, &'static str),
    /// A command that makes `NEW` from a file `OLD`.
    command: &'static str,
}

const PARQUET: (&str, &str) = ("write it as Parquet", "parquet");
/// A packing: of what is in it, the ending before tells.
const PACKED: (&str, &str) = ("pack it as gzip", "gz");
const UNPACKED: (&str, &str) = ("unpack it", "unpacked");
const RENAME: &str = "mv OLD NEW";

const FOREIGN: [Foreign; 16] = [
    Foreign {
        name: "ARC",
        endings: &["arc"],
        begins: &[b"filedesc:"],
        remedy: ("write it as WARC", "warc.gz"),
        command: "warcio recompress OLD NEW",
    },
    Foreign {
        name: "CSV",
        endings: &["csv", "tsv"],
        begins: &[],
        remedy: PARQUET,
        command: "duckdb -c \"COPY (FROM read_csv('OLD')) TO 'NEW'\"",
    },
    Foreign {
        name: "Arrow IPC (Feather)",
        endings: &["arrow", "feather", "ipc"],
        begins: &[b"ARROW1", b"FEA1"],
        remedy: PARQUET,
        command: "python3 -c \"import pyarrow.feather as f, pyarrow.parquet as p; p.write_table(f.read_table('OLD'), 'NEW')\"",
    },
    Foreign {
        name: "Avro",
        endings: &["avro"],
        begins: &[b"Obj\x01"],
        remedy: PARQUET,
        command: "duckdb -c \"INSTALL avro; LOAD avro; COPY (FROM read_avro('OLD')) TO 'NEW'\"",
    },
    Foreign {
        name: "ORC",
        endings: &["orc"],
        begins: &[b"ORC"],
        remedy: PARQUET,
        command: "python3 -c \"import pyarrow.orc as o, pyarrow.parquet as p; p.write_table(o.read_table('OLD'), 'NEW')\"",
    },
    Foreign {
        name: "bzip2",
        endings: &["bz2"],
        // The longer ones are no beginnings of notes.
        begins: &[
            b"BZh",
            b"BZh11AY&SY",
            b"BZh21AY&SY",
            b"BZh31AY&SY",
            b"BZh41AY&SY",
            b"BZh51AY&SY",
            b"BZh61AY&SY",
            b"BZh71AY&SY",
            b"BZh81AY&SY",
            b"BZh91AY&SY",
        ],
        remedy: PACKED,
        command: "bzcat OLD | gzip > NEW",
    },
    Foreign {
        name: "XZ",
        endings: &["xz", "lzma"],
        begins: &[b"\xfd7zXZ"],
        remedy: PACKED,
        command: "xzcat OLD | gzip > NEW",
    },
    Foreign {
        name: "LZ4",
        endings: &["lz4"],
        begins: &[b"\x04\x22\x4d\x18"],
        remedy: PACKED,
        command: "lz4 -dc OLD | gzip > NEW",
    },
    Foreign { name: "Brotli", endings: &["br"], begins: &[], remedy: PACKED, command: "brotli -dc OLD | gzip > NEW" },
    Foreign {
        name: "Snappy",
        endings: &["snappy", "sz"],
        begins: &[b"\xff\x06\x00\x00sNaPpY"],
        remedy: PACKED,
        command: "snzip -dc OLD | gzip > NEW",
    },
    Foreign { name: "a ZIP archive", endings: &["zip"], begins: &[], remedy: UNPACKED, command: "unzip OLD -d NEW" },
    Foreign {
        name: "a tar archive",
        endings: &["tar", "tgz", "tbz2", "txz"],
        begins: &[],
        remedy: UNPACKED,
        command: "mkdir NEW && tar -xf OLD -C NEW",
    },
    Foreign {
        name: "gzip by another name",
        endings: &["gzip"],
        begins: &[],
        remedy: ("rename it", "gz"),
        command: RENAME,
    },
    Foreign {
        name: "zstd by another name",
        endings: &["zstd"],
        begins: &[],
        remedy: ("rename it", "zst"),
        command: RENAME,
    },
    Foreign {
        name: "JSONL by another name",
        endings: &["jl", "jsonlines", "ldjson"],
        begins: &[],
        remedy: ("rename it", "jsonl"),
        command: RENAME,
    },
    UNNAMED_PARQUET,
];

/// Hive writes such files, whose names have no ending.
const UNNAMED_PARQUET: Foreign = Foreign {
    name: "Parquet by another name",
    endings: &["parq", "pq"],
    begins: &[],
    remedy: ("rename it", "parquet"),
    command: RENAME,
};

/// The number of bytes that tell the formats apart.
pub const BEGINNING: usize = 16;

/// Returns the format that is not read and that a file has according to its name.
pub fn by_name(url: &str) -> Option<Foreign> {
    let ending = ending(url)?;
    FOREIGN.into_iter().find(|format| format.endings.contains(&&*ending))
}

/// Returns the format of a file whose name has no ending. Notes may begin as the shorter beginnings do, which are left out.
pub fn by_long_beginning(bytes: &[u8]) -> Option<Foreign> {
    if bytes.starts_with(b"PAR1") { Some(UNNAMED_PARQUET) } else { beginning_with(bytes, 4) }
}

/// Returns the format of a file with this content, which may be text: text may begin as Parquet does, but does not end so too.
pub fn by_content(bytes: &[u8]) -> Option<Foreign> {
    let found = by_long_beginning(&bytes[..bytes.len().min(BEGINNING)])?;
    (found != UNNAMED_PARQUET || bytes.ends_with(b"PAR1")).then_some(found)
}

/// Returns the format that is not read and that begins with these bytes.
pub fn by_beginning(bytes: &[u8]) -> Option<Foreign> {
    beginning_with(bytes, 1)
}

fn beginning_with(bytes: &[u8], least: usize) -> Option<Foreign> {
    let is_it = |begins: &&[u8]| begins.len() >= least && bytes.starts_with(begins);
    FOREIGN.into_iter().find(|format| format.begins.iter().any(&is_it))
}

/// Returns the first bytes of a file. If they cannot be read, there are none, and that is for others to say.
pub async fn beginning(file: &InputFile) -> Vec<u8> {
    read_beginning(file).await.unwrap_or_default()
}

/// Returns the first bytes of a file.
///
/// # Errors
/// The file cannot be read.
pub async fn read_beginning(file: &InputFile) -> Result<Vec<u8>> {
    Ok(file.read_range(0..file.size.min(BEGINNING as u64)).await?.to_vec())
}

/// Returns the reason why a file of the given size is refused that begins with these bytes: it is empty though its name
/// says that it is packed, it is packed in another way than its name says, or by zstd in a way that takes too much memory. `plain`
/// begins files that are not packed, behind a byte order mark and white space.
pub fn mispacked(url: &str, size: u64, beginning: &[u8], plain: &[u8]) -> Option<String> {
    let (named, stem) = Packing::split(url);
    if size == 0 && named != Packing::Plain {
        return Some(format!("it is empty, and so no {}: fetch it again", name_of(named)));
    }
    let packed = Packing::PACKED.into_iter().find(|packing| beginning.starts_with(packing.magic()));
    if packed == Some(Packing::Zstd) && named == Packing::Zstd {
        let window = zstd_window(beginning).filter(|&window| window > MAX_ZSTD_WINDOW)?;
        let [window, most] = [window, MAX_ZSTD_WINDOW].map(|bytes| bytes >> 20);
        return Some(format!(
            "its zstd has a window of {window} MiB, and {most} MiB is the largest that is read: pack it anew, zstd -dc --long=31 OLD | zstd > NEW"
        ));
    }
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    let is_plain = text.starts_with(plain);
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

/// The largest window of zstd that is read. That of `zstd --long` is as large.
const MAX_ZSTD_WINDOW: u64 = 128 << 20;

/// Returns the bytes that the first frame of a file asks a reader to hold (RFC 8878, section 3.1.1.1).
fn zstd_window(beginning: &[u8]) -> Option<u64> {
    let header = beginning.strip_prefix(Packing::Zstd.magic())?;
    let (&descriptor, rest) = header.split_first()?;
    if descriptor & 0x20 == 0 {
        let &window = rest.first()?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // A frame of one segment is held whole. Its size follows the number of its dictionary.
    let rest = rest.get([0, 1, 2, 4][usize::from(descriptor & 3)]..)?;
    let size = rest.get(..[1, 2, 4, 8][usize::from(descriptor >> 6)])?;
    let number = size.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    Some(if size.len() == 2 { number + 256 } else { number })
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
    /// Returns whether it is a packing, in which there may be anything.
    pub fn is_packing(self) -> bool {
        self.remedy == PACKED
    }

    /// Returns whether it is ARC, in whose files there may be pages like those of WARC files.
    pub fn is_arc(self) -> bool {
        self.name == "ARC"
    }

    /// Returns the reason why a packed file is refused that holds this format where a page should be.
    pub fn within(self) -> String {
        let name = self.name.strip_suffix(" by another name").unwrap_or(self.name);
        format!("it holds {name}, and no page: unpack it, and give the page")
    }

    /// Returns the reason why a file of this format is refused, and the remedy.
    pub fn reason(self, url: &str) -> String {
        let (packing, plain) = Packing::split(url);
        let is_named = ending(url).is_some_and(|ending| self.endings.contains(&&*ending));
        let bare = plain.rsplit_once('.').filter(|(_, name)| !name.contains('/')).map_or(plain, |(stem, _)| stem);
        // If the name does not say the packing, its ending is that of what is in it.
        let stem = if self.is_packing() && !is_named { plain } else { bare };
        let (remedy, new_ending) = self.remedy;
        let mut new = format!("{stem}.{new_ending}");
        let mut remedy = remedy.to_owned();
        if self.is_packing() && ending(stem).is_none() {
            remedy += " under the name of its format";
            new = format!("{stem}.jsonl.{new_ending}");
        }
        if self.command == RENAME && packing != Packing::Plain {
            new = format!("{new}.{}", packing.ending());
        }
        if self.remedy == PACKED && ending(stem).as_deref() == Some("parquet") {
            // Parquet is packed within.
            let new = if is_named { stem.to_owned() } else { format!("{bare}.unpacked.parquet") };
            let command =
                self.command.replace(" | gzip", "").replace("NEW", &quoted(&new)).replace("OLD", &quoted(url));
            return format!("it is {}, which is not read: unpack it, and move it away: {command}", self.name);
        }
        let away = if self.command == RENAME { "" } else { ", and move it away" };
        let is_quoted = self.command.contains("'OLD'");
        if is_quoted && url.contains(['\'', '"', '$', '`', '\\']) {
            return format!("it is {}, which is not read: {remedy}{away}", self.name);
        }
        let path = |path: &str| if is_quoted { path.to_owned() } else { quoted(path) };
        let command = self.command.replace("NEW", &path(&new)).replace("OLD", &path(url));
        format!("it is {}, which is not read: {remedy}{away}, for example with: {command}", self.name)
    }
}

/// Returns a path as a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/.-_=:%+,@".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
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
        for name in
            ["a.jsonl.bz2", "a.warc.xz", "a.jl.gz", "a.pq", "a.tar.gz", "a.zip", "a.parquet.snappy", "a.JSONL.gzip"]
        {
            assert!(by_name(name).is_some(), "{name}");
        }
        for name in ["README.md", "part-0.snappy.parquet", "a.txt.gz", "a"] {
            assert_eq!(by_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_file_whose_name_says_another_packing_is_to_be_renamed() {
        for (url, beginning, expected) in [
            ("a.warc.gz", &b"WARC/1.0\r\n"[..], "it is not gzip (it begins with \"WARC/1.0\"): rename it to a.warc"),
            ("a.warc", b"\x1f\x8b\x08\x00", "it is gzip: rename it to a.warc.gz"),
            ("a.warc.gz", b"\x28\xb5\x2f\xfd", "it is not gzip but zstd: rename it to a.warc.zst"),
            ("a.warc.zst", b"", "it is empty, and so no zstd: fetch it again"),
            (
                "a.warc.zst",
                b"\x28\xb5\x2f\xfd\x00\xa8",
                "its zstd has a window of 2048 MiB, and 128 MiB is the largest that is read: pack it anew, zstd -dc --long=31 OLD | zstd > NEW",
            ),
        ] {
            let size = beginning.len() as u64;
            assert_eq!(mispacked(url, size, beginning, b"WARC/").as_deref(), Some(expected));
        }
        // A window of 128 MiB, and a frame of one segment that has 2 bytes.
        for sound in [b"\x28\xb5\x2f\xfd\x00\x88", b"\x28\xb5\x2f\xfd\x20\x02"] {
            assert_eq!(mispacked("a.warc.zst", 6, sound, b"WARC/"), None, "{sound:?}");
        }
        for (url, beginning) in [("a.warc", &b""[..]), ("a.warc", b"WARC/1.0"), ("a.warc.gz", b"<!DOCTYPE html>")] {
            assert_eq!(mispacked(url, beginning.len() as u64, beginning, b"WARC/"), None, "{url}");
        }
        let behind_a_mark = mispacked("a.html.zst", 9, b"\xef\xbb\xbf\n <html>", b"<").unwrap_or_default();
        assert!(behind_a_mark.ends_with("rename it to a.html"), "{behind_a_mark}");
    }

    #[test]
    fn the_remedy_names_the_file_and_its_place_as_parquet() {
        let said = by_name("crawl/pages.csv.gz").unwrap().reason("crawl/pages.csv.gz");
        assert!(
            said.ends_with("duckdb -c \"COPY (FROM read_csv('crawl/pages.csv.gz')) TO 'crawl/pages.parquet'\""),
            "{said}"
        );
        let said = by_name("x y/a.csv").unwrap().reason("x y/a.csv");
        assert!(said.ends_with("duckdb -c \"COPY (FROM read_csv('x y/a.csv')) TO 'x y/a.parquet'\""), "{said}");
        let said = by_name("it's/a.feather").unwrap().reason("it's/a.feather");
        assert!(said.ends_with("and move it away"), "no command is better than one that does not run: {said}");
        for (url, new) in [
            ("a.d/b.jl.gz", "a.d/b.jsonl.gz"),
            ("b.jsonl.bz2", "b.jsonl.gz"),
            ("b.html.gzip", "b.html.gz"),
            (
                "dt=1.2/pages.bz2",
                "under the name of its format, and move it away, for example with: bzcat dt=1.2/pages.bz2 | gzip > dt=1.2/pages.jsonl.gz",
            ),
            ("b.parquet.bz2", "bzcat b.parquet.bz2 > b.parquet"),
        ] {
            let said = by_name(url).unwrap().reason(url);
            assert!(said.ends_with(new), "{said}");
        }
        // What is packed by another packing than its name says keeps the ending of its format.
        for (url, new) in [
            ("b.jsonl", "bzcat b.jsonl | gzip > b.jsonl.gz"),
            ("b.html", "bzcat b.html | gzip > b.html.gz"),
            ("b.parquet", "bzcat b.parquet > b.unpacked.parquet"),
        ] {
            let said = by_beginning(b"BZh91AY&SY").unwrap().reason(url);
            assert!(said.ends_with(new), "{said}");
        }
        let said = by_name("old/a.arc.gz").unwrap().reason("old/a.arc.gz");
        assert!(
            said.ends_with(
                "write it as WARC, and move it away, for example with: warcio recompress old/a.arc.gz old/a.warc.gz"
            ),
            "{said}"
        );
    }
}
