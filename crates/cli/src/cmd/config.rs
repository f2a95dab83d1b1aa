//! `nearprint config`: job files are written, checked and described.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use clap::Parser;

use super::night_request::request;
use super::{Outcome, Session};
use crate::args::{Cli, Command, ConfigCheckArgs, ConfigCommand, ConfigInitArgs, Global};
use crate::command_line::command_line;
use crate::exit_code::{CONFIG, Failure, INPUT_MISSING, OUTPUT_EXISTS, Spent, USAGE};
use crate::job_config::JobConfig;
use crate::job_keys;
use crate::remedy::Remedy;
use crate::summary::Report;

pub(super) fn config(global: &Global, command: &ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Init(args) => init(args),
        ConfigCommand::Check(args) => check(global, args),
        ConfigCommand::Schema => {
            let schema = job_keys::schema();
            let text = format!("{schema:#}\n");
            Ok(Report::new("config schema", "done", &serde_json::json!({ "schema": schema }), Spent::default(), text))
        }
    }
}

/// A job file to begin with. The three places stand for `{documents}`, `{store}` and `{output}`, quoted.
const TEMPLATE: &str = include_str!("job_template.toml");

fn init(args: &ConfigInitArgs) -> Outcome {
    let mut text = TEMPLATE.to_owned();
    for (name, place) in [("documents", &args.documents), ("store", &args.store), ("output", &args.output)] {
        text = text.replace(&format!("@{name}@"), &toml::Value::from(place.as_str()).to_string());
    }
    write_new(&args.file, &text)?;
    let file = args.file.to_string_lossy();
    let value = serde_json::json!({ "file": file });
    let said = format!("{file}: written; `nearprint config schema` lists every key\n");
    let report = Report::new("config init", "done", &value, Spent::default(), said);
    Ok(report.then(Some(command_line(["store", "init", "--config", &*file]))))
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let reason = format!("{}: it is there already, and is not overwritten: name another file", path.display());
            let check = ["config", "check", &*path.to_string_lossy()].map(str::to_owned).to_vec();
            Err(Failure::new(OUTPUT_EXISTS, reason).at(path, None).mended_by(Remedy::Command(check)))
        }
        done => done.map_err(|error| Failure::writing(path, &error)),
    }
}

/// The night for which a job file is checked. No night is looked for.
const ANY_NIGHT: &str = "2000-01-01";

/// Refuses documents that are the folder of one night: a run looks for its night below them.
fn refuse_single_night(documents: &str) -> Result<(), Failure> {
    let (parent, name) = documents.trim_end_matches('/').rsplit_once('/').unwrap_or((".", documents));
    match name.strip_prefix("dt=") {
        Some(dt) if !dt.contains(['{', '*']) => {
            Err(Failure::config(format!("documents: {name} is the folder of one night: name its parent, {parent}")))
        }
        _ => Ok(()),
    }
}

fn check(global: &Global, args: &ConfigCheckArgs) -> Outcome {
    let file = args.file.to_string_lossy().into_owned();
    let as_run = Cli::try_parse_from(["nearprint", "run", "--dt", ANY_NIGHT, "--config", &file]);
    let Ok(Command::Run(run_args)) = as_run.map(|cli| cli.command) else {
        return Err(Failure::bug("a run without flags cannot be parsed"));
    };
    // A hint of this same command would say nothing.
    let unmended = |failure: Failure| Failure { remedy: None, ..failure };
    let job = JobConfig::read(&args.file).map_err(|failure| match failure.code {
        CONFIG => unmended(failure),
        _ => failure,
    })?;
    let request = request(&job, &run_args, ANY_NIGHT.to_owned()).map_err(|f| unmended(job.located(f)))?;
    refuse_single_night(job.documents.as_deref().unwrap_or_default()).map_err(|f| unmended(job.located(f)))?;
    let session = Session::new(&job, global);
    let checked = session.block_on(|storage, resources, _| async move {
        nearprint_pipeline::check_places(&storage, &request, &resources).await
    });
    // Whatever is wrong is wrong in the job file, or about to be.
    let has_store = checked.map_err(|failure| match failure.code {
        USAGE | INPUT_MISSING => Failure { code: CONFIG, ..failure },
        CONFIG => unmended(job.located(failure)),
        _ => failure,
    })?;
    let text = format!(
        "{file}: keys and values are right, and {}; the columns of the documents were not looked at\n",
        if has_store {
            "documents and store are there"
        } else {
            "documents are there; the first night makes the store"
        }
    );
    let report = session.report("config check", "done", &serde_json::json!({ "file": file }), text);
    Ok(report)
}
