//! Input files. Each is bound to the version that was listed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use object_store::{GetOptions, GetResult, GetResultPayload, ObjectMeta, coalesce_ranges};

use crate::backend::Backend;
use crate::deleted_rows::DeletedRows;
use crate::digest::HashingWriter;
use crate::error::{bad_file, request};
use crate::row_number::in_memory;
use crate::runtime::blocking;
use crate::s3::PIECE_BYTES;

/// An object in the version that was listed. Reading it returns the bytes of that version, or an error of kind
/// [`TryAgain`](nearprint_fault::ErrorKind::TryAgain).
///
/// ```
/// use nearprint_fault::ErrorKind;
/// use nearprint_storage::Storage;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let url = temp.path().display().to_string();
/// let place = Storage::default().folder(&url)?.join("page.html");
/// place.put("<p>old</p>".into()).await?;
/// let file = place.file().await?;
/// assert_eq!(file.read_range(3..6).await?, "old");
///
/// place.put("<p>newer</p>".into()).await?;
/// assert_eq!(file.read_range(3..6).await.unwrap_err().kind(), ErrorKind::TryAgain);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct InputFile {
    backend: Backend,
    meta: ObjectMeta,
    /// The path or URL, as the user would write it.
    pub url: String,
    /// The size in bytes.
    pub size: u64,
    /// The store's name for this version of the object.
    pub version: String,
    /// The time of the last write, by the store's clock.
    pub modified: SystemTime,
    /// The rows that do not count, if the table of the file has deleted some.
    pub deleted_rows: Option<DeletedRows>,
    /// The columns of the file's table, if it knows them by numbers.
    pub column_ids: Option<Arc<ColumnIds>>,
}

/// The numbers by which a table knows its columns, by the names that lead to each. A file may have them under other names.
pub type ColumnIds = BTreeMap<Vec<String>, i32>;

/// Bytes of a local file that a stream reads at once. This is just enough to keep a disk busy, because the allocator
/// keeps a few such buffers for each thread that had one.
const DISK_PIECE_BYTES: usize = 1 << 20;
/// Bytes that a stream reads first behind the range that it is for.
const BEHIND_PIECE_BYTES: usize = 256 << 10;

/// Ranges that are nearer to each other than this many bytes are read together.
const COALESCE_BYTES: u64 = 1 << 20;
/// Ranges of [`InputFile::read_each`] that are under way at once.
const RANGES_AT_ONCE: usize = 16;
/// Requests of one long read that are under way at once.
const PIECES_AT_ONCE: usize = 4;

impl InputFile {
    /// Creates the file for an object of a listing.
    pub fn new(backend: Backend, meta: ObjectMeta, url: String) -> Self {
        // The ETag of a local file is not used. It includes the inode, but a restored copy with its old time is the
        // same version.
        let remote = meta.e_tag.clone().filter(|_| matches!(backend, Backend::Bucket(_)));
        let version = remote.unwrap_or_else(|| meta.last_modified.to_rfc3339());
        let (size, modified) = (meta.size, meta.last_modified.into());
        Self { backend, url, size, version, modified, deleted_rows: None, column_ids: None, meta }
    }

