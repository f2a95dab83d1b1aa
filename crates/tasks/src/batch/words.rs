//! The words of a night's texts, in a temporary file: what the judge reads.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, LargeBinaryArray};
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::TextWords;
use nearprint_join::Column;
use nearprint_storage::TempFolder;

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

/// The words of the texts of a batch, by row. Rows have none if their texts are of earlier nights, or too short.
#[derive(Debug, Clone)]
pub struct NightWords {
    pub(super) file: Arc<SpilledWords>,
    pub(super) places: Column<WordPlace>,
}

impl NightWords {
    /// Returns whether a row has its words here.
    #[must_use]
    pub fn has(&self, row: u32) -> bool {
        self.places.get(row).is_some()
    }

    /// Reads the words of a row. `None` means that it has none here.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, row: u32) -> Result<Option<TextWords>> {
        let Some(&WordPlace { start, n_bytes }) = self.places.get(row) else { return Ok(None) };
        let SpilledWords { file, path, .. } = &*self.file;
        let mut bytes = vec![0; n_bytes as usize];
        file.read_exact_at(&mut bytes, start).map_err(Fault::io(path))?;
        let damaged = || defect(format!("{}: the words at {start} are not those that were written", path.display()));
        TextWords::of_bytes(&bytes).map(Some).ok_or_else(damaged)
    }

    /// Returns the words of some rows, in their order.
    pub(super) fn take(self, rows: &[u32]) -> Self {
        Self { places: self.places.take(rows), ..self }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.places.memory_bytes()
    }
}
