//! Values that are names of local files.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

use crate::place::{Given, local, place};

pub fn local_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(local)
}

/// Accepts only the name of a JSON file, so that a slip on the command line does not overwrite documents.
pub fn named_json() -> impl TypedValueParser<Value = PathBuf> {
    local_path().try_map(|path| with_extension(path, "json"))
}

/// Accepts only the name of a file that node_exporter reads.
pub fn named_prom() -> impl TypedValueParser<Value = PathBuf> {
    local_path().try_map(|path| with_extension(path, "prom"))
}

fn with_extension(path: PathBuf, extension: &str) -> Result<PathBuf, String> {
    refuse_other_ending(&path, extension).map(|()| path)
}

/// Refuses a name that does not end in a dot and `extension`.
pub fn refuse_other_ending(path: &Path, extension: &str) -> Result<(), String> {
    match path.extension() {
        Some(end) if end == extension => Ok(()),
        _ => Err(format!("name a file that ends in .{extension}")),
    }
}

/// Accepts only the name of an SVG file, so that a slip on the command line does not overwrite documents.
pub fn named_svg(text: &str) -> Result<PathBuf, String> {
    ending(text, ".svg").map(|file| PathBuf::from(file.as_typed()))
}

pub fn named_csv(text: &str) -> Result<Given, String> {
    ending(text, ".csv")
}

pub fn named_html(text: &str) -> Result<Given, String> {
    ending(text, ".html")
}

fn ending(text: &str, end: &str) -> Result<Given, String> {
    let file = place(text)?;
    if text.ends_with(end) { Ok(file) } else { Err(format!("name a file that ends in {end}")) }
}
