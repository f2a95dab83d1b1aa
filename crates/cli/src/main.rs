//! The `nearprint` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(nearprint_cli::run(std::env::args_os()))
}
