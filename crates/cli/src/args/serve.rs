//! The arguments of `nearprint serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use super::lookup::LookupArgs;
use crate::bytes::Bytes;

#[derive(Debug, Clone, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    #[command(flatten)]
    pub lookup: LookupArgs,
    /// List the nearest N matches, and count the others; 0: list all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub max_matches: usize,
    /// Address and port; one that other machines can reach needs --token-file
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8099", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// File with the token that requests must carry, `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    pub token_file: Option<PathBuf>,
    /// Largest body of a request, and largest line of a stream
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = body_bytes)]
    pub max_body: Bytes,
    /// Most requests at the same time; more are told to try again (503)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_requests: u16,
}

const SERVE_EXAMPLES: &str = "Examples:
  nearprint serve --config job.toml
  nearprint serve --config job.toml --listen 0.0.0.0:8099 --token-file /etc/nearprint/token
  curl -H 'Content-Type: application/json' -d '{\"text\": \"…\"}' http://127.0.0.1:8099/query";

/// `--max-body` beyond this would let a few requests take all memory.
const MAX_BODY: usize = 1 << 30;

fn body_bytes(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    if bytes.0 > MAX_BODY { Err("at most 1GiB".to_owned()) } else { Ok(bytes) }
}

/// Parses an address with its port. A name is not looked up, because it may mean several addresses.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = || text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    let meant = || format!("write an address and a port, such as 127.0.0.1:{}", port().unwrap_or(8099));
    text.parse().map_err(|_| meant())
}
