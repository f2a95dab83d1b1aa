//! `nearprint report`.

use std::fmt::Write;

use nearprint_explain::{legible, shown_id};
use nearprint_fault::{Fault, and_more, percent};
use nearprint_night::NightSource;
use nearprint_pipeline::Resources;
use nearprint_report::{
    INDEX_NAME, NightReport, Nights, PageLinks, ReportRequest, STALE, night_markdown, night_page, night_page_name,
    nights_page,
};
use nearprint_storage::{IfExists, OutputFile, Progress, Storage};
use schemars::JsonSchema;
use serde::Serialize;

use super::night_text::text;
use super::{Outcome, Session, counted, grouped, in_bytes, night_source};
use crate::args::{Global, ReportArgs, ReportFormat};
use crate::command_line::command_line;
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

/// The number of examples in a summary, and on a page.
const IN_TEXT: usize = 5;
const ON_A_PAGE: usize = 20;

/// The page that was written for a night.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Page {
    /// The path or URL of the page.
    url: String,
    /// The size of the page in bytes.
    bytes: usize,
}

/// The summary of `report`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reported {
    #[serde(flatten)]
    night: NightReport,
    /// The page that was written. Left out without --html.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<Page>,
    /// The pages of the night and of all nights that were written. Left out without --pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pages: Vec<Page>,
}

pub(super) fn report(global: &Global, args: &ReportArgs) -> Outcome {
    let job = JobConfig::read(&args.config)?;
    let is_whole = args.html.is_some() || args.pages.is_some() || global.verbose > 0;
    let n_examples = args.examples.unwrap_or(if is_whole { ON_A_PAGE } else { IN_TEXT });
    let n_shown = if global.verbose > 0 { usize::MAX } else { args.examples.unwrap_or(ON_A_SCREEN) };
    let session = Session::new(&job, global);
    let html = args.html.as_ref().map(|place| job.folder().given(place));
    let folder = args.pages.as_ref().map(|place| job.folder().given(place));
    let request = request(&job, night_source(&job, &args.dt)?, n_examples)?;
    let done = session.block_on(|storage, resources, progress| async move {
        let night = nearprint_report::report(&storage, &request, &resources, &progress).await?;
        let page = match &html {
            Some(html) => Some(write(&storage, html, &night).await?),
            None => None,
        };
        let pages = match &folder {
            Some(folder) => write_pages(&storage, folder, &request, &night).await?,
            None => Vec::new(),
        };
        Ok::<_, Fault>(Reported { night, page, pages })
    })?;
    let mut text = match args.format {
        ReportFormat::Md => night_markdown(&done.night),
        ReportFormat::Text => text_of(&done.night, n_shown, global.verbose > 0),
    };
    if args.format == ReportFormat::Text {
        done.page.iter().chain(&done.pages).for_each(|page| text += &line(page));
    }
    let next = done.night.is_stale.then(|| {
        let config = args.config.to_string_lossy();
        command_line(["run", "--config", &*config, "--stale"])
    });
    let next = next.filter(|_| args.format == ReportFormat::Text);
    Ok(session.report("report", "done", &done, text).then(next))
}

/// Returns the request for a night of a job.
fn request(job: &JobConfig, night: NightSource, n_examples: usize) -> Result<ReportRequest, Failure> {
    let mut breakers = job.breakers;
    // The breaker does not look at nights in which a document may lose any share.
    if job.lost_share(&job.profile_config()?) >= 1.0 {
        breakers.max_mean_lost_share = 1.0;
    }
    Ok(ReportRequest { night, n_examples, breakers, settings: job.settings()? })
}

/// Returns the request for the page of a night that is about to run.
pub(super) fn page_request(job: &JobConfig, night: NightSource) -> Result<ReportRequest, Failure> {
    request(job, night, ON_A_PAGE)
}

/// Reports a published night and writes its page.
pub(super) async fn write_page(
    storage: &Storage,
    html: &str,
    request: &ReportRequest,
    resources: &Resources,
) -> Result<Page, Fault> {
    // The page is no step of the night.
    let progress = Progress::default();
    write(storage, html, &nearprint_report::report(storage, request, resources, &progress).await?).await
}

