//! The published schemas of summaries and manifests, derived from the types that are written. The test rewrites the files of
//! `docs/schema` where `NEARPRINT_WRITE_SCHEMAS` is set.

use std::path::Path;

use nearprint_explain::Explanation;
use nearprint_measure::{Audit, Evaluation, IdfSummary, LabelEstimate, SheetSummary};
use nearprint_night::{
    CheckReport, DropNightSummary, DryRun, FilterSummary, ForgetBeforeSummary, ForgetIdsSummary, Manifest,
    StoreContents,
};
use nearprint_pipeline::{ClusterPlan, FingerprintSummary, JoinSummary, PlanSummary};
use nearprint_report::{Diff, ExplainedDocument};
use nearprint_store::maintain::{CompactSummary, GcSummary, IndexSummary, StoreReport};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::config::{Checked, JobSchema, Written};
use super::manual::{CompletionScript, ManualPage, ManualPages};
use super::migrate::Migrated;
use super::night_summary::Ran;
use super::query::{OneSummary, StreamSummary};
use super::report::Reported;
use super::review::Reviewed;
use super::run_stale::{Done, WouldRun};
use super::serve::{ServeSummary, Serving};
use super::store::Made;
use crate::schema::in_words;
use crate::summary::{Ending, FailureSummary, Head, SpentKeys};

/// What every command that got to its end says.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "its schema alone is used")]
struct Frame {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    ending: Ending,
    #[serde(flatten)]
    spent: Option<SpentKeys>,
}

/// A kind of summary: its name in the schema, its command, the statuses that it may have, what it is, and the type from which it
/// is made.
type Kind = (&'static str, &'static str, &'static [&'static str], &'static str, fn(&mut SchemaGenerator) -> Value);

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

const KINDS: [Kind; 40] = [
    ("run", "run", &["published", "already_published", "stopped", "failed"], "A night that was run.", of::<Ran<'_>>),
    ("run_dry", "run", &["would_publish", "already_published"], "`run --dry-run`: what a run would do.", of::<DryRun>),
    ("run_stale", "run", &["done", "failed"], "`run --stale`: the stale nights, run in order of date.", of::<Done>),
    (
        "run_stale_dry",
        "run",
        &["would_publish", "none_stale"],
        "`run --stale --dry-run`: the nights that would be run.",
        of::<WouldRun>,
    ),
    ("fingerprint", "fingerprint", &["done"], "The fingerprints that were written.", of::<FingerprintSummary>),
    ("idf_build", "idf build", &["done"], "The idf table that was written.", of::<IdfSummary>),
    ("join", "join", &["done"], "The pairs that were written.", of::<JoinSummary>),
    ("plan", "plan", &["done"], "The tables and the cost of a join on this machine.", of::<PlanSummary>),
    ("plan_cluster", "plan", &["done"], "`plan --workers`: the cost of a join on a cluster.", of::<ClusterPlan>),
    ("evaluate", "evaluate", &["done", "failed"], "Precision and recall on labelled pairs.", of::<Evaluation>),
    ("explain", "explain", &["done"], "Why texts are a pair, or are none.", of::<Explanation>),
    (
        "explain_document",
        "explain",
        &["kept", "dropped", "skipped"],
        "`explain ID`: what each night decided about one document.",
        of::<ExplainedDocument>,
    ),
    ("report", "report", &["published"], "A published night.", of::<Reported>),
    ("audit", "audit", &["done", "unmeasured"], "What dropped documents lost.", of::<Audit>),
    ("review", "review", &["done"], "What people said of pairs of published nights.", of::<Reviewed>),
    ("diff", "diff", &["same", "different"], "What differs between two generations.", of::<Diff>),
    ("filter", "filter", &["done"], "The documents that were copied.", of::<FilterSummary>),
    ("tune_sheet", "tune", &["drawn"], "`tune --sheet`: the pairs that were drawn.", of::<SheetSummary>),
    ("tune_labels", "tune", &["estimated"], "`tune --labels`: what the labels say.", of::<LabelEstimate>),
    (
        "check",
        "check",
        &["sound", "behind", "damaged"],
        "A store and its results, read and compared.",
        of::<CheckReport>,
    ),
    ("query", "query", &["found", "no_match"], "The answer to one query.", of::<OneSummary>),
    (
        "query_lines",
        "query",
        &["done", "bad_lines", "failed"],
        "`query --jsonl`: the count of answers. The answers are the lines before.",
        of::<StreamSummary>,
    ),
    ("serve", "serve", &["stopped"], "A server that a signal stopped.", of::<ServeSummary>),
    ("store_info", "store info", &["done"], "What is in a store.", of::<StoreContents>),
    ("store_check", "store check", &["sound", "damaged"], "The files of a store, read.", of::<StoreReport>),
    (
        "store_compact",
        "store compact",
        &["compacted", "already_compact"],
        "The segment that nights were merged into.",
        of::<CompactSummary>,
    ),
    (
        "store_index",
        "store index",
        &["indexed", "already_indexed"],
        "The index for single queries.",
        of::<IndexSummary>,
    ),
    ("store_drop_night", "store drop-night", &["done"], "The night that was dropped.", of::<DropNightSummary>),
    (
        "store_forget_before",
        "store forget",
        &["forgotten", "nothing_to_forget"],
        "`store forget --before`: the nights that were forgotten.",
        of::<ForgetBeforeSummary>,
    ),
    (
        "store_forget_ids",
        "store forget",
        &["forgotten", "nothing_to_forget"],
        "`store forget --ids`: the documents that were forgotten.",
        of::<ForgetIdsSummary>,
    ),
    (
        "store_migrate",
        "store migrate",
        &["migrated", "already_migrated", "would_migrate", "failed"],
        "The nights of an old store that were made again in a new one.",
        of::<Migrated>,
    ),
    ("store_gc", "store gc", &["done", "listed"], "The files that were deleted.", of::<GcSummary>),
    ("store_init", "store init", &["made", "already_there"], "The store that was made.", of::<Made>),
    ("config_init", "config init", &["done"], "The job file that was written.", of::<Written>),
    ("config_check", "config check", &["done"], "A job file without errors.", of::<Checked>),
    ("config_schema", "config schema", &["done"], "The JSON Schema of job files.", of::<JobSchema>),
    ("completions", "completions", &["done"], "A script for a shell.", of::<CompletionScript>),
    ("man", "man", &["done"], "A man page.", of::<ManualPage>),
    ("man_dir", "man", &["done"], "Man pages that were written.", of::<ManualPages>),
    (FIRST_LINE, "serve", &["serving"], "The first line of `serve`: the server listens.", of::<Serving>),
];

/// The kind that is no summary of a command at its end.
const FIRST_LINE: &str = "serving";

/// Makes the schema of all summaries: that of a failure, and those of the kinds.
fn summaries() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let failure = FailureSummary::json_schema(&mut generator).to_value();
    let mut frame = published(Frame::json_schema(&mut generator).to_value());
    frame.as_object_mut().unwrap().remove("additionalProperties");
    // A key of this name means something else in the plan for a cluster.
    let requests = frame["properties"].as_object_mut().unwrap().remove("requests").unwrap();
    let mut all = vec![("failure", failure)];
    for (name, command, statuses, description, own) in KINDS {
        let mut kind = own(&mut generator);
        kind["description"] = description.into();
        kind["allOf"] = json!([{ "$ref": "#/$defs/frame" }]);
        if name != FIRST_LINE {
            kind["required"].as_array_mut().unwrap().push("elapsed_ms".into());
        }
        let keys = kind["properties"].as_object_mut().unwrap();
        keys.insert("command".to_owned(), json!({ "const": command }));
        keys.insert("status".to_owned(), json!({ "enum": statuses }));
        keys.entry("requests").or_insert_with(|| requests.clone());
        all.push((name, kind));
    }
    let refs: Vec<Value> = all.iter().map(|(name, _)| json!({ "$ref": format!("#/$defs/{name}") })).collect();
    let mut defs = generator.take_definitions(true);
    for (name, kind) in all {
        let before = defs.insert(name.to_owned(), kind);
        assert!(before.is_none(), "two definitions of {name}");
    }
    let mut schema = published(json!({
        "$schema": SCHEMA,
        "title": "Summaries of nearprint: the last line of `--json`, and `--summary-file`",
        "description": "A summary is that of a failure, or that of one of the commands.",
        "anyOf": refs,
        "$defs": defs,
    }));
    schema["$defs"]["frame"] = frame;
    schema
}

