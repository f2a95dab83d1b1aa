//! Makes stores of generated fingerprints, so that a night can be measured against stores of any size.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt32Array, new_null_array};
use nearprint_parquet::schema::{DOC_ID, FINGERPRINT, N_FEATURES, RUN, SKETCH, TEXT_HASH, with_all_sketches};
use nearprint_parquet::upload;
use nearprint_profile::{ALGORITHM_VERSION, by_name};
use nearprint_storage::{Progress, Storage, TempFolder};
use nearprint_store::{ChangeSet, MadeBy, Night, NightChanges, RunWriter, StagedRun, Store, id_hash};
use nearprint_tokenize::Resources;
use xxhash_rust::xxh3::xxh3_128;

use crate::data::{Rng, Sets};
use crate::files::{column, url};
use crate::{Result, print};

/// The store to make.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of nights, 2025-01-01 and the days after it; at most 28.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=28))]
    nights: u64,
    /// Number of nights that the store has already.
    #[arg(long, default_value_t = 0)]
    after: u64,
    /// Binary logarithm of the number of documents of a night. Each takes 16 bytes of memory.
    #[arg(long, default_value_t = 24)]
    log_documents: u32,
    /// Seed of the first night; each further night has the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Profile whose fingerprints these could be.
    #[arg(long, default_value = "default")]
    profile: String,
    /// Folder of the store.
    #[arg(long)]
    output: PathBuf,
}

impl Args {
    /// Writes the nights, each with a commit. All documents are kept, and near one another only by chance. Their texts are those
    /// of [`text`], from which their fingerprints do not come.
    pub fn run(&self) -> Result<()> {
        tokio::runtime::Runtime::new()?.block_on(self.write())
    }

    async fn write(&self) -> Result<()> {
        let profile = by_name(&self.profile)?;
        let made_by = MadeBy {
            config_digest: profile.digest(&Resources::default(), &nearprint_profile::HtmlText::Main)?,
            algorithm: ALGORITHM_VERSION,
        };
        let has_sketches = profile.sketch.is_some();
        let folder = Storage::default().folder(&self.output.display().to_string())?;
        let started = Instant::now();
        for night in self.after..(self.after + self.nights).min(28) {
            std::fs::create_dir_all(&self.output)?;
            let temp = TempFolder::try_new(self.output.parent().unwrap_or(Path::new(".")))?;
            let run = self.stage(night, &temp.path().join("run"), &made_by.config_digest, has_sketches)?;
            let store = Store::open(&folder).await?;
            // A run refuses a store with nights that has no identity.
            store.make_identity().await?;
            upload(&store.run_folder(&run.record.digest), &run.files, "publish", &Progress::default()).await?;
            let dt = format!("2025-01-{:02}", night + 1);
            let night = Night {
                joined: store.joined_before(&dt),
                joined_as: None,
                run: run.record,
                output: format!("{}-results/_nearprint/dt={dt}", self.output.display()),
                request: format!("generated {dt}"),
                gen_digest: format!("generated-{dt}"),
                manifest_sha256: String::new(),
                future: false,
                redecides: false,
                has_stubs: false,
                overruled: Vec::new(),
                dt,
            };
            let set = ChangeSet { number: store.n_change_sets() + 1, ..ChangeSet::default() };
            let changes = NightChanges { set, overruled: Vec::new() };
            if !store.commit(&night, &changes, None, &made_by).await? {
                return Err(format!("{}: another writer was faster", self.output.display()).into());
            }
        }
        let n_rows = self.nights << self.log_documents;
        print(&serde_json::json!({
            "operation": "store", "n_rows": n_rows, "nights": self.nights, "seconds": started.elapsed().as_secs_f64(),
        }))
    }

    fn stage(&self, night: u64, folder: &Path, config_digest: &str, has_sketches: bool) -> Result<StagedRun> {
        let sets = Sets::new(self.log_documents, 0, 0, 0, self.seed + night);
        let columns = if has_sketches { with_all_sketches(&RUN) } else { Arc::clone(&RUN) };
        let mut writer = RunWriter::try_new(folder, config_digest, &columns)?;
        let mut ids: Vec<(u64, u32)> = Vec::with_capacity(1 << self.log_documents);
        for piece in 0..sets.n_pieces() {
            for values in sets.piece(piece).0.chunks(1 << 16) {
                for &value in values {
                    ids.push((id_hash(&url(value)), u32::try_from(ids.len())?));
                }
                let of = |name: &str| -> Result<ArrayRef> {
                    Ok(match name {
                        FINGERPRINT | DOC_ID => column(name, values)?,
                        SKETCH if has_sketches => column(name, values)?,
                        TEXT_HASH => {
                            let hashes = values.iter().map(|&value| xxh3_128(text(value).as_bytes()).to_be_bytes());
                            Arc::new(FixedSizeBinaryArray::try_from_iter(hashes)?)
                        }
                        N_FEATURES if has_sketches => Arc::new(UInt32Array::from(vec![100; values.len()])),
                        _ => new_null_array(columns.field_with_name(name)?.data_type(), values.len()),
                    })
                };
                let arrays = columns.fields().iter().map(|field| of(field.name()));
                writer.fingerprints(RecordBatch::try_new(Arc::clone(&columns), arrays.collect::<Result<_>>()?)?)?;
            }
        }
        ids.sort_unstable();
        Ok(writer.finish(ids.into_iter(), &[], Some(&[]))?)
    }
}

/// Returns the text of the document of a fingerprint: 40 of 60,000 words, as normalisation leaves it.
fn text(value: u64) -> String {
    let mut words = Rng(value);
    let words: Vec<String> = (0..40).map(|_| format!("w{:05x}", words.next() % 60_000)).collect();
    words.join(" ")
}
