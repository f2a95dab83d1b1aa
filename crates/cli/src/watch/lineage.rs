//! OpenLineage events of a run: one when it starts, one when it ends. docs/schema/openlineage.json describes them.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{Error, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use chrono::{NaiveDate, SecondsFormat, Utc};
use nearprint_storage::StorageError;
use serde_json::{Value, json};

use crate::args::RunArgs;
use crate::exit_code::Failure;
use crate::job_config::JobConfig;
use crate::place::Given;

/// The time that an event may take. A run has two.
const DEADLINE: Duration = Duration::from_millis(900);

const SCHEMA: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";

/// A run as OpenLineage sees it.
#[derive(Debug)]
pub struct Lineage {
    sink: Sink,
    run_id: String,
    job: Value,
    run_facets: Value,
    places: Option<Places>,
}

#[derive(Debug)]
enum Sink {
    File(File),
    Http(String),
}

/// The datasets that a run reads and writes.
#[derive(Debug)]
struct Places {
    documents: Option<String>,
    references: Vec<String>,
    store: String,
    output: String,
}

impl Lineage {
    /// Returns `None` if the arguments ask for no events. A file that cannot be opened is an error.
    pub fn of(args: &RunArgs) -> Result<Option<Self>, Failure> {
        let Some(place) = args.watch.openlineage.as_ref().map(Given::as_typed) else {
            return Ok(None);
        };
        let sink = if place.starts_with("http://") || place.starts_with("https://") {
            Sink::Http(place.to_owned())
        } else {
            let file = File::options().append(true).create(true).open(place);
            Sink::File(file.map_err(|error| StorageError::io(place)(with_remedy(error)))?)
        };
        let job_type = json!({ "processingType": "BATCH", "integration": "NEARPRINT", "jobType": "COMMAND" });
        let name = args.config.file_stem().map_or_else(|| "run".into(), |stem| stem.to_string_lossy());
        let job = json!({
            "namespace": args.watch.openlineage_namespace,
            "name": format!("nearprint.{name}"),
            "facets": { "jobType": facet("2-0-3", "JobTypeJobFacet", job_type) },
        });
        let mut run_facets = json!({});
        // `run --stale` has no night of its own, and then no nominal time.
        let dt = args.dt.as_deref().unwrap_or_default();
        if dt.parse::<NaiveDate>().is_ok() {
            let night = json!({ "nominalStartTime": format!("{dt}T00:00:00Z") });
            run_facets["nominalTime"] = facet("1-0-1", "NominalTimeRunFacet", night);
        }
        if let Some(parent) = args.watch.openlineage_parent.as_deref().and_then(parent) {
            run_facets["parent"] = parent;
        }
        Ok(Some(Self { sink, run_id: drawn_uuid(), job, run_facets, places: Places::of(args) }))
    }

    pub fn started(&self) {
        self.send("START", &self.run_facets, self.inputs(), json!([]));
    }

    pub fn ended(&self, summary: &Value) {
        let mut facets = self.run_facets.clone();
        let state = match summary["exit_code"].as_u64().unwrap_or(0) {
            0 => "COMPLETE",
            130 | 143 => "ABORT",
            _ => "FAIL",
        };
        if let Some(error) = summary["error"].as_str() {
            let message = json!({ "message": error, "programmingLanguage": "RUST" });
            facets["errorMessage"] = facet("1-0-1", "ErrorMessageRunFacet", message);
        }
        let outputs = if state == "COMPLETE" { self.outputs(summary) } else { json!([]) };
        self.send(state, &facets, self.inputs(), outputs);
    }

    fn inputs(&self) -> Value {
        let places = self.places.iter().flat_map(|places| places.documents.iter().chain(&places.references));
        places.map(|place| dataset(place)).collect()
    }

    fn outputs(&self, summary: &Value) -> Value {
        let Some(Places { store, output, .. }) = &self.places else {
            return json!([]);
        };
        let count = |name: &str| summary[name].as_u64().unwrap_or(0);
        let table = |name: &str, n_rows: u64| {
            let rows = facet("1-0-2", "OutputStatisticsOutputDatasetFacet", json!({ "rowCount": n_rows }));
            let mut table = dataset(&format!("{}/{name}", output.trim_end_matches('/')));
            table["outputFacets"] = json!({ "outputStatistics": rows });
            table
        };
        let n_decisions = count("n_keep") + count("n_drop");
        json!([table("decisions", n_decisions), table("pairs", count("n_pairs")), dataset(store)])
    }

    fn send(&self, state: &str, facets: &Value, inputs: Value, outputs: Value) {
        let event = json!({
            "eventType": state,
            "eventTime": Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            "producer": producer(),
            "schemaURL": SCHEMA,
            "run": { "runId": self.run_id, "facets": facets },
            "job": self.job,
            "inputs": inputs,
            "outputs": outputs,
        });
        let sent = match &self.sink {
            Sink::File(file) => append(file, &event).map_err(|error| error.to_string()),
            Sink::Http(url) => post(url, &event),
        };
        if let Err(reason) = sent {
            tracing::warn!("no OpenLineage event {state}: {reason}");
        }
    }
}