const SCHEMA: &str = "https://json-schema.org/draft/2020-12/schema";

fn manifest() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Manifest>().to_value();
    schema["title"] = "The manifest of a night: `_nearprint/dt=D/gen=G/manifest.json`".into();
    published(schema)
}

/// Returns a schema as it is published: the names of its definitions are those of JSON, and no key is required twice.
fn published(mut schema: Value) -> Value {
    if let Some(Value::Object(defs)) = schema.get_mut("$defs") {
        *defs = std::mem::take(defs).into_iter().map(|(name, of)| (snake(&name), of)).collect::<Map<_, _>>();
    }
    crate::schema::each(&mut schema, &mut |schema| {
        if let Some(Value::String(place)) = schema.get_mut("$ref") {
            *place = place.rsplit_once('/').map_or(String::new(), |(path, name)| format!("{path}/{}", snake(name)));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            let mut seen = Vec::new();
            required.retain(|key| {
                !seen.contains(key) && {
                    seen.push(key.clone());
                    true
                }
            });
        }
    });
    in_words(schema)
}

/// Returns a name of Rust as one of JSON.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// The most characters of a line that has more than one value.
const WIDTH: usize = 140;

/// Formats a schema so that people read it: what fits on a line stands on one.
fn lines(value: &Value, indent: &str) -> String {
    let flat = value.to_string();
    let inner = format!("{indent}  ");
    let (of, open, close): (Vec<String>, _, _) = match value {
        Value::Object(of) if indent.len() + flat.len() > WIDTH => {
            (of.iter().map(|(key, value)| format!("{}: {}", json!(key), lines(value, &inner))).collect(), "{", "}")
        }
        Value::Array(of) if indent.len() + flat.len() > WIDTH => {
            (of.iter().map(|value| lines(value, &inner)).collect(), "[", "]")
        }
        _ => return flat,
    };
    format!("{open}\n{inner}{}\n{indent}{close}", of.join(&format!(",\n{inner}")))
}

#[test]
fn the_published_schemas_are_those_of_the_types_that_are_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, schema) in [("summary", summaries()), ("manifest", manifest())] {
        let file = folder.join(format!("{name}.json"));
        let text = lines(&schema, "") + "\n";
        if std::env::var_os("NEARPRINT_WRITE_SCHEMAS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let there = std::fs::read_to_string(&file).unwrap();
        assert!(there == text, "{}: NEARPRINT_WRITE_SCHEMAS=1 cargo test --workspace --lib schemas", file.display());
    }
}
