//! The names of filtered files below the folder of their night.

use std::collections::BTreeMap;

use nearprint_documents::{TextFormat, filtered_name};
use nearprint_fault::{Fault, Result};
use nearprint_storage::is_hidden;

/// Returns a name for each file: its path below `base`, the folder of the night's documents; or, if not all of the files
/// lie there, below the deepest folder that holds all of them. That of a WACZ is the name of a WARC file, and
/// that of a file of texts has the ending of its format. No part of a name is hidden: tables may have such files, and whoever
/// reads the output would pass over them.
///
/// # Errors
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if two files would have one name.
pub fn names(base: Option<&str>, urls: &[&str], texts: Option<TextFormat>) -> Result<Vec<String>> {
    let base = base.map(|base| base.trim_end_matches('/'));
    let all: Option<Vec<Vec<&str>>> = urls.iter().map(|url| parts_below(base?, url)).collect();
    let all = all.unwrap_or_else(|| without_common_folder(urls.iter().map(|url| parts(url)).collect()));
    let name = |parts: Vec<&str>| {
        let name = parts.into_iter().map(visible).collect::<Vec<String>>().join("/");
        texts.map_or_else(|| filtered_name(&name), |format| format.name_for(&name))
    };
    let names: Vec<String> = all.into_iter().map(name).collect();
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, url) in names.iter().zip(urls) {
        if let Some(other) = known.insert(name, url) {
            let reason = format!(
                "{other} and {url} would both be {name} in the output, where hidden names begin with an x: filter nights whose files have different names"
            );
            return Err(Fault::usage(reason));
        }
    }
    Ok(names)
}

/// Puts a letter before a part of a name that listings would pass over.
fn visible(part: &str) -> String {
    if is_hidden(part) { format!("x{part}") } else { part.to_owned() }
}

fn parts_below<'a>(base: &str, url: &'a str) -> Option<Vec<&'a str>> {
    url.strip_prefix(base)?.strip_prefix('/').map(parts)
}

/// Divides a path or URL at its slashes. Parts that would lead elsewhere are left out.
fn parts(url: &str) -> Vec<&str> {
    url.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect()
}

fn without_common_folder(all: Vec<Vec<&str>>) -> Vec<Vec<&str>> {
    let folder = |parts: &[&str]| parts.len().saturating_sub(1);
    let mut n_common = all.first().map_or(0, |parts| folder(parts));
    for parts in &all {
        let same = parts[..folder(parts)].iter().zip(&all[0]).take_while(|(a, b)| a == b).count();
        n_common = n_common.min(same);
    }
    all.into_iter().map(|parts| parts[n_common..].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::{TextFormat, names as named};

    fn names(base: Option<&str>, urls: &[&str]) -> nearprint_fault::Result<Vec<String>> {
        named(base, urls, None)
    }

    #[test]
    fn names_begin_below_the_night_or_below_the_common_folder() {
        let night = Some("crawl/dt=2026-11-20");
        let below = ["crawl/dt=2026-11-20/a.parquet", "crawl/dt=2026-11-20/sub/a.parquet"];
        assert_eq!(names(night, &below).unwrap(), ["a.parquet", "sub/a.parquet"]);
        assert_eq!(names(night, &below[1..]).unwrap(), ["sub/a.parquet"]);
        assert_eq!(names(None, &below[1..]).unwrap(), ["a.parquet"]);
        assert_eq!(names(night, &["/x/dt=1/a.jsonl", "/x/dt=2/a.jsonl"]).unwrap(), ["dt=1/a.jsonl", "dt=2/a.jsonl"]);
        assert_eq!(names(None, &["s3://b/k/a.jsonl", "s3://b/k/c.jsonl"]).unwrap(), ["a.jsonl", "c.jsonl"]);
        assert_eq!(names(None, &["/x/a.wacz", "/x/b.warc.gz"]).unwrap(), ["a.wacz.warc.gz", "b.warc.gz"]);
        let texts = named(None, &["/x/a.wacz", "/x/b.jsonl"], Some(TextFormat::Jsonl)).unwrap();
        assert_eq!(texts, ["a.wacz.jsonl", "b.jsonl"]);
        assert_eq!(names(None, &[]).unwrap(), [""; 0]);
    }

    #[test]
    fn no_part_of_a_name_is_hidden() {
        let night = Some("crawl/dt=2026-11-20");
        let urls = ["crawl/dt=2026-11-20/_c=1/y.parquet", "crawl/dt=2026-11-20/a/.z.parquet"];
        assert_eq!(names(night, &urls).unwrap(), ["x_c=1/y.parquet", "a/x.z.parquet"]);
        assert_eq!(names(Some("_crawl"), &["_crawl/a.parquet"]).unwrap(), ["a.parquet"]);
        assert!(names(None, &["a/_b.parquet", "a/x_b.parquet"]).is_err());
    }

    #[test]
    fn no_name_leads_out_of_the_folder_of_the_night() {
        let urls = ["../a/../b/x.parquet", "/c/y.parquet"];
        assert_eq!(names(Some("../a"), &urls).unwrap(), ["a/b/x.parquet", "c/y.parquet"]);
        assert!(names(None, &["a/./x.parquet", "a/x.parquet"]).is_err());
    }
}
