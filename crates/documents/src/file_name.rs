//! The format of a file, by its name.

use nearprint_warc::Packing;

/// Returns the ending of a file's name in lower case, before the one that says how the file is packed.
pub fn ending(url: &str) -> Option<String> {
    let (_, name) = Packing::split(url.rsplit('/').next().unwrap_or(url));
    name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase())
}
