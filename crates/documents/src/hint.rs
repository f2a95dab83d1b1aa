//! The hint that an error about a missing column gives: which columns look like those that are meant.

use std::borrow::Cow;

use super::batch::DocumentColumns;

/// Names that columns of ids have, in lower case.
const IDS: [&str; 10] =
    ["id", "doc_id", "docid", "document_id", "page_id", "url", "uri", "uuid", "guid", "warc_record_id"];
/// Names that columns of texts have, in lower case.
const TEXTS: [&str; 11] = [
    "text",
    "content",
    "body",
    "raw_content",
    "page_content",
    "markdown",
    "article",
    "full_text",
    "fulltext",
    "plain_text",
    "extracted_text",
];

/// Returns the remedy for a file that lacks the column of ids or that of texts. If exactly one of its columns has a
/// name that is usual for such a column, the remedy names it. `ids` and `texts` are the columns that have a fitting
/// type.
pub fn remedy(columns: &DocumentColumns, missing: &str, ids: &[String], texts: &[String]) -> Cow<'static, str> {
    let is_missing = |column: &String, all: &[String]| column == missing || !all.contains(column);
    let id = only(ids, &IDS).filter(|_| is_missing(&columns.id, ids)).map(|name| ("id_column", name));
    let text = only(texts, &TEXTS).filter(|_| is_missing(&columns.text, texts)).map(|name| ("text_column", name));
    let own = if *missing == columns.id { id } else { text };
    let (key, found): (&str, Vec<(&str, &String)>) = match own {
        None if *missing == columns.id => return "set id_column or rename it".into(),
        None => return "set text_column or rename it".into(),
        Some((key, _)) => (key, id.into_iter().chain(text).collect()),
    };
    debug_assert!(found.iter().any(|(of, _)| *of == key), "what is proposed includes the column that is missing");
    let there: Vec<String> = found.iter().map(|(_, name)| format!("a column '{name}'")).collect();
    let set: Vec<String> = found.iter().map(|(key, name)| format!("{key} = \"{name}\"")).collect();
    format!("there is {}: set {}", there.join(" and "), set.join(", ")).into()
}

/// Returns the remedy for a file that lacks a column beside those of ids and texts.
pub fn of_kept(columns: &DocumentColumns, missing: &str) -> &'static str {
    if columns.newest_by.as_deref() == Some(missing) && !columns.keep.iter().any(|column| column == missing) {
        return "name the column that tells which row of an id is the newest with newest_by, or set another on_duplicate_id";
    }
    "change keep or source_column, or rename it"
}

/// Returns the remedy for a file that lacks a column whose name is that of a value within another column, `doc.text`.
pub fn nested(missing: &str, present: &[String]) -> Option<Cow<'static, str>> {
    let (outer, inner) = missing.split_once('.')?;
    let is_there = present.iter().any(|column| column == outer);
    is_there.then(|| format!("'{outer}' has no value '{inner}' within it, or is a list: check the name").into())
}

/// Returns the only one of the columns that has one of the names.
fn only<'a>(columns: &'a [String], names: &[&str]) -> Option<&'a String> {
    let mut known = columns.iter().filter(|column| names.contains(&column.to_ascii_lowercase().as_str()));
    known.next().filter(|_| known.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::remedy;
    use crate::batch::DocumentColumns;

    fn said(missing: &str, ids: &[&str], texts: &[&str]) -> String {
        let own = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        remedy(&DocumentColumns::default(), missing, &own(ids), &own(texts)).into_owned()
    }

    #[test]
    fn a_hint_names_columns_only_if_there_is_no_doubt() {
        let both = "there is a column 'url' and a column 'content': set id_column = \"url\", text_column = \"content\"";
        assert_eq!(said("id", &["url", "content", "n"], &["url", "content"]), both);
        assert_eq!(said("id", &["URL", "text"], &["URL", "text"]), "there is a column 'URL': set id_column = \"URL\"");
        assert_eq!(
            said("text", &["id", "body"], &["id", "body"]),
            "there is a column 'body': set text_column = \"body\""
        );
        assert_eq!(said("id", &["url", "uuid", "body"], &["body"]), "set id_column or rename it");
        assert_eq!(said("text", &["id", "title"], &["id", "title"]), "set text_column or rename it");
    }
}
