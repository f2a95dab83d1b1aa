//! `nearprint completions` and `nearprint man`: both are made from the arguments themselves.

use clap::CommandFactory;

use super::Outcome;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit_code::{Failure, Spent};
use crate::summary::Report;

const NAME: &str = "nearprint";

pub(super) fn completions(args: &CompletionsArgs) -> Report {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let value = serde_json::json!({ "shell": args.shell.to_string(), "script": script });
    Report::new("completions", "done", &value, Spent::default(), script)
}

pub(super) fn man(args: &ManArgs) -> Outcome {
    let done = |value, text| Ok(Report::new("man", "done", &value, Spent::default(), text));
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(|error| Failure::bug(&error.to_string()))?;
        let page = String::from_utf8_lossy(&page).into_owned();
        return done(serde_json::json!({ "page": page }), page);
    };
    let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|error| Failure::writing(dir, &error))?;
    let shown = dir.display();
    done(serde_json::json!({ "dir": dir }), format!("{shown}: written; read a page with man -l {shown}/{NAME}.1\n"))
}
