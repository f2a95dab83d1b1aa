//! What a fault says, and what can be asked of it.

use nearprint_fault::{ErrorKind, Fault, Part, Words, key, words};

#[test]
fn a_message_begins_with_its_place_and_ends_with_its_remedy() {
    let fault = Fault::bad_data("a.parquet", "the page is too long").row_group(3).remedy("restore the file");
    assert_eq!(fault.to_string(), "a.parquet: row group 3: the page is too long: restore the file");
    assert_eq!(fault.reason_in_file(), "row group 3: the page is too long");
    let row = Fault::bad_data("a.jsonl", "no id").row(7).column("id");
    assert_eq!(row.to_string(), "a.jsonl: row 7: no id");
    assert_eq!((row.place().row, row.place().column.as_deref()), (Some(7), Some("id")));
}

#[test]
fn a_sentence_that_names_the_place_does_not_begin_with_it() {
    let fault = Fault::new(ErrorKind::InputMissing, words!["cannot read ", Part::Place, ": it is gone"]).at("s3://a/b");
    assert_eq!(fault.to_string(), "cannot read s3://a/b: it is gone");
    assert_eq!(fault.reason_in_file(), "cannot read it: it is gone");
}

#[test]
fn a_relative_place_is_shown_with_its_whole_path_where_that_is_known() {
    let fault = Fault::input_missing("store", "store", "check the path");
    assert_eq!(fault.to_string(), "no store at store: check the path");
    let mut place = fault.place().clone();
    place.whole = Some("/data/store".to_owned());
    assert_eq!(fault.placed(place).to_string(), "no store at store (/data/store): check the path");
}

#[test]
fn keys_are_in_backticks_until_somebody_names_them() {
    let fault = Fault::usage(words!["raise ", key("max_spill"), " or ", key("keep")]).within("2026-11-20: ");
    assert_eq!(fault.to_string(), "2026-11-20: raise `max_spill` or `keep`");
    let named = fault.words().named(|key| (key == "max_spill").then(|| "--max-spill".to_owned()));
    assert_eq!(named, "2026-11-20: raise --max-spill or `keep`");
    assert_eq!(fault.keys().collect::<Vec<_>>(), ["max_spill", "keep"]);
}

#[test]
fn text_in_backticks_is_no_key() {
    let fault = Fault::config("sketch.tokenizer", "use `words` or `pairs`");
    assert_eq!(fault.words().named(|key| Some(format!("--{key}"))), "sketch.tokenizer: use `words` or `pairs`");
    assert_eq!((fault.keys().count(), fault.of_key()), (0, Some("sketch.tokenizer")));
}

#[test]
fn a_caller_tells_a_fault_by_its_matter_and_by_the_error_behind_it() {
    #[derive(Debug, PartialEq)]
    struct NoMarker;
    let io = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let fault = Fault::io("/data/a")(io).about(NoMarker);
    assert_eq!(fault.kind(), ErrorKind::Permission);
    assert_eq!(fault.matter::<NoMarker>(), Some(&NoMarker));
    assert!(fault.matter::<String>().is_none());
    let shared = fault.clone();
    assert_eq!(shared.cause::<std::io::Error>().map(std::io::Error::kind), Some(std::io::ErrorKind::PermissionDenied));
}

#[test]
fn words_join_with_a_text_between_them() {
    let all = ["spill_dir", "output"].map(|name| Words::from(key(name)));
    assert_eq!(Words::joined(all, " and ").to_string(), "`spill_dir` and `output`");
}

#[test]
fn each_kind_is_found_by_its_name() {
    for kind in [ErrorKind::Usage, ErrorKind::BadData, ErrorKind::Bug, ErrorKind::TryAgain, ErrorKind::Config] {
        assert_eq!(ErrorKind::named(kind.name()), Some(kind));
    }
    assert_eq!(ErrorKind::named("other"), None);
}
