//! Metrics of a run in the text format of Prometheus, for node_exporter's textfile collector.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{NaiveDate, NaiveTime};
use nearprint_storage::{IfExists, LocalFile};
use serde_json::Value;

use crate::exit_code::Failure;

/// Metrics with this prefix are about the last night that was published. A run that fails keeps them as they are.
const KEPT: &str = "nearprint_night_";

/// The file of metrics.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: LocalFile,
    config: String,
}

impl Metrics {
    /// Checks that the file can be written. `config` is the label by which the jobs of a machine differ.
    pub fn prepare(path: &Path, config: &Path) -> Result<Self, Failure> {
        let file = LocalFile::try_new(path, IfExists::Replace)?;
        Ok(Self { path: path.to_owned(), file, config: escaped(&config.display().to_string()) })
    }

    /// Replaces the file.
    pub fn write(&self, summary: &Value) {
        let former = std::fs::read_to_string(&self.path).unwrap_or_else(|error| {
            // The first run finds none.
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!("{}: cannot be read, so what earlier runs said is lost: {error}", self.path.display());
            }
            String::new()
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        if let Err(error) = self.file.write(text(&self.config, summary, &former, now).as_bytes()) {
            tracing::warn!("no metrics: {error}");
        }
    }
}

/// Returns the content of the file after a run that ended `now`, in seconds since 1970, with that summary.
fn text(config: &str, summary: &Value, former: &str, now: f64) -> String {
    let mut page = Page { config, text: String::new() };
    let exit_code = summary["exit_code"].as_f64().unwrap_or(0.0);
    page.of_run(summary, exit_code, now);
    if exit_code == 0.0 {
        page.of_night(summary, now);
    } else {
        page.keep(former);
    }
    page.text
}

struct Page<'a> {
    config: &'a str,
    text: String,
}

