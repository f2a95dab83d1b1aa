//! The bytes of a WARC file, for the reader of records.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use nearprint_fault::Fault;
use nearprint_storage::{InputFile, bad_file, bad_format};
use nearprint_warc::{Pieces, WarcError};
use tokio::runtime::Handle;

use super::batch::ReadBytes;

/// The bytes of a file. They must be read on a thread that may wait.
pub struct FilePieces {
    pieces: BoxStream<'static, nearprint_fault::Result<Bytes>>,
    runtime: Handle,
}

impl FilePieces {
    /// Creates the pieces, on a thread of the runtime. Those that were read are counted.
    pub fn new(file: &InputFile, read_bytes: &ReadBytes) -> Self {
        Self::of_span(file, &(0..file.size), read_bytes)
    }

    /// Creates the pieces from the start of a span on.
    pub fn of_span(file: &InputFile, span: &Range<u64>, read_bytes: &ReadBytes) -> Self {
        Self { pieces: read_bytes.stream_past(file, span.clone()), runtime: Handle::current() }
    }
}

impl Pieces for FilePieces {
    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        self.runtime.block_on(self.pieces.next()).transpose().map_err(io::Error::other)
    }
}

/// Converts an error of a file. A failure of the store keeps its kind.
pub fn of_warc(url: &str, error: WarcError) -> Fault {
    match error {
        WarcError::Read { position, source } => source
            .downcast::<Fault>()
            .map_or_else(|error| bad_file(url, format!("cannot be read past byte {position} ({error})")), Fault::from),
        other => bad_format(url, other.to_string()),
    }
}