    /// Returns whether the name is that of a Parquet file.
    pub(crate) fn is_parquet(&self) -> bool {
        self.url.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("parquet"))
    }

    /// Returns the file as one of which some rows do not count.
    #[must_use]
    pub fn without(self, deleted_rows: Option<DeletedRows>) -> Self {
        Self { deleted_rows, ..self }
    }

    /// Returns the place of the file, however its path was written: its bucket, if it is in one, and its path there or on
    /// the disk.
    #[must_use]
    pub fn place(&self) -> (Option<String>, String) {
        let bucket = match &self.backend {
            Backend::Disk => None,
            Backend::Bucket(bucket) => Some(bucket.name().to_owned()),
        };
        (bucket, self.meta.location.as_ref().to_owned())
    }

    /// Returns a stream of the file's bytes, in order.
    pub fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        self.stream_past(0..self.size, self.size)
    }

    /// Returns a stream of the file's bytes from the start of a range up to `last`, in order. It is for a reader that needs
    /// little of what is behind the range: the pieces there are small at first, and each is twice as large as the one before.
    pub fn stream_past(&self, range: Range<u64>, last: u64) -> BoxStream<'static, Result<Bytes>> {
        let file = self.clone();
        let bytes = if matches!(self.backend, Backend::Disk) { DISK_PIECE_BYTES } else { PIECE_BYTES };
        let last = last.min(self.size);
        let end = range.end.min(last);
        let behind = growing_pieces(end..last, BEHIND_PIECE_BYTES, bytes);
        let pieces = pieces(range.start.min(end)..end, bytes).chain(behind).map(move |piece| {
            let file = file.clone();
            async move { file.read(piece).await }
        });
        // The next request is sent while the caller works on the bytes of the one before.
        futures::stream::iter(pieces).buffered(2).boxed()
    }

    /// Reads the whole file and returns its size in bytes and its SHA-256 in hex.
    ///
    /// # Errors
    /// The file changed since it was listed, or cannot be read.
    pub async fn sha256(&self) -> Result<(u64, String)> {
        use std::io::Write;
        let mut stream = self.stream();
        let mut hasher = HashingWriter::new(std::io::sink());
        while let Some(piece) = stream.try_next().await? {
            hasher.write_all(&piece).map_err(Fault::io(&self.url))?;
        }
        let (_, bytes, sha256) = hasher.finish();
        Ok((bytes, sha256.0))
    }

    /// Reads a range of the file's bytes.
    ///
    /// # Errors
    /// The file changed since it was listed, or cannot be read.
    ///
    /// # Panics
    /// May panic if the range ends before it starts.
    pub async fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        if range.end - range.start <= PIECE_BYTES as u64 {
            return self.read(range).await;
        }
        let mut whole = BytesMut::with_capacity(in_memory(range.end - range.start));
        let mut read =
            futures::stream::iter(pieces(range, PIECE_BYTES).map(|piece| self.read(piece))).buffered(PIECES_AT_ONCE);
        while let Some(piece) = read.try_next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// Reads a deletion vector of `bytes` bytes, its length and its checksum among them, at a byte of the file.
    ///
    /// # Errors
    /// The vector is behind the end of the file or damaged; the file changed since it was listed, or cannot be read.
    pub async fn deletion_vector(&self, at: u64, bytes: u64) -> Result<DeletedRows> {
        let Some(end) = at.checked_add(bytes).filter(|&end| end <= self.size) else {
            let reason = format!("a deletion vector of {bytes} bytes is at byte {at}, behind its end");
            return Err(bad_file(&self.url, reason));
        };
        let framed = self.read_range(at..end).await?;
        DeletedRows::of_framed(&framed).map_err(|reason| bad_file(&self.url, format!("{reason} (at byte {at})")))
    }

    /// Reads several ranges of the file's bytes and returns them in the order of `ranges`.
    ///
    /// # Errors
    /// The file changed since it was listed, or cannot be read.
    ///
    /// # Panics
    /// May panic if a range ends before it starts.
    pub async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.backend {
            Backend::Disk => self.read_local(ranges.to_vec()).await,
            Backend::Bucket(_) => coalesce_ranges(ranges, |range| self.read_range(range), COALESCE_BYTES).await,
        }
    }

    /// Reads several ranges of the file's bytes and returns them in the order of `ranges`. From a bucket, each is a
    /// request of its own, however near they are to each other, and 16 of them are under way at once.
    ///
    /// # Errors
    /// The file changed since it was listed, or cannot be read.
    ///
    /// # Panics
    /// May panic if a range ends before it starts.
    pub async fn read_each(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.backend {
            Backend::Disk => self.read_local(ranges.to_vec()).await,
            Backend::Bucket(_) => {
                let reads: Vec<_> = ranges.iter().map(|range| self.read_range(range.clone())).collect();
                futures::stream::iter(reads).buffered(RANGES_AT_ONCE).try_collect().await
            }
        }
    }

    /// Returns whether the file is an object in a bucket, where a request takes much longer than a read of a disk.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.backend, Backend::Bucket(_))
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if matches!(self.backend, Backend::Disk) {
            let unread = || Fault::internal("read", format!("{}: nothing was read", self.url));
            return self.read_local(vec![range]).await?.pop().ok_or_else(unread);
        }
        // A request cannot ask for no byte.
        if range.is_empty() {
            return self.open(GetOptions::new().with_head(true)).await.map(|_| Bytes::new());
        }
        let found = self.open(GetOptions::new().with_range(Some(range))).await?;
        found.bytes().await.map_err(request("read", &self.url))
    }

    async fn read_local(&self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        use std::os::unix::fs::FileExt;
        let GetResult { payload: GetResultPayload::File(file, path), .. } = self.open(GetOptions::default()).await?
        else {
            return Err(self.changed());
        };
        let read = blocking("read", move || {
            let bytes = |range: Range<u64>| {
                let mut bytes = vec![0; in_memory(range.end - range.start)];
                file.read_exact_at(&mut bytes, range.start).map(|()| Bytes::from(bytes))
            };
            Ok(ranges.into_iter().map(bytes).collect::<std::io::Result<_>>())
        });
        match read.await? {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.changed()),
            read => read.map_err(Fault::io(path)),
        }
    }

    /// Opens the version that was listed. Any other version is an error.
    fn open(&self, options: GetOptions) -> BoxFuture<'_, Result<GetResult>> {
        // Boxed, so that not every crate that reads files compiles it again.
        async move {
            match self.backend.store().await?.get_opts(&self.meta.location, options).await {
                Ok(found) => self.refuse_other_version(&found.meta).map(|()| found),
                Err(object_store::Error::NotFound { .. }) => Err(self.changed()),
                Err(source) if is_out_of_range(&source) => Err(self.changed()),
                Err(source) => Err(request("read", &self.url)(source)),
            }
        }
        .boxed()
    }

    /// Compares the version that was read with the one that was listed, because servers differ in how they treat a
    /// conditional read.
    fn refuse_other_version(&self, found: &ObjectMeta) -> Result<()> {
        let bare = |tag: &Option<String>| tag.as_ref().map(|tag| tag.trim_matches('"').to_owned());
        let (listed, read) = (bare(&self.meta.e_tag), bare(&found.e_tag));
        let same_tag = listed.is_none() || read.is_none() || listed == read;
        if same_tag && found.size == self.size { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> Fault {
        Fault::try_again(format!("{}: changed or removed while it was read", self.url))
    }
}

/// Returns whether a read failed because its range begins after the end of the object. That happens when the object has
/// become shorter.
fn is_out_of_range(error: &object_store::Error) -> bool {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = next {
        if cause.to_string().contains("416 Range Not Satisfiable") {
            return true;
        }
        next = cause.source();
    }
    false
}

/// Cuts a range into ranges of at most `bytes` bytes, each of which one request reads. They are of equal size, because
/// a request for a small rest would take about as long as the others.
fn pieces(range: Range<u64>, bytes: usize) -> impl Iterator<Item = Range<u64>> + Send {
    let length = range.end.saturating_sub(range.start);
    let n_pieces = length.div_ceil(bytes as u64);
    let step = length.div_ceil(n_pieces.max(1)).max(1);
    range.clone().step_by(in_memory(step)).map(move |start| start..range.end.min(start + step))
}

/// Divides a range into pieces of which each is twice as large as the one before, up to `most` bytes.
fn growing_pieces(range: Range<u64>, first: usize, most: usize) -> impl Iterator<Item = Range<u64>> + Send {
    let mut next = (range.start, first as u64);
    std::iter::from_fn(move || {
        let (start, bytes) = next;
        let end = range.end.min(start + bytes);
        next = (end, (2 * bytes).min(most as u64));
        (start < end).then_some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::{growing_pieces, pieces};

    #[test]
    fn growing_pieces_follow_each_other_and_double_up_to_the_most() {
        let pieces: Vec<_> = growing_pieces(5..40, 2, 8).collect();
        assert_eq!(pieces, [5..7, 7..11, 11..19, 19..27, 27..35, 35..40]);
        assert_eq!(growing_pieces(5..5, 2, 8).count(), 0);
    }

    #[test]
    fn pieces_follow_each_other_and_are_equal_but_for_rounding() {
        for (start, end, n_pieces) in [(5, 5, 0), (5, 6, 1), (0, 8, 1), (0, 9, 2), (3, 36, 5), (7, 7 + 64, 8)] {
            let pieces: Vec<_> = pieces(start..end, 8).collect();
            assert_eq!(pieces.len(), n_pieces, "{start}..{end}");
            let mut at = start;
            for piece in &pieces {
                assert_eq!(piece.start, at);
                at = piece.end;
            }
            assert_eq!(at, end);
            let sizes = pieces.iter().map(|piece| piece.end - piece.start);
            assert!(sizes.clone().all(|size| size <= 8), "{pieces:?}");
            let spread = sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0);
            assert!(spread <= n_pieces as u64, "{pieces:?}");
        }
    }
}
