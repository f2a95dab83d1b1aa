//! Stores of documents whose fingerprints and sketches a test chooses.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray, UInt32Array, UInt64Array, new_null_array,
};
use nearprint_lookup::{Lookup, LookupOptions, LookupProfile};
use nearprint_parquet::schema::{DOC_ID, FINGERPRINT, N_FEATURES, RUN, SHORT, SKETCH, TEXT_HASH};
use nearprint_parquet::upload;
use nearprint_profile::{ALGORITHM_VERSION, HtmlText, by_name};
use nearprint_storage::{Folder, Progress, Storage};
use nearprint_store::maintain::{IndexRequest, index};
use nearprint_store::{ChangeSet, MadeBy, Night, NightChanges, RunWriter, Store, Writers, id_hash};
use nearprint_tokenize::Resources;
use tempfile::TempDir;

/// A document: its fingerprint, and the number that makes its sketch.
pub type Document = (u64, u8);

/// A sketch whose first two words have 0 to 21 bits, by the lowest and the next three bits of `n`. So two sketches may be near in
/// one of the words, in both or in none.
pub fn sketch(n: u8) -> [u8; 32] {
    let word = |n: u8| ((1u64 << (3 * (n & 7))) - 1).to_le_bytes();
    let mut sketch = [0; 32];
    sketch[..8].copy_from_slice(&word(n));
    sketch[8..16].copy_from_slice(&word(n >> 3));
    sketch
}

pub fn profile() -> Arc<LookupProfile> {
    let config = by_name("default").unwrap();
    Arc::new(LookupProfile::try_new(config, &Resources::default(), &HtmlText::Main).unwrap())
}

/// Writes nights of documents. Every third one has no sketch. Each night has also short texts with the given hashes.
pub async fn write(
    folder: &Folder,
    scratch: &Path,
    nights: &[Vec<Document>],
    short: &[Option<[u8; 16]>],
    n_indexed: usize,
    digest: &str,
) {
    let made_by = MadeBy { config_digest: digest.to_owned(), algorithm: ALGORITHM_VERSION };
    let columns = Arc::clone(&RUN);
    for (number, documents) in nights.iter().enumerate() {
        let mut documents = documents.clone();
        documents.sort_unstable();
        let ids: Vec<String> = (0..documents.len()).map(|i| format!("{number}-{i}")).collect();
        let mut sketches: Vec<Option<[u8; 32]>> = documents.iter().map(|(_, n)| Some(sketch(*n))).collect();
        sketches.iter_mut().step_by(3).for_each(|sketch| *sketch = None);
        let of = |name: &str| -> ArrayRef {
            match name {
                FINGERPRINT => Arc::new(documents.iter().map(|(value, _)| Some(*value)).collect::<UInt64Array>()),
                DOC_ID => Arc::new(ids.iter().map(Some).collect::<StringArray>()),
                SKETCH => Arc::new(
                    FixedSizeBinaryArray::try_from_sparse_iter_with_size(sketches.iter().copied(), 32).unwrap(),
                ),
                N_FEATURES => Arc::new(UInt32Array::from(vec![100; documents.len()])),
                _ => new_null_array(columns.field_with_name(name).unwrap().data_type(), documents.len()),
            }
        };
        let arrays = columns.fields().iter().map(|field| of(field.name())).collect();
        let dt = format!("2026-11-{:02}", number + 1);
        let staged = scratch.join(&dt);
        let mut writer = RunWriter::try_new(&staged, &made_by.config_digest, &columns).unwrap();
        writer.fingerprints(RecordBatch::try_new(Arc::clone(&columns), arrays).unwrap()).unwrap();
        let mut hashes: Vec<(u64, u32)> = ids.iter().map(|id| id_hash(id)).zip(0..).collect();
        hashes.sort_unstable();
        if !short.is_empty() {
            let hashes = FixedSizeBinaryArray::try_from_sparse_iter_with_size(short.iter().copied(), 16).unwrap();
            let of = |name: &str| -> ArrayRef {
                match name {
                    TEXT_HASH => Arc::new(hashes.clone()),
                    DOC_ID => Arc::new((0..short.len()).map(|i| Some(format!("short-{i}"))).collect::<StringArray>()),
                    _ => new_null_array(SHORT.field_with_name(name).unwrap().data_type(), short.len()),
                }
            };
            let arrays = SHORT.fields().iter().map(|field| of(field.name())).collect();
            writer.short(RecordBatch::try_new(Arc::clone(&SHORT), arrays).unwrap()).unwrap();
        }
        let run = writer.finish(hashes.into_iter(), &[], Some(&[])).unwrap();
        let store = Store::open(folder).await.unwrap();
        upload(&store.run_folder(&run.record.digest), &run.files, "publish", &Progress::default()).await.unwrap();
        let night = Night {
            joined: store.joined_before(&dt),
            joined_as: None,
            run: run.record,
            output: format!("results/_nearprint/dt={dt}"),
            request: dt.clone(),
            gen_digest: dt.clone(),
            manifest_sha256: String::new(),
            future: false,
            redecides: false,
            has_stubs: false,
            overruled: Vec::new(),
            dt,
        };
        let set = ChangeSet { number: store.n_change_sets() + 1, outputs: Vec::new(), ..ChangeSet::default() };
        let changes = NightChanges { set, overruled: Vec::new() };
        assert!(store.commit(&night, &changes, None, &made_by).await.unwrap());
        if number + 1 == n_indexed {
            let request = IndexRequest { store: folder.url().to_owned(), writers: Writers::One };
            index(&Store::open(folder).await.unwrap(), &request, 1, scratch, &Progress::default()).await.unwrap();
        }
    }
}

/// A store of some nights, the first of which have an index.
pub async fn store(nights: &[Vec<Document>], n_indexed: usize) -> (TempDir, Folder) {
    let place = TempDir::new().unwrap();
    let folder = Storage::default().folder(place.path().join("store").to_str().unwrap()).unwrap();
    write(&folder, place.path(), nights, &[], n_indexed, profile().digest()).await;
    (place, folder)
}

pub async fn open(folder: &Folder, with: impl FnOnce(LookupOptions) -> LookupOptions) -> Lookup {
    let profile = profile();
    let options = with(LookupOptions::of(profile.config()));
    Lookup::open(folder, profile, options).await.unwrap()
}
