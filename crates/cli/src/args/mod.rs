//! The arguments of the command line: a file for the arguments of each command, and others for what commands share.

#![allow(rustdoc::broken_intra_doc_links, reason = "clap shows these lines as they stand")]

mod audit;
mod check;
mod config;
mod diff;
mod evaluate;
mod explain;
mod file_names;
mod filter;
mod fingerprint;
mod global;
mod idf;
mod inputs;
mod join;
mod lookup;
mod manual;
mod numbers;
mod plan;
mod profile;
mod query;
mod report;
mod review;
mod run;
mod serve;
mod store;
mod tune;

use std::path::Path;

use clap::{Parser, Subcommand};

use crate::invocation::Invocation;
use crate::place::Given;

pub use audit::AuditArgs;
pub use check::CheckArgs;
pub use config::{ConfigCheckArgs, ConfigCommand, ConfigInitArgs};
pub use diff::{DiffArgs, GivenGeneration};
pub use evaluate::EvaluateArgs;
pub use explain::ExplainArgs;
pub use file_names::refuse_other_ending;
pub use filter::{FilterArgs, TextForm};
pub use fingerprint::FingerprintArgs;
pub use global::{Global, LogFormat};
pub use idf::{IdfBuildArgs, IdfCommand};
pub use inputs::InputArgs;
pub use join::{JoinArgs, MAX_PAIRS};
pub use lookup::LookupArgs;
pub use manual::{CompletionsArgs, ManArgs};
pub use plan::{ClusterArgs, PlanArgs};
pub use profile::ProfileArgs;
pub use query::QueryArgs;
pub use report::{ReportArgs, ReportFormat};
pub use review::ReviewArgs;
pub use run::{BreakerArgs, RunArgs};
pub use serve::ServeArgs;
pub use store::{CompactArgs, DropNightArgs, ForgetArgs, GcArgs, MigrateArgs, StoreArgs, StoreCommand};
pub use tune::TuneArgs;

/// Finds near-duplicate documents in nightly crawls: SimHash fingerprints, joined exactly.
///
/// Start with `nearprint config init`.
#[derive(Debug, Parser)]
#[command(name = "nearprint", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done or already published, 64 usage, 65 bad data, 66 input missing, 69 store unavailable, \
70 bug, 73 output exists, 74 local disk or memory, 75 try again, 77 permission, 78 bad config, 129/130/143 signals.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a night: fingerprint its documents, join, decide, publish, advance the store
    Run(Box<RunArgs>),
    /// Fingerprint documents into a fingerprints dataset
    Fingerprint(FingerprintArgs),
    /// Build an idf table for TF-IDF weights
    #[command(subcommand)]
    Idf(IdfCommand),
    /// Join fingerprints datasets into pairs
    Join(JoinArgs),
    /// Show the plan of a join of given sizes, and about how long the join would take
    Plan(PlanArgs),
    /// Score a profile on labelled documents
    Evaluate(EvaluateArgs),
    /// Choose distances for your own documents: draw pairs to label, then read the labels back
    Tune(TuneArgs),
    /// Explain what became of one document, or why a profile takes texts for near-duplicates
    Explain(ExplainArgs),
    /// Show the results of a published night
    Report(ReportArgs),
    /// Measure what a published night lost: compare sampled dropped documents with those that stay in their place
    Audit(AuditArgs),
    /// Look at pairs of a published night, say which are the same, and learn how precise the nights are
    Review(ReviewArgs),
    /// Show what changed between two generations of a night, in one output or in two
    Diff(DiffArgs),
    /// Write the surviving documents of published nights, in the formats of their files
    Filter(FilterArgs),
    /// Re-read everything that a store published, and compare it with the commits
    Check(CheckArgs),
    /// Find the documents of a store that are near a text or a fingerprint
    Query(QueryArgs),
    /// Answer the queries of `query` over HTTP, with a page to ask from, until SIGTERM
    Serve(ServeArgs),
    /// Create, inspect and maintain a store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Write, check and describe job files
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
}