impl Page<'_> {
    fn of_run(&mut self, summary: &Value, exit_code: f64, now: f64) {
        self.one("run_end_timestamp_seconds", "When the last run ended", Some(now));
        self.one("run_success", "Whether the last run succeeded", Some(f64::from(u8::from(exit_code == 0.0))));
        self.one("run_exit_code", "Exit code of the last run", Some(exit_code));
        let seconds = summary["elapsed_ms"].as_f64().map(|ms| ms / 1e3);
        self.one("run_duration_seconds", "Duration of the last run", seconds);
        self.one("run_peak_memory_bytes", "Peak memory of the last run", summary["peak_rss_bytes"].as_f64());
        let stages = summary["stage_ms"].as_object().into_iter().flatten();
        let stages: Vec<_> = stages.map(|(stage, ms)| (stage.as_str(), ms.as_f64().map(|ms| ms / 1e3))).collect();
        self.each("run_stage_duration_seconds", "Duration of each stage of the last run", "stage", &stages);
        let rate = |count: &str| match summary["status"].as_str() {
            Some("published" | "stopped") => Some(summary[count].as_f64()? / seconds.filter(|&s| s > 0.0)?),
            _ => None,
        };
        self.one("run_documents_per_second", "Documents of the night by the duration of the run", rate("n_documents"));
        let measured = &summary["measured"];
        let values = [
            ("max_cluster", &measured["largest_cluster"]["n_texts"]),
            ("max_source_loss", &measured["worst_sources"][0]["loss"]),
            ("max_rate_change", &measured["drop_rate"]["change"]),
            ("max_mean_lost_share", &measured["lost_share"]["mean"]),
            ("min_document_share", &measured["documents"]["share"]),
            ("max_kept_fall", &measured["fallen"]["fall"]),
            ("min_kept_share", &measured["smallest"]["share"]),
            ("max_source_fall", &measured["fallen_source"]["fall"]),
            ("max_text_share", &measured["largest_text"]["share"]),
            ("max_stub_share", &measured["stubs"]["share"]),
        ];
        let tripped = summary["breakers"].as_array().into_iter().flatten();
        let tripped: Vec<_> = tripped.filter_map(|breaker| breaker["name"].as_str()).collect();
        // A run that failed before the breakers looked says nothing about them.
        let is_tripped = |name| measured.is_object().then(|| f64::from(u8::from(tripped.contains(&name))));
        let is_tripped = values.map(|(name, _)| (name, is_tripped(name)));
        self.each("run_breaker_value", "What each breaker measured in the last run", "breaker", &values.map(number));
        self.each("run_breaker_tripped", "Whether the breaker stopped the last run", "breaker", &is_tripped);
    }

    fn of_night(&mut self, summary: &Value, now: f64) {
        let midnight = summary["dt"].as_str().and_then(|dt| dt.parse::<NaiveDate>().ok());
        #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
        let midnight = midnight.map(|night| night.and_time(NaiveTime::MIN).and_utc().timestamp() as f64);
        self.one("night_last_success_timestamp_seconds", "When a run last succeeded", Some(now));
        self.one("night_date_timestamp_seconds", "Date of the night of that run", midnight);
        let decisions = [("keep", &summary["n_keep"]), ("drop", &summary["n_drop"]), ("skip", &summary["n_skip"])];
        self.each("night_decisions", "Documents of that night by decision", "decision", &decisions.map(number));
        let recrawls = [("new", &summary["n_new"]), ("same", &summary["n_same"]), ("changed", &summary["n_changed"])];
        let help = "Documents of that night by how they compare with the nights before";
        self.each("night_recrawls", help, "recrawl", &recrawls.map(number));
        let stubs = &summary["by_reason"]["drop_stub"];
        self.one("night_stubs", "Stubs of that night", stubs.as_f64().or(summary["n_drop"].as_f64().map(|_| 0.0)));
        let counts = [
            ("night_documents", "Documents of that night", "n_documents"),
            ("night_existing_fingerprints", "Fingerprints of earlier nights that it was joined with", "n_existing"),
            ("night_pairs", "Pairs of that night", "n_pairs"),
            (
                "night_repeated_ids",
                "Rows of that night that were left out because another row has the id",
                "n_repeated_ids",
            ),
            ("night_unknown_revisits", "Revisit records of that night whose texts are unknown", "n_unknown_revisits"),
            ("night_bad_rows", "Rows of that night that are no documents for another reason", "n_bad_rows"),
            ("night_bad_files", "Files of that night that could not be read", "n_bad_files"),
            ("night_orphaned_documents", "Documents of earlier nights that it decided again", "n_orphaned"),
            ("night_restored_documents", "Documents of earlier nights that it kept again", "n_restored"),
            ("night_commit", "Number of the store's commit", "commit"),
        ];
        for (name, help, count) in counts {
            self.one(name, help, summary[count].as_f64());
        }
        #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
        let stale = summary["stale"].as_array().map(|nights| nights.len() as f64);
        self.one("night_stale_nights", "Later nights that were made without that night", stale);
    }

    /// Copies what the former file says about the last night.
    fn keep(&mut self, former: &str) {
        let is_kept = |line: &&str| {
            let sample = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
            sample.starts_with(KEPT)
        };
        for line in former.lines().filter(is_kept) {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn one(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.head(name, help);
            self.sample(name, "", value);
        }
    }

    fn each(&mut self, name: &str, help: &str, label: &str, samples: &[(&str, Option<f64>)]) {
        if samples.iter().any(|(_, value)| value.is_some()) {
            self.head(name, help);
        }
        for (which, value) in samples {
            if let Some(value) = value {
                self.sample(name, &format!(",{label}=\"{}\"", escaped(which)), *value);
            }
        }
    }

    // Writing to a string cannot fail.
    fn head(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP nearprint_{name} {help}.\n# TYPE nearprint_{name} gauge");
    }

    fn sample(&mut self, name: &str, label: &str, value: f64) {
        let _ = writeln!(self.text, "nearprint_{name}{{config=\"{}\"{label}}} {value}", self.config);
    }
}

fn number<'a>((name, value): (&'a str, &Value)) -> (&'a str, Option<f64>) {
    (name, value.as_f64())
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
