//! The tests of this crate, in one binary: linking takes longer than compiling them.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod alone;
mod asked_nights;
mod audit;
mod bad_input;
mod book;
mod breakers;
mod changes;
mod check;
mod cluster_plan;
mod compact;
mod config;
mod corpus;
mod cron;
mod diff;
mod dry_run;
mod evaluate;
mod explain;
mod faults;
mod filter;
mod forget;
mod hints;
mod histories;
mod history;
mod hostile_parquet;
mod idf;
mod inputs;
mod join;
mod judge;
mod lake;
mod memory;
mod migrate;
mod nights;
mod one_document;
mod oracle;
mod orphans;
mod outputs;
mod ownership;
mod places;
mod profiles;
mod query;
mod recrawls;
mod references;
mod repeats;
mod report;
mod review;
mod revisits;
mod s3;
mod schema;
mod serve;
#[cfg(target_os = "linux")]
mod streams;
mod structure;
mod stubs;
mod summary_file;
mod support;
mod tables;
mod terminal;
mod tidy;
mod trials_bad_input;
mod tune;
mod wacz;
mod warc;
mod watch;
