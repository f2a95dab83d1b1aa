//! The records of WARC files, and the pages in them. Bytes come in, records go out: this crate does no I/O.
//!
//! ```text
//! Pieces ─► Input (can go back to the member's start) ─► Members (gzip, zstd, plain) ─► Records ─► http_body
//! ```
//!
//! [`Records`] reads a file. It passes over what is damaged, says so with a [`Broken`], and goes on at the next record.
//!
//! ```
//! use nearprint_warc::{RecordLimits, Packing, Records, Slice, Next};
//!
//! let file = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 4\r\n\r\npage\r\n\r\n";
//! let mut records = Records::new(Slice::new(file), Packing::Plain, RecordLimits::default());
//! let Some(Next::Record(record)) = records.next_record()? else { return Err("no record".into()) };
//! assert_eq!((record.header.get("warc-type"), record.block.held()), (Some("resource".into()), Some(&b"page"[..])));
//! assert!(records.next_record()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod digest;
mod error;
mod fields;
mod http;
mod input;
mod members;
mod records;
mod seam;
mod unpack;

pub use error::{Damage, Result, WarcError};
pub use fields::Fields;
pub use http::{Body, HttpMessage};
pub use input::{Pieces, Slice};
pub use members::Packing;
pub use records::{Block, Broken, Next, Record, RecordLimits, Records};
pub use seam::{Seam, spans_join};
pub use unpack::begins_with_tag;