/// The nights that a command names, which may be words in place of dates, and what tells the dates.
#[derive(Debug)]
pub struct AskedNights<'a> {
    /// The job file.
    pub config: Option<&'a Path>,
    /// The store, instead of the job file's.
    pub store: Option<&'a Given>,
    /// The nights.
    pub dts: Vec<&'a mut String>,
    /// The command makes the night, so the newest one is not meant.
    pub makes_a_night: bool,
}

impl Command {
    /// Returns the nights that the command names, or `None` if it knows none or deletes them: what is deleted is named by
    /// its date.
    pub fn asked_nights(&mut self) -> Option<AskedNights<'_>> {
        let makes_a_night = matches!(self, Self::Run(_));
        let (config, store, dts): (Option<&Path>, _, Vec<&mut String>) = match self {
            Self::Run(args) => (Some(&args.config), args.store.as_ref(), args.dt.iter_mut().collect()),
            Self::Report(args) => (Some(&args.config), None, vec![&mut args.dt]),
            Self::Audit(args) => (Some(&args.config), None, vec![&mut args.dt]),
            Self::Review(args) => (Some(&args.config), None, args.dt.iter_mut().collect()),
            Self::Diff(args) => (args.config.as_deref(), None, vec![&mut args.dt]),
            Self::Filter(args) => (Some(&args.config), None, args.dt.iter_mut().chain(args.to.as_mut()).collect()),
            Self::Check(args) => (args.config.as_deref(), args.store.as_ref(), args.dt.iter_mut().collect()),
            _ => return None,
        };
        Some(AskedNights { config, store, dts, makes_a_night })
    }

    /// Returns the name of the command, and its night if it has one.
    pub fn asked(&self) -> Invocation {
        let (command, dt) = match self {
            Self::Run(args) => ("run", args.dt.clone()),
            Self::Fingerprint(_) => ("fingerprint", None),
            Self::Idf(IdfCommand::Build(_)) => ("idf build", None),
            Self::Join(_) => ("join", None),
            Self::Plan(_) => ("plan", None),
            Self::Evaluate(_) => ("evaluate", None),
            Self::Tune(_) => ("tune", None),
            Self::Explain(_) => ("explain", None),
            Self::Report(args) => ("report", Some(args.dt.clone())),
            Self::Audit(args) => ("audit", Some(args.dt.clone())),
            Self::Review(args) => ("review", args.dt.clone()),
            Self::Diff(args) => ("diff", Some(args.dt.clone())),
            Self::Filter(args) => ("filter", args.dt.clone()),
            Self::Check(args) => ("check", args.dt.clone()),
            Self::Config(ConfigCommand::Init(_)) => ("config init", None),
            Self::Config(ConfigCommand::Check(_)) => ("config check", None),
            Self::Config(ConfigCommand::Schema) => ("config schema", None),
            Self::Completions(_) => ("completions", None),
            Self::Man(_) => ("man", None),
            Self::Query(_) => ("query", None),
            Self::Serve(_) => ("serve", None),
            Self::Store(StoreCommand::Index(_)) => ("store index", None),
            Self::Store(StoreCommand::Info(_)) => ("store info", None),
            Self::Store(StoreCommand::Check(_)) => ("store check", None),
            Self::Store(StoreCommand::Compact(_)) => ("store compact", None),
            Self::Store(StoreCommand::Migrate(_)) => ("store migrate", None),
            Self::Store(StoreCommand::Gc(_)) => ("store gc", None),
            Self::Store(StoreCommand::Init(_)) => ("store init", None),
            Self::Store(StoreCommand::Forget(_)) => ("store forget", None),
            Self::Store(StoreCommand::DropNight(args)) => ("store drop-night", Some(args.dt.clone())),
        };
        Invocation { command: command.to_owned(), dt }
    }
}
