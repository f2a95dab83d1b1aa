//! Shows progress, as a bar on a terminal and as log lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nearprint_storage::{Progress, Snapshot};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

/// Sends logs to standard error. On a terminal, the bar replaces the log lines of level `info`.
pub fn init_logging(verbose: u8) {
    let quiet = std::io::stderr().is_terminal();
    let level = match (verbose, quiet) {
        (0, true) => "warn",
        (0, false) => "warn,nearprint=info,nearprint_pipeline=info",
        (1, _) => "warn,nearprint=debug,nearprint_pipeline=debug",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_env("NEARPRINT_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    // The logs of these crates contain keys, headers and server responses.
    let silent = ["aws_config", "aws_runtime", "aws_smithy_runtime", "aws_smithy_runtime_api", "aws_sigv4", "h2"];
    let directives: Vec<Directive> = silent.iter().filter_map(|name| format!("{name}=off").parse().ok()).collect();
    assert_eq!(directives.len(), silent.len(), "one that is no directive would not silence what logs keys");
    let filter = directives.into_iter().fold(filter, EnvFilter::add_directive);
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second initialisation is only possible in tests.
    let _ = subscriber.with_ansi(quiet).try_init();
}

/// The seconds between two log lines of one stage.
const LOG_SECONDS: u64 = 10;

/// Shows `progress` until the future is dropped.
pub async fn show(progress: Progress) {
    if std::io::stderr().is_terminal() { draw(progress).await } else { log(progress).await }
}

async fn draw(progress: Progress) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let sized = "{spinner} {msg:24} {bar:32} {human_pos}/{human_len} {per_sec} {elapsed}";
    let unsized_ = "{spinner} {msg:24} {human_pos} {per_sec} {elapsed}";
    let style =
        |template: &str| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let clear = ClearOnDrop(bar.clone());
    let mut stage = "";
    loop {
        let now = progress.snapshot();
        if now.stage != stage {
            stage = now.stage;
            bar.reset();
            bar.set_style(style(if now.total > 0 { sized } else { unsized_ }));
            bar.set_message(format!("{} ({})", now.stage, now.unit));
        }
        if now.total > 0 {
            bar.set_length(now.total);
        }
        bar.set_position(now.done);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _ = &clear;
    }
}

struct ClearOnDrop(ProgressBar);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

async fn log(progress: Progress) {
    let mut last: Option<Snapshot> = None;
    loop {
        tokio::time::sleep(Duration::from_secs(LOG_SECONDS)).await;
        let now = progress.snapshot();
        if now.total > 0 && last != Some(now) {
            tracing::info!(done = now.done, total = now.total, "{} ({})", now.stage, now.unit);
        }
        last = Some(now);
    }
}
