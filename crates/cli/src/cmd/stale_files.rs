//! The files that each night of `run --stale` leaves for those who watch, as a run of that night leaves them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nearprint_fault::Fault;
use nearprint_night::{NightSource, RunSummary};
use nearprint_pipeline::Resources;
use nearprint_report::ReportRequest;
use nearprint_storage::{Storage, blocking, locked};
use serde_json::Value;

use super::night_summary::report_of;
use super::report::{Page, page_request, write_page};
use super::{Meter, night_source};
use crate::args::RunArgs;
use crate::beside::Beside;
use crate::exit_code::{Failure, Spent};
use crate::flags;
use crate::invocation::Invocation;
use crate::job_config::JobConfig;
use crate::job_config::watch::Watched;
use crate::job_folder::JobFolder;
use crate::metrics::Metrics;
use crate::summary::{SummaryFile, of_failure};

/// The files of all nights.
#[derive(Clone)]
pub(super) struct NightlyFiles {
    beside: Beside,
    job: JobConfig,
    store: String,
    /// The path of the job file.
    config: PathBuf,
    /// The file of metrics that the command line names.
    metrics_file: Option<PathBuf>,
    meter: Meter,
    /// The files of the night that is being made.
    current: Arc<Mutex<Option<FilesOfNight>>>,
}

impl NightlyFiles {
    pub(super) fn new(beside: &Beside, job: &JobConfig, store: &str, args: &RunArgs, meter: Meter) -> Self {
        let (config, metrics_file) = (args.config.clone(), args.metrics_file.clone());
        let (store, current) = (store.to_owned(), Arc::default());
        Self { beside: beside.clone(), job: job.clone(), store, config, metrics_file, meter, current }
    }

    /// Checks that the files of a night can be written, and deletes the summary of an earlier run of it.
    ///
    /// # Errors
    /// A file would be refused as that of a run.
    pub(super) async fn prepare(&self, dt: &str) -> Result<(), Fault> {
        let (all, dt) = (self.clone(), dt.to_owned());
        let prepared: Result<FilesOfNight, Failure> = blocking("watch", move || all.prepared(dt)).await;
        *locked(&self.current) = Some(prepared.map_err(|failure| failure.fault)?);
        Ok(())
    }

    /// Writes the files of the night that was prepared last and came to `made`. Returns why one of a published night is unwritten.
    pub(super) async fn leave(
        &self,
        storage: &Storage,
        resources: &Resources,
        made: Result<&RunSummary, &Fault>,
    ) -> Option<Fault> {
        let files = locked(&self.current).take()?;
        files.leave(storage, resources, made).await
    }

    /// Writes the files of a night that a signal or a defect ended, if one did.
    pub(super) fn leave_stopped(&self, failure: &Failure) {
        if let Some(files) = locked(&self.current).take() {
            files.leave_stopped(failure);
        }
    }

    fn prepared(self, dt: String) -> Result<FilesOfNight, Failure> {
        let beside = self.beside.of_night(&dt);
        beside.refuse_summary()?;
        beside.refuse_others()?;
        let summary = beside.of_job(Watched::Summary).map(|file| SummaryFile::prepare(Path::new(file))).transpose()?;
        let metrics = self.metrics_file.as_deref().or_else(|| beside.of_job(Watched::Metrics).map(Path::new));
        let metrics = metrics.map(|file| Metrics::prepare(file, &self.config)).transpose()?;
        let page = beside.of_job(Watched::Page).map(|html| self.page(html, &dt)).transpose()?;
        let (folder, before) = (self.job.folder().clone(), self.meter.spent());
        Ok(FilesOfNight { dt, summary, metrics, page, folder, before, meter: self.meter })
    }

    /// Returns the place of a night's page, and the request for it.
    fn page(&self, html: &str, dt: &str) -> Result<(String, ReportRequest), Failure> {
        let night = NightSource { store: self.store.clone(), ..night_source(&self.job, dt)? };
        Ok((self.job.folder().given_text(html), page_request(&self.job, night)?))
    }
}

/// The files of a night that is about to be made.
struct FilesOfNight {
    dt: String,
    summary: Option<SummaryFile>,
    metrics: Option<Metrics>,
    page: Option<(String, ReportRequest)>,
    folder: JobFolder,
    /// What the command spent before the night.
    before: Spent,
    meter: Meter,
}

impl FilesOfNight {
    /// Writes the files of a night that came to `made`. Returns why one of a published night is unwritten.
    async fn leave(self, storage: &Storage, resources: &Resources, made: Result<&RunSummary, &Fault>) -> Option<Fault> {
        let page = match (made, &self.page) {
            // A night that breakers stopped is not published: its page would be that of an earlier generation.
            (Ok(night), Some((html, request))) if night.breakers.is_empty() => {
                write_page(storage, html, request, resources).await.map(Some)
            }
            _ => Ok(None),
        };
        let (page, unwritten) = page.map_or_else(|error| (None, Some(error)), |page| (page, None));
        let summary = self.said(made, page, unwritten.as_ref());
        let unwritten = unwritten.map(|fault| fault.within("the night is published, but not its page: "));
        let Err(failure) = self.put(&summary) else { return unwritten };
        if summary["exit_code"].is_null() {
            return Some(failure.fault.within("the night is published, but not its summary: "));
        }
        tracing::warn!("no summary file: {}", failure.line());
        unwritten
    }

    fn leave_stopped(self, failure: &Failure) {
        let fault = failure.fault.clone();
        let failed = Failure { spent: Some(Box::new(self.spent())), ..Failure::new(failure.code, fault.words()) };
        let summary = of_failure(&failed, Some(&self.asked()));
        if let Err(failure) = self.put(&summary) {
            tracing::warn!("no summary file: {}", failure.line());
        }
    }

    fn put(self, summary: &Value) -> Result<(), Failure> {
        if let Some(metrics) = &self.metrics {
            metrics.write(summary);
        }
        self.summary.map_or(Ok(()), |file| file.write(summary))
    }

    fn spent(&self) -> Spent {
        self.meter.spent().since(&self.before)
    }

    fn asked(&self) -> Invocation {
        Invocation { command: "run".to_owned(), dt: Some(self.dt.clone()) }
    }

    /// Returns the summary that a run of the night would print.
    fn said(&self, made: Result<&RunSummary, &Fault>, page: Option<Page>, unwritten: Option<&Fault>) -> Value {
        let spent = self.spent();
        let failed = |fault: &Fault| Failure::from(fault.clone()).seen_from(&self.folder).shown_by("run", flags::named);
        match made {
            Ok(night) => {
                let report = report_of(night, page, unwritten.map(failed), spent, String::new());
                report.hinted(|failure| failure.shown_by("run", flags::named)).json
            }
            Err(error) => of_failure(&Failure { spent: Some(Box::new(spent)), ..failed(error) }, Some(&self.asked())),
        }
    }
}