async fn write(storage: &Storage, html: &str, night: &NightReport) -> Result<Page, Fault> {
    put(storage, html, night_page(night, PageLinks::None)?).await
}

/// Writes the page of a night and that of all nights into a folder.
async fn write_pages(
    storage: &Storage,
    folder: &str,
    request: &ReportRequest,
    night: &NightReport,
) -> Result<Vec<Page>, Fault> {
    let folder = storage.folder(folder)?;
    if let Some(path) = folder.local_path() {
        std::fs::create_dir_all(path).map_err(Fault::io(path))?;
    }
    let place = |name: &str| folder.join(name).url().to_owned();
    let own = place(&night_page_name(&request.night.dt));
    let own = put(storage, &own, night_page(night, PageLinks::Beside)?).await?;
    let nights = Nights::read(storage, &request.night.store).await?;
    let names = folder.names().await?;
    let index = nights_page(&nights, |dt| names.contains(&night_page_name(dt)))?;
    Ok(vec![own, put(storage, &place(INDEX_NAME), index).await?])
}

async fn put(storage: &Storage, html: &str, content: String) -> Result<Page, Fault> {
    let content = content.into_bytes();
    let page = Page { url: html.to_owned(), bytes: content.len() };
    OutputFile::try_new(storage, html, IfExists::Replace).await?.write(content).await?;
    Ok(page)
}

/// Formats the line that names the page.
pub(super) fn line(page: &Page) -> String {
    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    let size = in_bytes(page.bytes as f64);
    format!("  {:<10} {size:>12}  {}\n", "page", legible(&page.url))
}

/// The number of examples and clusters that a terminal shows unless the user asks for more.
const ON_A_SCREEN: usize = 3;

/// Formats the report with the first examples and clusters.
fn text_of(night: &NightReport, n_shown: usize, details: bool) -> String {
    let mut out = text(&night.summary, &night.breakers, details);
    // Writing to a string cannot fail.
    let n_forgotten = night.history.night.n_forgotten;
    if n_forgotten > 0 {
        let _ =
            writeln!(out, "\n{} forgotten since; the counts are those of the run", counted(n_forgotten, "document"));
    }
    if night.is_stale {
        let _ = writeln!(out, "\n{STALE}");
    }
    if !night.largest_clusters.is_empty() {
        let _ = writeln!(out, "\nLargest clusters");
    }
    for (id, n) in night.largest_clusters.iter().take(n_shown) {
        let _ = writeln!(out, "  {:>8}  {}", grouped(*n), shown_id(id));
    }
    for example in night.examples.iter().take(n_shown) {
        let distance = example.distance.map_or(String::new(), |d| format!(" at distance {d}"));
        let lost = example.lost_share.filter(|_| example.is_near());
        let lost = lost.map_or(String::new(), |share| format!(", losing {} of its features", percent(share)));
        let more = and_more(example.n_alike);
        let like = if more.is_empty() { "" } else { " like it" };
        let _ = writeln!(out, "\nDropped ({}{distance}{lost}){more}{like}", example.reason);
        if example.excerpts.is_none() {
            let why = match example.reference {
                Some(_) => "texts of reference stores are not read",
                None => {
                    "the files with these texts are gone, have changed or cannot be read, or their night was replaced"
                }
            };
            let _ = writeln!(out, "  {why}");
        }
        // Without texts, the ids alone are shown.
        let (dropped, kept) = example.excerpts.clone().unwrap_or_default();
        for (name, id, text) in [("drop", &example.doc_id, dropped), ("keep", &example.canonical_id, kept)] {
            let store = example.reference.as_deref().filter(|_| name == "keep");
            let of = store.map_or(String::new(), |store| format!("  (reference {})", legible(store)));
            let _ = writeln!(out, "  {name}  {}{of}", shown_id(id));
            if !text.is_empty() {
                let _ = writeln!(out, "        {text}");
            }
        }
    }
    if night.examples.len() > n_shown || night.largest_clusters.len() > n_shown {
        let _ = writeln!(out, "\nMore of them: -v, --examples N, or --html FILE.html for a page");
    }
    out
}
