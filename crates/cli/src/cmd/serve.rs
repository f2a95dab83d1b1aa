//! `nearprint serve`.

use std::sync::Arc;

use nearprint_documents::InputPolicy;
use nearprint_fault::Fault;
use nearprint_serve::{DocumentTexts, ServeOptions, Served, Server, StoreAnswers, Token};
use schemars::JsonSchema;
use serde::Serialize;

use super::query::{Opening, job};
use super::{Outcome, Session, counted};
use crate::args::{Global, ServeArgs};
use crate::exit_code::Failure;
use crate::job_config::JobConfig;
use crate::summary::{Head, Report, json_line, write};

/// The first line of `serve`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Serving {
    #[serde(flatten)]
    head: Head,
    /// The URL of the server.
    address: String,
    /// The store.
    store: String,
}

/// The work of the server until a signal stopped it.
#[derive(Serialize, JsonSchema)]
pub(super) struct ServeSummary {
    /// The signal that stopped the server: SIGINT, SIGTERM or SIGHUP.
    stopped_by: String,
    /// The number of connections that were served.
    n_connections: u64,
    /// The number of requests that were cut off at the end.
    n_cut_off: u64,
}

pub(super) fn serve(global: &Global, args: &ServeArgs) -> Outcome {
    let job = job(&args.lookup)?;
    let opening = Opening::new(global, &job, &args.lookup, args.max_matches)?;
    let (texts, resources) = (texts(&job)?, job.analyzer_resources()?);
    let options = options(args)?;
    let session = Session::new(&job, global);
    let (embedding, json) = (session.embedding.clone(), global.json);
    let (served, signal) = session.block_on_or(std::future::pending(), |storage, _, _| async move {
        let stopped = embedding.stopped();
        tokio::pin!(stopped);
        let listening = async {
            let server = Server::listen(options).await?;
            Ok::<_, Fault>((server, opening.open(&storage).await?))
        };
        let (server, lookup) = tokio::select! {
            ready = listening => ready?,
            failure = &mut stopped => return Ok::<_, Fault>((None, failure)),
        };
        announce(&server, &lookup.state().store, json);
        let answers = StoreAnswers::new(lookup, storage, texts, resources);
        let mut signal = None;
        let served = server.run(Arc::new(answers), async { signal = Some(stopped.await) }).await;
        Ok((Some(served), signal.unwrap_or_else(|| Failure::panicked(None))))
    })?;
    match served {
        Some(served) => Ok(report(&session, served, &signal)),
        None => Err(signal),
    }
}

fn options(args: &ServeArgs) -> Result<ServeOptions, Failure> {
    let token = args.token_file.as_deref().map(Token::read).transpose()?;
    Ok(ServeOptions {
        listen: args.listen,
        token,
        max_body: args.max_body.0,
        max_requests: args.max_requests.into(),
        ..ServeOptions::default()
    })
}

fn texts(job: &JobConfig) -> Result<Option<DocumentTexts>, Failure> {
    let Some(documents) = job.documents.clone() else { return Ok(None) };
    let (repeats, columns) = job.repeats()?;
    // Texts are only shown: what would stop a night does not matter.
    let policy = InputPolicy { max_ignored_files: u64::MAX, ..job.input()? };
    Ok(Some(DocumentTexts { documents, version: job.documents_version, columns, policy, repeats }))
}

/// Says where the server listens, as the first line, because only a signal ends the command.
fn announce(server: &Server, store: &str, json: bool) {
    let address = format!("http://{}", server.address());
    let line = match json {
        true => json_line(&serde_json::json!(Serving {
            head: Head::new("serve", "serving"),
            address,
            store: store.to_owned(),
        })),
        false => format!("Serving {store} at {address}\n"),
    };
    // The server serves even those who do not read this.
    let _ = write(&line);
}

/// The end of a server is a signal, whose exit code says that. It is no failure.
fn report(session: &Session, served: Served, signal: &Failure) -> Report {
    let Served { n_connections, n_cut_off } = served;
    let stopped_by = match signal.code {
        129 => "SIGHUP",
        130 => "SIGINT",
        _ => "SIGTERM",
    };
    let stopped_by = stopped_by.to_owned();
    let text = format!(
        "Stopped by {stopped_by} after {}; {} cut off\n",
        counted(n_connections, "connection"),
        counted(n_cut_off, "request")
    );
    let summary = ServeSummary { stopped_by, n_connections, n_cut_off };
    session.report("serve", "stopped", &summary, text).ended_with(signal.code)
}
