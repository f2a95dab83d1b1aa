//! The words of a night's texts, in a temporary file: what the judge reads.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, LargeBinaryArray, RecordBatch};
use arrow::compute::filter;
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::TextWords;
use nearprint_join::Column;
use nearprint_parquet::schema::TEXT_HASH;
use nearprint_parquet::{Columns, fixed};
use nearprint_storage::TempFolder;

/// The column of a fingerprinted document that has the words of its text.
pub(crate) const WORDS: &str = "words";

fn defect(reason: impl Display) -> Fault {
    Fault::internal("words", reason)
}

/// A file to which the words of texts are written, in order of their arrival.
#[derive(Debug)]
pub struct WordSpill {
    out: BufWriter<File>,
    end: u64,
    path: PathBuf,
    folder: TempFolder,
}

/// Where the words of a text stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordPlace {
    start: u64,
    n_bytes: u32,
}

/// The bytes that are written at once: few enough to be in the cache of a core when the kernel copies them.
const BUFFER_BYTES: usize = 1 << 18;

impl WordSpill {
    /// Creates the file in a folder of its own.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(folder: TempFolder) -> Result<Self> {
        let path = folder.path().join("words");
        // Nobody else reads the texts of a crawl.
        let options = &mut OpenOptions::new();
        let file = options.create_new(true).read(true).write(true).mode(0o600).open(&path).map_err(Fault::io(&path))?;
        Ok(Self { out: BufWriter::with_capacity(BUFFER_BYTES, file), end: 0, path, folder })
    }

    /// Writes the words of texts, of which those without words are NULL, and returns where each stands.
    pub(super) fn push(&mut self, words: &LargeBinaryArray) -> Result<Vec<Option<WordPlace>>> {
        let offsets = words.value_offsets();
        let bytes = |offset: i64| usize::try_from(offset).map_err(defect);
        let (first, last) = (bytes(offsets[0])?, bytes(offsets[words.len()])?);
        for piece in words.value_data()[first..last].chunks(BUFFER_BYTES / 8) {
            self.out.write_all(piece).map_err(Fault::io(&self.path))?;
        }
        let place = |at: usize| {
            let length = offsets[at + 1] - offsets[at];
            let n_bytes = u32::try_from(length).map_err(|_| defect("the words of a text take more than 4 GiB"))?;
            Ok(WordPlace { start: self.end + (bytes(offsets[at])? - first) as u64, n_bytes })
        };
        let places = (0..words.len()).map(|at| words.is_valid(at).then(|| place(at)).transpose());
        let places = places.collect::<Result<_>>()?;
        self.end += (last - first) as u64;
        Ok(places)
    }

    /// Ends writing.
    pub(super) fn finish(self) -> Result<SpilledWords> {
        let Self { out, path, folder, .. } = self;
        let file = out.into_inner().map_err(|e| Fault::io(&path)(e.into_error()))?;
        Ok(SpilledWords { file, path, _folder: folder })
    }
}

/// A file of words, which is removed with the last batch that has it.
#[derive(Debug)]
pub(super) struct SpilledWords {
    file: File,
    path: PathBuf,
    _folder: TempFolder,
}

impl SpilledWords {
    fn read(&self, WordPlace { start, n_bytes }: WordPlace) -> Result<TextWords> {
        let Self { file, path, .. } = self;
        let mut bytes = vec![0; n_bytes as usize];
        file.read_exact_at(&mut bytes, start).map_err(Fault::io(path))?;
        let damaged = || defect(format!("{}: the words at {start} are not those that were written", path.display()));
        TextWords::of_bytes(&bytes).ok_or_else(damaged)
    }
}

/// The words of the texts of a batch, by row.
#[derive(Debug, Clone)]
pub struct NightWords {
    pub(super) file: Arc<SpilledWords>,
    pub(super) places: Column<WordPlace>,
}

impl NightWords {
    /// Reads the words of a row. `None` means that it has none here.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, row: u32) -> Result<Option<TextWords>> {
        self.places.get(row).map(|&place| self.file.read(place)).transpose()
    }

    /// Returns the words of some rows, in their order.
    pub(super) fn take(self, rows: &[u32]) -> Self {
        Self { places: self.places.take(rows), ..self }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.places.memory_bytes()
    }
}

/// The words of some texts, collected while fingerprint tasks return them that are asked for [these](crate::SentWords::Only)
/// alone.
#[derive(Debug)]
pub struct ArrivingWords {
    spill: WordSpill,
    places: HashMap<[u8; 16], WordPlace>,
}

impl ArrivingWords {
    /// The bytes that a text takes here in memory, at most: a table has at most sixteen places for seven entries, and a byte for
    /// each place.
    pub const BYTES_OF_TEXT: usize = 16 * (size_of::<([u8; 16], WordPlace)>() + 1) / 7;

    /// Returns an empty collection with room for `n` texts, whose words go to a file.
    #[must_use]
    pub fn new(n: usize, spill: WordSpill) -> Self {
        Self { spill, places: HashMap::with_capacity(n) }
    }

    /// Adds the rows of a task. A text that several tasks have counts once.
    ///
    /// # Errors
    /// The file cannot be written, or the rows are not those of such a task.
    pub fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns = Columns { batch: rows, file: "words of texts" };
        let hashes = columns.bytes::<16>(TEXT_HASH)?;
        let (mut new_hashes, mut new) = (Vec::new(), Vec::with_capacity(rows.num_rows()));
        for at in 0..rows.num_rows() {
            let hash: [u8; 16] = fixed(hashes, at).ok_or_else(|| defect("a text without a hash"))?;
            let is_new = !self.places.contains_key(&hash);
            new.push(is_new);
            new_hashes.extend(is_new.then_some(hash));
        }
        let words = filter(columns.get(WORDS)?, &BooleanArray::from(new)).map_err(defect)?;
        let words = words.as_binary_opt::<i64>().ok_or_else(|| defect("words that are no bytes"))?;
        for (hash, place) in new_hashes.into_iter().zip(self.spill.push(words)?) {
            self.places.insert(hash, place.ok_or_else(|| defect("a text without words"))?);
        }
        Ok(())
    }

    /// Returns whether the words of a text have arrived.
    #[must_use]
    pub fn has(&self, text_hash: &[u8; 16]) -> bool {
        self.places.contains_key(text_hash)
    }

    /// Ends writing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<WordsOfTexts> {
        Ok(WordsOfTexts { file: self.spill.finish()?, places: self.places })
    }
}

/// The words of some texts, by the hashes of the texts.
#[derive(Debug)]
pub struct WordsOfTexts {
    file: SpilledWords,
    places: HashMap<[u8; 16], WordPlace>,
}

impl WordsOfTexts {
    /// Reads the words of a text. `None` means that they are not here.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, text_hash: &[u8; 16]) -> Result<Option<TextWords>> {
        self.places.get(text_hash).map(|&place| self.file.read(place)).transpose()
    }
}
