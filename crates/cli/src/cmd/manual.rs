//! `nearprint completions` and `nearprint man`: both are made from the arguments themselves.

use std::path::PathBuf;

use clap::CommandFactory;
use schemars::JsonSchema;
use serde::Serialize;

use super::Outcome;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit_code::{Failure, Spent};
use crate::summary::Report;

const NAME: &str = "nearprint";

/// The summary of `completions`.
#[derive(Serialize, JsonSchema)]
pub(super) struct CompletionScript {
    /// The shell.
    shell: String,
    /// The script.
    script: String,
}

/// The summary of `man`.
#[derive(Serialize, JsonSchema)]
pub(super) struct ManualPage {
    /// The page, in roff.
    page: String,
}

/// The summary of `man DIR`.
#[derive(Serialize, JsonSchema)]
pub(super) struct ManualPages {
    /// The folder of the pages.
    dir: PathBuf,
}

pub(super) fn completions(args: &CompletionsArgs) -> Report {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let value = CompletionScript { shell: args.shell.to_string(), script };
    Report::new("completions", "done", &value, Spent::default(), value.script.clone())
}

pub(super) fn man(args: &ManArgs) -> Outcome {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(|error| Failure::bug(&error.to_string()))?;
        let page = String::from_utf8_lossy(&page).into_owned();
        let value = ManualPage { page };
        return Ok(Report::new("man", "done", &value, Spent::default(), value.page.clone()));
    };
    let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|error| Failure::writing(dir, &error))?;
    let shown = dir.display();
    let text = format!("{shown}: written; read a page with man -l {shown}/{NAME}.1\n");
    Ok(Report::new("man", "done", &ManualPages { dir: dir.clone() }, Spent::default(), text))
}
