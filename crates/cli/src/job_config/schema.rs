//! The JSON Schema of a job file, and which digest each key belongs to.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;

use super::JobConfig;
use super::profile::SECTIONS;
use crate::schema::{each, in_words, properties};

static PUBLISHED: LazyLock<serde_json::Value> = LazyLock::new(|| {
    let mut schema = declared();
    each(&mut schema, &mut |schema| drop(schema.remove(DIGEST)));
    schema
});

/// The word of a key's declaration that says which digest its value belongs to.
const DIGEST: &str = "x-digest";

/// Returns the JSON Schema of a job file.
pub fn schema() -> &'static serde_json::Value {
    &PUBLISHED
}

/// Derives the schema of a job file from its declaration. No key is required: the command line may give what is missing, and the
/// profile has the rest of its tables.
fn declared() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = in_words(settings.into_generator().into_root_schema_for::<JobConfig>().to_value());
    optional(&mut schema);
    each(&mut schema, &mut |schema| {
        if !schema.get("default").is_some_and(|value| value.is_boolean() || value.is_number() || value.is_string()) {
            schema.remove("default");
        }
    });
    let keys = schema.as_object_mut().into_iter().flat_map(properties);
    for (_, table) in keys.filter(|(key, _)| SECTIONS.contains(&key.as_str())) {
        each(table, &mut |schema| drop(schema.remove("default")));
    }
    schema
}

