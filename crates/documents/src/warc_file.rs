//! The WARC files in a file: the file itself, or members of a WACZ; and their bytes, for the reader of records.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use nearprint_fault::Fault;
use nearprint_storage::{InputFile, bad_file, bad_format};
use nearprint_warc::{Packing, Pieces, RecordLimits, Records, WarcError};
use tokio::runtime::Handle;

use super::batch::ReadBytes;

/// The endings of the names of WARC files.
pub const ENDINGS: &[&str] = &["warc", "wet"];

/// A WARC file as a stretch of a file.
#[derive(Debug, Clone)]
pub struct WarcPart {
    /// The name of the member of a WACZ; `None` for a file that is a WARC file itself.
    pub member: Option<String>,
    /// The bytes of the file that are the WARC file.
    pub bytes: Range<u64>,
    /// How it is packed.
    pub packing: Packing,
    /// Its first bytes.
    pub beginning: Vec<u8>,
}

impl WarcPart {
    /// Returns a file that is a WARC file itself.
    pub fn of_file(file: &InputFile, beginning: Vec<u8>) -> Self {
        Self { member: None, bytes: 0..file.size, packing: Packing::of(&file.url), beginning }
    }

    /// Returns the number of its bytes.
    pub fn size(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Returns the place in the file of a place in the WARC file.
    pub fn place(&self, position: u64) -> u64 {
        self.bytes.start.saturating_add(position)
    }

    /// Returns a reason as it is said of the file.
    pub fn said(&self, reason: String) -> String {
        match &self.member {
            Some(member) => format!("{member} in it: {reason}"),
            None => reason,
        }
    }

    /// Returns the reader of the records of a span, on a thread of the runtime. Places are those in the WARC file. The bytes
    /// that were read are counted.
    pub fn records(
        &self,
        file: &InputFile,
        span: Range<u64>,
        limits: RecordLimits,
        read_bytes: &ReadBytes,
    ) -> Records<FilePieces> {
        let bytes = self.place(span.start)..self.place(span.end);
        let pieces = read_bytes.stream_past(file, bytes, self.bytes.end);
        let pieces = FilePieces { pieces, runtime: Handle::current() };
        Records::of_span(pieces, self.packing, limits, span)
    }

    /// Converts an error of its reader. A failure of the store keeps its kind.
    pub fn fault(&self, url: &str, error: WarcError) -> Fault {
        match error {
            WarcError::Read { position, source } => source.downcast::<Fault>().map_or_else(
                |error| bad_file(url, format!("cannot be read past byte {} ({error})", self.place(position))),
                Fault::from,
            ),
            other => bad_format(url, self.said(other.to_string())),
        }
    }
}

/// The bytes of a WARC file. They must be read on a thread that may wait.
pub struct FilePieces {
    pieces: BoxStream<'static, nearprint_fault::Result<Bytes>>,
    runtime: Handle,
}

impl Pieces for FilePieces {
    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        self.runtime.block_on(self.pieces.next()).transpose().map_err(io::Error::other)
    }
}
