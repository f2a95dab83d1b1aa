//! Errors of WARC files, and the damage that does not end the reading.

/// An error that ends the reading of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WarcError {
    /// The bytes of the file could not be had.
    #[error("cannot be read past byte {position}: {source}")]
    Read {
        /// The number of bytes that were read.
        position: u64,
        /// The cause, as the source of the bytes gave it.
        source: std::io::Error,
    },
    /// The file is an ARC file, the format before WARC.
    #[error(
        "it is an ARC file, which is not read: convert it to WARC, for example with: warcio recompress OLD.arc.gz NEW.warc.gz"
    )]
    Arc,
    /// The file is packed with a dictionary of its own.
    #[error(
        "it is packed by zstd with a dictionary of its own, which is not read: pack it anew with gzip or with zstd alone"
    )]
    ZstdDictionary,
}

/// The result of reading.
pub type Result<T> = std::result::Result<T, WarcError>;

/// The reason why a stretch of a file holds no record that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The bytes do not begin with a header of a record.
    NoHeader,
    /// The header is longer than 64 KiB.
    LongHeader,
    /// The header gives no length, or none that is a number.
    NoLength,
    /// The file or the compressed member ends before the record does.
    CutOff,
    /// The record is not followed by another one or by the end of its member.
    WrongLength,
    /// The compressed member cannot be unpacked, or its checksum differs.
    BadMember,
    /// The block has not the digest that the header gives.
    WrongDigest,
}
