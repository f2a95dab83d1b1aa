//! The generations of a night that lie in an output. They are found without the store, so that outputs of different
//! stores can be compared.

use nearprint_delta::TableLog;
use nearprint_fault::{Fault, Result, foreign, key, words};
use nearprint_parquet::{PUBLISHED, PublishedName, published_path};
use nearprint_storage::{Folder, InputFile, Sha256Hex, Storage};
use nearprint_store::{MANIFEST, NoSuchNight, damaged, generation_name, night_records};

use super::manifest::Manifest;
use super::request::check_date;
use super::summary::RunCounts;

/// The generations of a night in an output.
#[derive(Debug)]
pub struct Generations {
    output: Folder,
    dt: String,
    /// The generation that the tables have.
    newest: Option<String>,
    /// The generations that the tables had before, from the oldest to the newest. One may come back.
    former: Vec<String>,
    /// The generations that have a folder.
    there: Vec<String>,
}

/// A generation of a night: its manifest, and the places of its files.
#[derive(Debug)]
pub struct Generation {
    output: Folder,
    /// The night.
    pub dt: String,
    /// The digest that names the generation.
    pub digest: String,
    manifest: Manifest,
}

impl Generations {
    /// Finds the generations of a night in an output.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the output has no generation of the
    /// night; an error if the log of its table `decisions` is damaged, or if the place cannot be read.
    pub async fn open(storage: &Storage, output: &str, dt: &str) -> Result<Self> {
        check_date("dt", dt)?;
        let output = storage.folder(output)?;
        let (mut newest, mut former) = (None, Vec::new());
        for dataset in PUBLISHED.iter().filter(|dataset| dataset.name == "decisions") {
            let log = TableLog::open(&output, dataset).await?;
            newest = log.night(dt).find_map(|file| generation_in(&file.path, dt));
            for removed in log.removed() {
                former.extend(generation_in(&removed.path, dt));
            }
        }
        let names = output.join(&night_records(dt)).names().await?;
        let mut there: Vec<String> =
            names.iter().filter_map(|name| name.strip_prefix(&generation_name(""))).map(str::to_owned).collect();
        there.sort();
        if newest.is_none() && there.is_empty() {
            let what = &format!("night {dt} in these results");
            let url = output.url().to_owned();
            let remedy =
                words!["name the ", key("output"), " of the job, whose results are tables, and a published night"];
            return Err(Fault::input_missing(what, url, remedy).about(NoSuchNight { store: None }));
        }
        Ok(Self { output, dt: dt.to_owned(), newest, former, there })
    }

    /// Returns the generation that the tables have.
    ///
    /// # Errors
    /// The night is not in the tables, or its manifest is missing or damaged.
    pub async fn newest(&self) -> Result<Generation> {
        match &self.newest {
            Some(digest) => self.generation(digest).await,
            None => self.refuse("the night is not in the tables, since it was dropped or its run was killed"),
        }
    }

    /// Returns the generation that the tables had before the newest one. If their logs do not reach back as far, it is
    /// the only other one that lies there.
    ///
    /// # Errors
    /// There is no other one, it cannot be told which one it is, or its manifest is missing or damaged.
    pub async fn before_newest(&self) -> Result<Generation> {
        let is_other = |digest: &&String| self.newest.as_ref() != Some(*digest);
        if let Some(before) = self.former.iter().rev().find(is_other) {
            return self.generation(before).await;
        }
        let others: Vec<&String> = self.there.iter().filter(is_other).collect();
        match others[..] {
            [] => self.refuse("the night has no generation before its newest"),
            [before] => self.generation(before).await,
            _ => self.refuse("the logs of the tables do not say which generation came before the newest"),
        }
    }

    /// Returns the generation whose digest begins with `digits`.
    ///
    /// # Errors
    /// None or several do, or its manifest is missing or damaged.
    pub async fn named(&self, digits: &str) -> Result<Generation> {
        let named: Vec<&String> = self.there.iter().filter(|digest| digest.starts_with(digits)).collect();
        match named[..] {
            [digest] => self.generation(digest).await,
            [] => self.refuse(&format!("no generation begins with {digits}")),
            _ => self.refuse(&format!("several generations begin with {digits}")),
        }
    }

    fn refuse<T>(&self, what: &str) -> Result<T> {
        let there = if self.there.is_empty() { "none".to_owned() } else { self.there.join(", ") };
        let reason = format!("{} dt={}: {what}; those that lie there: {there}", self.output.url(), self.dt);
        Err(Fault::usage(reason))
    }

    async fn generation(&self, digest: &str) -> Result<Generation> {
        let place = self.output.join(&night_records(&self.dt)).join(&generation_name(digest)).join(MANIFEST);
        let content = place.get().await?.ok_or_else(|| gone("manifest of a generation", &place))?;
        if !Sha256Hex::of(&content).0.starts_with(digest) {
            return Err(damaged(place.url(), "its SHA-256 does not begin with its generation"));
        }
        let manifest = serde_json::from_slice(&content).map_err(|e| damaged(place.url(), foreign(&e)))?;
        Ok(Generation { output: self.output.clone(), dt: self.dt.clone(), digest: digest.to_owned(), manifest })
    }
}

/// Returns the generation in the path of a table's file, if it is one of the night.
fn generation_in(path: &str, dt: &str) -> Option<String> {
    PublishedName::parse(path).filter(|name| name.dt == dt).map(|name| name.generation.to_owned())
}

fn gone(what: &'static str, place: &Folder) -> Fault {
    let remedy = "`store gc` deletes replaced generations after its grace time: name one that is there";
    Fault::input_missing(what, place.url().to_owned(), remedy)
}

impl Generation {
    /// Returns the root of the results.
    #[must_use]
    pub fn output(&self) -> &str {
        self.output.url()
    }

    /// Returns the release that made the generation.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.manifest.nearprint
    }

    /// Returns the counts of the night.
    #[must_use]
    pub fn counts(&self) -> &RunCounts {
        &self.manifest.counts
    }

    /// Returns what the two generations were not made alike from: `release`, `algorithm`, `configuration` (of the
    /// fingerprints), `inputs` and `earlier_nights`. Other settings, such as distances or the keep order, are not in
    /// manifests.
    #[must_use]
    pub fn made_from_other(&self, other: &Self) -> Vec<&'static str> {
        let (a, b) = (&self.manifest, &other.manifest);
        let differ = [
            ("release", a.nearprint != b.nearprint),
            ("algorithm", a.algorithm != b.algorithm),
            ("configuration", a.config_digest != b.config_digest),
            ("inputs", a.inputs != b.inputs),
            ("earlier_nights", a.joined != b.joined),
        ];
        differ.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
    }

    /// Returns the files of a dataset, such as `decisions`, in order.
    ///
    /// # Errors
    /// A file is gone, or has another size than the manifest records.
    pub async fn files(&self, dataset: &str) -> Result<Vec<InputFile>> {
        let mut files = Vec::new();
        for recorded in self.manifest.files.iter().filter(|file| file.name.split('/').next() == Some(dataset)) {
            let place = self.output.join(&published_path(&recorded.name, &self.dt, &self.digest));
            let file = place.find().await?.ok_or_else(|| gone("file of a generation", &place))?;
            if file.size != recorded.bytes {
                return Err(damaged(place.url(), "it has not the size that the manifest records"));
            }
            files.push(file);
        }
        Ok(files)
    }
}