impl Places {
    /// Returns `None` if the job file cannot be read, or does not say where store and output are: the run says so.
    fn of(args: &RunArgs) -> Option<Self> {
        let job = JobConfig::read(&args.config).ok()?;
        let place = |given: Option<&Given>, own: Option<&String>| match given {
            Some(given) => Some(given.as_typed().to_owned()),
            None => own.map(|own| job.folder().typed(own)),
        };
        // Without a night, that of `--stale`, the place of all nights is named.
        let documents = place(args.documents.as_ref(), job.documents.as_ref())
            .filter(|_| args.files_from.is_none())
            .map(|place| place.replace("{dt}", args.dt.as_deref().unwrap_or_default()));
        let references = if args.references.is_empty() {
            job.references.iter().map(|own| job.folder().typed(own)).collect()
        } else {
            args.references.iter().map(|given| given.as_typed().to_owned()).collect()
        };
        let store = place(args.store.as_ref(), job.store.as_ref())?;
        let output = place(args.output.as_ref(), job.output.as_ref())?;
        Some(Self { documents, references, store, output })
    }
}

/// Names a place as OpenLineage does: `s3://bucket` and a key, or `file` and an absolute path.
fn dataset(place: &str) -> Value {
    if let Some((bucket, key)) = place.strip_prefix("s3://").map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        return json!({ "namespace": format!("s3://{bucket}"), "name": key });
    }
    let path = Path::new(place.strip_prefix("file://").unwrap_or(place));
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    json!({ "namespace": "file", "name": path.display().to_string() })
}

/// Parses `NAMESPACE/JOB/RUN_ID`, as Airflow's provider writes it. The job may contain slashes.
fn parent(text: &str) -> Option<Value> {
    let parts = text.rsplit_once('/').and_then(|(job, run)| Some((job.split_once('/')?, run)));
    let Some(((namespace, name), run)) = parts.filter(|(_, run)| is_uuid(run)) else {
        tracing::warn!("no OpenLineage parent: {text:?} is not NAMESPACE/JOB/RUN_ID, with a UUID for the run");
        return None;
    };
    let parent = json!({ "run": { "runId": run }, "job": { "namespace": namespace, "name": name } });
    Some(facet("1-0-1", "ParentRunFacet", parent))
}

fn is_uuid(text: &str) -> bool {
    let is_digit = |(at, c): (usize, char)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.chars().enumerate().all(is_digit)
}

fn with_remedy(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::new(ErrorKind::NotFound, "no such folder: create it, or name another file"),
        _ => error,
    }
}

/// Completes a facet.
fn facet(version: &str, name: &str, mut fields: Value) -> Value {
    fields["_producer"] = producer().into();
    fields["_schemaURL"] = format!("https://openlineage.io/spec/facets/{version}/{name}.json#/$defs/{name}").into();
    fields
}

fn producer() -> String {
    format!("urn:nearprint:{}", env!("CARGO_PKG_VERSION"))
}

/// Draws a UUID of version 4, of the randomness that the standard library takes from the system. Nothing that is
/// published depends on it.
fn drawn_uuid() -> String {
    let drawn = |half: u8| RandomState::new().hash_one((half, std::process::id(), std::time::SystemTime::now()));
    let high = drawn(0) & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = drawn(1) & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    let (high, low) = (format!("{high:016x}"), format!("{low:016x}"));
    format!("{}-{}-{}-{}-{}", &high[..8], &high[8..12], &high[12..], &low[..4], &low[4..])
}

/// One write, so that events of several runs do not mix.
fn append(mut file: &File, event: &Value) -> Result<(), Error> {
    file.write_all(format!("{event}\n").as_bytes())
}

/// Sends an event, and waits no longer than the deadline for all of it: name, connection, and answer.
fn post(url: &str, event: &Value) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let sent = runtime.block_on(async {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let request = client.map_err(|e| e.to_string())?.post(url).header("content-type", "application/json");
        let request = match std::env::var("OPENLINEAGE_API_KEY") {
            Ok(key) => request.bearer_auth(key),
            Err(_) => request,
        };
        let answer = tokio::time::timeout(DEADLINE, request.body(event.to_string()).send()).await;
        let answer = answer.map_err(|_| format!("no answer within {} ms", DEADLINE.as_millis()))?;
        // The message of the error would repeat a URL, which may have secrets.
        let answer = answer.map_err(|e| e.without_url().to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the endpoint answered {status}")),
        }
    });
    // A name that is being looked up would otherwise be waited for.
    runtime.shutdown_background();
    sent
}