/// Lets all keys of a table and of the tables in it be left out. What is inside a value is not.
fn optional(table: &mut serde_json::Value) {
    let serde_json::Value::Object(table) = table else { return };
    table.remove("required");
    properties(table).for_each(|(_, value)| optional(value));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{DIGEST, JobConfig, declared, schema};
    use crate::{Handle, night};

    /// The texts of a job file that name no path.
    const NO_PATHS: [&str; 15] = [
        "id_column",
        "text_column",
        "source_column",
        "keep",
        "max_doc_bytes",
        "newest_by",
        "time_zone",
        "require_marker",
        "tokenize.stop_words.drop_parts_of_speech",
        "resources.memory_limit",
        "resources.reduce_memory",
        "resources.max_spill",
        "s3.endpoint",
        "s3.region",
        "s3.profile",
    ];

    /// The keys below a part of the schema whose values are texts and not names of a list, and whether they are paths.
    fn texts(schema: &Value, path: &str, found: &mut Vec<(String, bool)>) {
        for (key, of_value) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let item = if of_value["type"] == "array" { &of_value["items"] } else { of_value };
            let types = item["type"].as_array().cloned().unwrap_or_else(|| vec![item["type"].clone()]);
            if types.contains(&"string".into()) && item["enum"].is_null() {
                found.push((path.clone(), item["format"] == "path"));
            }
            texts(of_value, &path, found);
        }
    }

    #[test]
    fn every_text_of_a_job_file_is_known_as_a_path_that_begins_at_its_folder_or_as_none() {
        let mut found = Vec::new();
        texts(schema(), "", &mut found);
        let keys = |are_paths: bool| -> BTreeSet<&str> {
            found.iter().filter(|(_, is_path)| *is_path == are_paths).map(|(key, _)| key.as_str()).collect()
        };
        assert_eq!(keys(false), BTreeSet::from(NO_PATHS), "a new key: is it a path?");
        let place = || Some("x".to_owned());
        let mut job = JobConfig {
            documents: place(),
            store: place(),
            output: place(),
            references: place().into_iter().collect(),
            roots: place().into_iter().collect(),
            clone_roots: place().into_iter().collect(),
            ..JobConfig::default()
        };
        let files: Vec<&str> = job.files().into_iter().map(|(key, _)| key).collect();
        let known = job.places().into_iter().map(|(key, _)| key).chain(files);
        // These become flags, as paths that begin at the folder of the job file.
        let known: BTreeSet<&str> = known.chain(["watch.metrics_file", "watch.report", "watch.summary_file"]).collect();
        assert_eq!(keys(true), known, "its folder is not that of the job file");
    }

    /// The keys below a part of the declared schema that are no tables, each with its schema and its word, which may be that of its
    /// table.
    fn words(schema: &Value, path: &str, of_table: Option<&str>, found: &mut Vec<(String, Value, String)>) {
        for (key, of_value) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let word = of_value[DIGEST].as_str().or(of_table);
            if of_value["properties"].is_object() {
                words(of_value, &path, word, found);
            } else {
                let word = word.unwrap_or_else(|| panic!("{path}: say in its declaration which digest it belongs to"));
                found.push((path, of_value.clone(), word.to_owned()));
            }
        }
    }

    /// Other values than the usual ones, where the schema does not tell which value is another one that is valid.
    const OTHERS: [(&str, &str); 50] = [
        ("profile", "'han-bigrams'"),
        ("documents", "'copied'"),
        ("references", "['reference/store']"),
        ("create_store", "false"),
        ("id_column", "'other'"),
        ("text_column", "'other'"),
        ("source_column", "'other'"),
        ("keep", "['other desc']"),
        ("max_doc_bytes", "'1MiB'"),
        ("newest_by", "'other'\non_duplicate_id = 'keep_newest'"),
        ("html_text", "'all'"),
        ("time_zone", "'Asia/Shanghai'"),
        ("require_marker", "'a.jsonl'"),
        ("user_dictionary", "'words.txt'"),
        ("stop_words", "'words.txt'"),
        ("idf", "'idf.txt'"),
        ("bits", "32"),
        ("roots", "['.']"),
        ("clone_roots", "['elsewhere']"),
        ("lock", "'lock'"),
        ("max_lost_share", "0.5"),
        ("tokenize.normalize.nfkc", "false"),
        ("tokenize.normalize.case_fold", "false"),
        ("tokenize.normalize.html_entities", "false"),
        ("tokenize.normalize.control_characters", "false"),
        ("tokenize.normalize.white_space", "false"),
        ("tokenize.tokenizer.kind", "'words'"),
        ("tokenize.tokenizer.drop_tokens_without_alphanumeric", "false"),
        ("tokenize.stop_words.drop_parts_of_speech", "['u']"),
        ("tokenize.features.weight", "'count'"),
        ("tokenize.features.shingle", "2\ntokenize.features.short_word = 0"),
        ("fingerprint.feature_hash", "{ xxh3 = { seed = 3 } }"),
        ("fingerprint.bit_rule", "'non_negative'"),
        ("sketch.tokenizer", "'pairs'"),
        ("sketch.shingle", "2"),
        ("resources.memory_limit", "'1GiB'"),
        ("resources.reduce_memory", "'1GiB'"),
        ("resources.max_spill", "'1GiB'"),
        ("resources.spill_dir", "'spill'"),
        ("resources.preflight", "false"),
        ("s3.endpoint", "'http://127.0.0.1:1'"),
        ("s3.region", "'x'"),
        ("s3.profile", "'x'"),
        ("watch.metrics_file", "'x.prom'"),
        ("watch.report", "'x-{dt}.html'"),
        ("watch.summary_file", "'x-{dt}.json'"),
        ("warc_id", "'url_time'"),
        ("join.max_distance", "3"),
        ("join.earlier.words", "3"),
        ("judge.max_sketch_distance", "70"),
    ];

    /// Keys of which another value is another history, or needs other documents: nothing is compared.
    const NOT_COMPARED: [(&str, &str); 8] = [
        ("idf", "the default profile has no use for it, and refuses it"),
        ("user_dictionary", "the same"),
        ("tokenize.stop_words.drop_parts_of_speech", "the same"),
        ("tokenize.tokenizer.hmm", "the same"),
        ("tokenize.tokenizer.ngram", "the same"),
        ("store", "another store has other nights"),
        ("output", "a store has its nights in one output"),
        ("documents_version", "only tables have versions; their files are inputs of the night"),
    ];

    /// Another value of a key than its default.
    fn other(key: &str, schema: &Value) -> String {
        if let Some((_, value)) = OTHERS.iter().find(|(own, _)| *own == key) {
            return (*value).to_owned();
        }
        let default = &schema["default"];
        let mut names = schema["enum"].as_array().into_iter().flatten();
        match (names.rfind(|name| *name != default), schema["type"].as_str()) {
            (Some(name), _) => name.to_string(),
            (None, Some("boolean")) => (default != &json!(true)).to_string(),
            (None, Some("integer")) => (default.as_u64().unwrap_or(6) + 1).to_string(),
            (None, Some("number")) => "0.5".to_owned(),
            _ => panic!("{key}: add another value to OTHERS"),
        }
    }

    /// What a dry run makes of a night that is published, by the word of the key that is changed.
    fn outcome(folder: &Path, job: &str) -> Result<&'static str, String> {
        let file = folder.join("job.toml");
        std::fs::write(&file, job).unwrap();
        let arguments =
            ["--config".as_ref(), file.as_os_str(), "--dt".as_ref(), "2026-11-20".as_ref(), "--dry-run".as_ref()];
        match night(arguments.map(Into::into), &Handle::default(), None) {
            Ok(summary) if summary["status"] == "already_published" => Ok("none"),
            Ok(summary) => Err(format!("{summary}")),
            Err(failed) if failed.failure.message().contains("is published from other") => Ok("night"),
            Err(failed) if failed.failure.message().contains("start a new store") => Ok("profile"),
            Err(failed) => Err(failed.failure.message()),
        }
    }

    #[test]
    fn every_key_says_which_digest_it_belongs_to_and_another_value_changes_that_digest_and_no_other() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path();
        for place in ["documents/dt=2026-11-20", "copied/dt=2026-11-20", "spill"] {
            std::fs::create_dir_all(folder.join(place)).unwrap();
        }
        let row = |id: &str| json!({ "id": id, "text": format!("a text of {id}"), "other": id }).to_string() + "\n";
        for place in ["documents", "copied"] {
            std::fs::write(folder.join(format!("{place}/dt=2026-11-20/a.jsonl")), row("a") + &row("b")).unwrap();
        }
        std::fs::write(folder.join("words.txt"), "words\n").unwrap();
        std::fs::write(folder.join("idf.txt"), "words 1.5\n").unwrap();
        let job = |key: &str, value: &str| {
            let places =
                [("documents", "'documents'"), ("store", "'store'"), ("output", "'results'"), ("create_store", "true")];
            let own = [(key, value)];
            let lines =
                places.iter().filter(|(place, _)| *place != key).chain(own.iter().filter(|(key, _)| !key.is_empty()));
            lines.map(|(key, value)| format!("{key} = {value}\n")).collect::<String>()
        };
        for job in [
            job("", ""),
            job("", "").replace("'store'", "'reference/store'").replace("'results'", "'reference/results'"),
        ] {
            std::fs::write(folder.join("job.toml"), job).unwrap();
            let arguments = ["--config".into(), folder.join("job.toml").into(), "--dt".into(), "2026-11-20".into()];
            night(arguments, &Handle::default(), None).unwrap();
        }
        let mut keys = Vec::new();
        words(&declared(), "", None, &mut keys);
        let mut wrong = Vec::new();
        for (key, of_value, word) in keys {
            if NOT_COMPARED.iter().any(|(own, _)| *own == key) {
                continue;
            }
            let value = other(&key, &of_value);
            let found = outcome(folder, &job(&key, &value));
            if found.as_deref() != Ok(word.as_str()) {
                wrong.push(format!("{key} = {value}: said {word}, found {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
