//! Ids of a store that are like one that it does not have: other spellings of the same address, and slips of the hand.

use std::collections::BTreeSet;
use std::fmt::Write;

use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_parquet::schema::DOC_ID;
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_storage::Storage;
use nearprint_store::Store;

use crate::document::readable::readable;
use crate::published::dataset_files;

/// The most ids that are returned.
const MOST: usize = 3;
/// The most other spellings that are looked for.
const MOST_SPELLINGS: usize = 64;
/// The newest nights whose decisions are looked at for slips of the hand.
const NIGHTS: usize = 3;
/// The most letters in which an id differs from one that was meant, and the shortest id that has such slips.
const SLIPS: usize = 2;
const SHORTEST: usize = 6;

/// Returns ids that the store has, and that may have been meant by another one, the likeliest first.
///
/// # Errors
/// A file of the store is damaged or cannot be read.
pub async fn near_ids(storage: &Storage, store: &Store, id: &str) -> Result<Vec<String>> {
    let spellings = spellings(id);
    let wanted: Vec<&str> = spellings.iter().map(String::as_str).collect();
    let there: BTreeSet<String> = store.states(&wanted).await?.into_iter().map(|state| state.id).collect();
    let mut near: Vec<String> = spellings.into_iter().filter(|spelling| there.contains(spelling)).collect();
    if near.is_empty() {
        near = slips(storage, store, id).await?;
    }
    near.truncate(MOST);
    Ok(near)
}

/// Returns ids with few other letters that stand near the id in the order of ids. A slip at the beginning of an id is not
/// found there.
async fn slips(storage: &Storage, store: &Store, id: &str) -> Result<Vec<String>> {
    let mut found: BTreeSet<(usize, String)> = BTreeSet::new();
    if id.chars().count() < SHORTEST {
        return Ok(Vec::new());
    }
    for night in store.nights().iter().rev().take(NIGHTS) {
        // Results that cannot be read give no hint.
        let Ok(files) = readable(dataset_files(storage, store, night, "decisions").await)? else { continue };
        for file in files {
            let parquet = ParquetFile::open(file).await?;
            let Some(read) = parquet.around(DOC_ID, id, &[DOC_ID]) else { continue };
            let mut batches = parquet.stream(read)?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                let ids = columns.strings(DOC_ID)?.iter().flatten();
                let slips = ids.map(|other| (strsim::osa_distance(id, other), other)).filter(|(n, _)| *n <= SLIPS);
                found.extend(slips.map(|(n, other)| (n, other.to_owned())));
            }
        }
    }
    Ok(found.into_iter().map(|(_, id)| id).collect())
}

/// A way to write an address otherwise. `None` if it changes nothing.
type Rule = fn(&str) -> Option<String>;

/// The ways in which the same page is written, the usual ones first.
const RULES: [Rule; 10] =
    [slash, scheme, www, trimmed, lower_host, without_fragment, decoded, encoded, lower, without_query];

/// Returns other spellings of an address, without itself: first those of one rule, then those of several.
fn spellings(id: &str) -> Vec<String> {
    let mut all = vec![id.to_owned()];
    let mut at = 0;
    while at < all.len() && all.len() <= MOST_SPELLINGS {
        let of_one: Vec<String> = RULES.iter().filter_map(|rule| rule(&all[at])).collect();
        for spelling in of_one {
            if !spelling.is_empty() && !all.contains(&spelling) {
                all.push(spelling);
            }
        }
        at += 1;
    }
    all.remove(0);
    all.truncate(MOST_SPELLINGS);
    all
}

fn changed(id: &str, other: String) -> Option<String> {
    (other != id).then_some(other)
}

fn slash(id: &str) -> Option<String> {
    Some(id.strip_suffix('/').map_or_else(|| format!("{id}/"), str::to_owned))
}

fn scheme(id: &str) -> Option<String> {
    match id.split_once("://") {
        Some(("http", rest)) => Some(format!("https://{rest}")),
        Some(("https", rest)) => Some(format!("http://{rest}")),
        Some(_) => None,
        None => id.contains('.').then(|| format!("https://{id}")),
    }
}

fn www(id: &str) -> Option<String> {
    let (scheme, rest) = id.split_once("://")?;
    let rest = rest.strip_prefix("www.").map_or_else(|| format!("www.{rest}"), str::to_owned);
    Some(format!("{scheme}://{rest}"))
}

fn trimmed(id: &str) -> Option<String> {
    changed(id, id.trim().to_owned())
}

fn lower_host(id: &str) -> Option<String> {
    let (scheme, rest) = id.split_once("://")?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    changed(id, format!("{}://{}{path}", scheme.to_lowercase(), host.to_lowercase()))
}

fn lower(id: &str) -> Option<String> {
    changed(id, id.to_lowercase())
}

fn without_fragment(id: &str) -> Option<String> {
    id.split_once('#').map(|(before, _)| before.to_owned())
}

fn without_query(id: &str) -> Option<String> {
    id.split_once('?').map(|(before, _)| before.to_owned())
}

/// Writes the characters for which `%` and two hex digits stand, if they are text.
fn decoded(id: &str) -> Option<String> {
    let bytes = id.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| id.get(at + 1..at + 3)).flatten();
        let digits = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok().and_then(|text| changed(id, text))
}

/// Writes blanks and characters beyond ASCII as `%` and two hex digits.
fn encoded(id: &str) -> Option<String> {
    let mut out = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_graphic() {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    changed(id, out)
}

#[cfg(test)]
mod tests {
    use super::spellings;

    #[test]
    fn the_usual_slips_are_among_the_other_spellings_of_an_address() {
        for (typed, meant) in [
            ("https://example.org/a", "https://example.org/a/"),
            ("http://example.org/a", "https://www.example.org/a/"),
            ("example.org/a", "http://example.org/a"),
            ("https://Example.org/A", "https://example.org/A"),
            ("https://example.org/%E6%96%87", "https://example.org/文"),
            ("https://example.org/文", "https://example.org/%E6%96%87"),
            ("https://example.org/a?x=1#top", "https://example.org/a"),
            (" https://example.org/a ", "https://example.org/a"),
        ] {
            assert!(spellings(typed).contains(&meant.to_owned()), "{typed}: {meant}");
        }
        assert!(spellings("").len() <= 1 && spellings("%").iter().all(|spelling| !spelling.is_empty()));
    }
}
