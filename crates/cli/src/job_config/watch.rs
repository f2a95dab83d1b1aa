//! The files that a job's nights leave for those who watch them.

use std::path::Path;

use nearprint_storage::is_date;

use super::{JobConfig, WatchConfig};
use crate::args::refuse_other_ending;
use crate::job_folder::JobFolder;
use crate::place::{Dates, refuse_unexpanded};

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    Metrics,
    Page,
    Summary,
}

impl Watched {
    const ALL: [Self; 3] = [Self::Metrics, Self::Page, Self::Summary];

    /// Returns the key of the job file that names the file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Metrics => "watch.metrics_file",
            Self::Page => "watch.report",
            Self::Summary => "watch.summary_file",
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Metrics => "prom",
            Self::Page => "html",
            Self::Summary => "json",
        }
    }

    fn place(self, config: &WatchConfig) -> Option<&str> {
        match self {
            Self::Metrics => config.metrics_file.as_deref(),
            Self::Page => config.report.as_deref(),
            Self::Summary => config.summary_file.as_deref(),
        }
    }

    /// Refuses a place that can be that of no such file.
    fn refuse(self, place: &str) -> Result<(), String> {
        refuse_unexpanded(place, Dates::Night)?;
        refuse_other_ending(Path::new(place), self.ending())
    }
}

/// A file that each night leaves.
#[derive(Debug, Clone)]
pub struct WatchFile {
    /// Its purpose.
    pub watched: Watched,
    /// The place as the job file has it, where `{dt}` stands for the night.
    place: String,
    folder: JobFolder,
}

impl WatchFile {
    /// Returns the place of the file of a night, as a command line names it. `None`: the place has the date, and this is none.
    pub fn of_night(&self, dt: &str) -> Option<String> {
        let has_place = is_date(dt) || !self.place.contains("{dt}");
        has_place.then(|| self.folder.typed(&self.place.replace("{dt}", dt)))
    }
}

impl JobConfig {
    /// Returns the files that the nights leave, but for those whose places are at fault.
    pub fn watch_files(&self) -> Vec<WatchFile> {
        let file = |(watched, place): (Watched, &str)| WatchFile {
            watched,
            place: place.to_owned(),
            folder: self.folder().clone(),
        };
        self.watch_places().filter(|(watched, place)| watched.refuse(place).is_ok()).map(file).collect()
    }

    /// Returns those whose places are at fault, each with the reason.
    pub fn unusable_watch_files(&self) -> Vec<(Watched, String)> {
        let fault = |(watched, place): (Watched, &str)| Some((watched, watched.refuse(place).err()?));
        self.watch_places().filter_map(fault).collect()
    }

    fn watch_places(&self) -> impl Iterator<Item = (Watched, &str)> {
        Watched::ALL.into_iter().filter_map(move |watched| Some((watched, watched.place(&self.watch)?)))
    }
}
