//! The compressed members of a file, one after another.

use std::io::{self, BufRead};
use std::ops::Range;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Result, WarcError};
use crate::fields::Fields;
use crate::input::{Input, Pieces};

/// The largest header of a record.
pub const MAX_HEADER_BYTES: usize = 64 << 10;

/// The packing of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// By gzip, with a member for each record or for several.
    Gzip,
    /// By zstd, with a frame for each record or for several.
    Zstd,
}

impl Packing {
    /// The ways in which a file may be packed.
    pub const PACKED: [Self; 2] = [Self::Gzip, Self::Zstd];

    /// Returns how a file is packed, according to its name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self::split(name).0
    }

    /// Returns how a file is packed, according to its name, and the name without the ending that says so. The case of
    /// the ending does not matter.
    ///
    /// ```
    /// use nearprint_warc::Packing;
    ///
    /// assert_eq!(Packing::split("a/b.HTML.GZ"), (Packing::Gzip, "a/b.HTML"));
    /// assert_eq!(Packing::split("a.gz/b.html"), (Packing::Plain, "a.gz/b.html"));
    /// ```
    #[must_use]
    pub fn split(name: &str) -> (Self, &str) {
        let packed = name.rsplit_once('.').and_then(|(stem, ending)| {
            let of_ending = |packing: &Self| packing.ending().eq_ignore_ascii_case(ending);
            Some((Self::PACKED.into_iter().find(of_ending)?, stem))
        });
        packed.unwrap_or((Self::Plain, name))
    }

    /// Returns the ending of the names of files of this kind, without its dot. A plain file has none.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Gzip => "gz",
            Self::Zstd => "zst",
        }
    }

    /// Returns the bytes with which a packed file of this kind begins. A plain file has none.
    #[must_use]
    pub fn magic(self) -> &'static [u8] {
        match self {
            Self::Plain => &[],
            Self::Gzip => b"\x1f\x8b\x08",
            Self::Zstd => b"\x28\xb5\x2f\xfd",
        }
    }
}

/// The first bytes of a zstd frame that holds a dictionary, as packed WARC files have it.
const DICTIONARY: &[u8] = b"\x5d\x2a\x4d\x18";
/// The bytes behind the first one of a skippable frame of zstd, and those of its head: these four and the size of its
/// content.
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
const SKIPPABLE_HEAD_BYTES: usize = 8;

/// The bytes by which it is told that bytes were packed as they are.
const STORED_BYTES: usize = 16;

/// The outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// So many bytes of the member.
    Bytes(usize),
    /// A member begins at this position of the file.
    Member(u64),
    /// The file ended.
    End,
    /// The member cannot be unpacked any further.
    Bad,
    /// The file ended within the member.
    Cut,
}

/// A place where a member of the file may begin.
pub struct Candidate {
    /// Where it begins.
    pub position: u64,
    /// The bytes before it: those in which a member of gzip has its unpacked size, modulo 2^32. None if they are not
    /// held.
    pub before: Vec<u8>,
    /// Its first bytes.
    pub begins: Vec<u8>,
}

/// The bytes at the end of a gzip member that hold its unpacked size.
const SIZE_BYTES: u64 = 4;

/// Unpacks the members of a file.
pub struct Members<P> {
    input: Input<P>,
    packing: Packing,
    member: Option<Unpacker>,
    /// The position at which the member begins that is read, or the frame that is passed over.
    start: u64,
    /// The position at which the member ended that was read last.
    ended: u64,
    /// The position at which the frame ends that was passed over last.
    skipped: u64,
    /// The zeros behind the last member.
    n_zeros: u64,
    /// The bytes that were unpacked last had been packed as they are.
    is_stored: bool,
    /// The member cannot be unpacked behind the bytes that were read.
    is_bad: bool,
}

enum Unpacker {
    Plain,
    Gzip(Decompress),
    Zstd(Decoder<'static>),
}

/// The outcome of a call of [`Unpacker::unpack`]: the numbers of bytes consumed and written, and what follows them.
struct Unpacked {
    consumed: usize,
    written: usize,
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    More,
    End,
    Damage,
}

impl Unpacker {
    fn new(packing: Packing) -> io::Result<Self> {
        Ok(match packing {
            Packing::Plain => Self::Plain,
            Packing::Gzip => Self::Gzip(Decompress::new_gzip(15)),
            Packing::Zstd => Self::Zstd(Decoder::new()?),
        })
    }

    /// Unpacks some bytes. What was unpacked before damage counts, wherever the bytes were divided into pieces.
    fn unpack(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<Unpacked> {
        match self {
            Self::Plain => {
                let n = from.len().min(into.len());
                into[..n].copy_from_slice(&from[..n]);
                Ok(Unpacked { consumed: n, written: n, then: Then::More })
            }
            Self::Gzip(unpacker) => {
                let (before_in, before_out) = (unpacker.total_in(), unpacker.total_out());
                let status = unpacker.decompress(from, into, FlushDecompress::None);
                // No call reads or writes more than the two slices hold.
                let since = |now: u64, before: u64| usize::try_from(now - before).unwrap_or_default();
                let (consumed, n) = (since(unpacker.total_in(), before_in), since(unpacker.total_out(), before_out));
                let then = match status {
                    Ok(Status::StreamEnd) => Then::End,
                    Ok(_) => Then::More,
                    Err(_) => Then::Damage,
                };
                Ok(Unpacked { consumed, written: n, then })
            }
            Self::Zstd(unpacker) => {
                let (mut from, mut into) = (InBuffer::around(from), OutBuffer::around(into));
                let hint = unpacker.run(&mut from, &mut into)?;
                let then = if hint == 0 { Then::End } else { Then::More };
                Ok(Unpacked { consumed: from.pos, written: into.pos(), then })
            }
        }
    }
}

/// The bytes of a member that show whether a record begins it.
const PROBE_BYTES: usize = 16 << 10;

impl<P: Pieces> Members<P> {
    /// Creates the members of a file whose pieces begin at a position.
    pub fn new(pieces: P, packing: Packing, start: u64) -> Self {
        let input = Input::new(pieces, start);
        Self {
            input,
            packing,
            member: None,
            start,
            ended: start,
            skipped: 0,
            n_zeros: 0,
            is_stored: false,
            is_bad: false,
        }
    }

    /// Returns the position at which the member begins that was read last.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the position at which the member ended that was read last. A plain file ends where it was read to.
    pub fn ended(&self) -> u64 {
        if self.packing == Packing::Plain { self.input.position() } else { self.ended }
    }

    /// Returns the number of zeros behind the last member, with which the file ends.
    pub fn n_zeros(&self) -> u64 {
        self.n_zeros
    }

    /// Returns whether the bytes that were unpacked last had been packed as they are.
    pub fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// Returns the position up to which the file was consumed.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// Reads bytes of a member, which are never none, or passes to the next member.
    ///
    /// # Errors
    /// The source of the bytes failed.
    pub fn read(&mut self, into: &mut [u8]) -> Result<Got> {
        let got = self.try_read(into);
        got.or_else(|_| self.input.take_failure().map_or(Ok(Got::Bad), |source| Err(self.failed(source))))
    }

    fn failed(&self, source: io::Error) -> WarcError {
        WarcError::Read { position: self.input.position(), source }
    }

    fn try_read(&mut self, into: &mut [u8]) -> io::Result<Got> {
        loop {
            if self.is_bad {
                return Ok(Got::Bad);
            }
            let Some(member) = &mut self.member else { return self.begin() };
            let found = self.input.fill_buf()?;
            if found.is_empty() {
                let is_plain = matches!(member, Unpacker::Plain);
                return Ok(if is_plain { Got::End } else { Got::Cut });
            }
            let Unpacked { consumed, written, then } = member.unpack(found, into)?;
            debug_assert!(consumed <= found.len() && written <= into.len(), "an unpacker stays inside both slices");
            if written >= STORED_BYTES {
                let last = &found[consumed.saturating_sub(4 * STORED_BYTES)..consumed];
                self.is_stored = memchr::memmem::find(last, &into[written - STORED_BYTES..written]).is_some();
            }
            self.input.consume(consumed);
            match then {
                Then::End => (self.member, self.ended) = (None, self.input.position()),
                Then::Damage => self.is_bad = true,
                Then::More if consumed == 0 && written == 0 => return Ok(Got::Bad),
                Then::More => {}
            }
            if written > 0 {
                return Ok(Got::Bytes(written));
            }
        }
    }

    /// Begins the member that comes next.
    fn begin(&mut self) -> io::Result<Got> {
        while self.packing == Packing::Zstd && is_skippable(&self.input.peek(SKIPPABLE_HEAD_BYTES)?) {
            if !self.pass_over()? {
                return Ok(Got::Cut);
            }
        }
        self.input.mark();
        self.start = self.input.position();
        let magic = self.packing.magic();
        let found = self.input.peek(magic.len().max(1))?;
        if found.is_empty() {
            return Ok(Got::End);
        }
        if !found.starts_with(magic) {
            let is_behind_gzip = self.packing == Packing::Gzip && self.start > 0;
            if is_behind_gzip && found.starts_with(&[0]) && self.is_padding()? {
                return Ok(Got::End);
            }
            return Ok(if magic.starts_with(&found) { Got::Cut } else { Got::Bad });
        }
        self.member = Some(Unpacker::new(self.packing)?);
        Ok(Got::Member(self.start))
    }

    /// Passes over zeros, if nothing else follows: tapes and block devices fill their last block with them. Returns whether
    /// it is so.
    fn is_padding(&mut self) -> io::Result<bool> {
        loop {
            let found = self.input.fill_buf()?;
            let n = found.len();
            if found.iter().any(|&byte| byte != 0) {
                self.input.go_back(self.start);
                return Ok(false);
            }
            if n == 0 {
                self.n_zeros = self.input.position() - self.start;
                return Ok(true);
            }
            self.input.consume(n);
        }
    }

    /// Passes over a skippable frame of zstd. Returns whether the file has all of it.
    fn pass_over(&mut self) -> io::Result<bool> {
        self.input.mark();
        self.start = self.input.position();
        let head = self.input.peek(SKIPPABLE_HEAD_BYTES)?;
        let size = head.get(SKIPPABLE.len() + 1..).and_then(|size| <[u8; 4]>::try_from(size).ok());
        // A head that is cut off is passed over as far as it goes.
        let n_bytes = SKIPPABLE_HEAD_BYTES as u64 + size.map_or(0, |size| u64::from(u32::from_le_bytes(size)));
        self.skipped = self.start + n_bytes;
        while self.input.position() < self.skipped {
            let left = self.skipped - self.input.position();
            let n = self.input.fill_buf()?.len();
            if n == 0 {
                return Ok(false);
            }
            self.input.consume(n.min(usize::try_from(left).unwrap_or(n)));
            self.input.mark();
        }
        Ok(true)
    }

    /// Refuses a file that begins as those do that are packed with a dictionary.
    ///
    /// # Errors
    /// It is such a file, or the source of the bytes failed.
    pub fn refuse_dictionary(&mut self) -> Result<()> {
        let begins = self.input.peek(DICTIONARY.len()).map_err(|source| self.failed(source))?;
        if self.packing == Packing::Zstd && begins == DICTIONARY { Err(WarcError::ZstdDictionary) } else { Ok(()) }
    }

    /// Goes on with the first member within positions that begins with a record, and is none of those of which
    /// `is_inner` says that it is a part of something else. Returns whether there is one.
    ///
    /// # Errors
    /// The source of the bytes failed.
    pub fn find(&mut self, within: Range<u64>, is_inner: impl FnMut(&Candidate) -> bool) -> Result<bool> {
        (self.member, self.is_bad) = (None, false);
        self.input.go_back(within.start.max(self.skipped));
        let found = self.try_find(within.end, is_inner);
        found.map_err(|error| {
            let source = self.input.take_failure().unwrap_or(error);
            self.failed(source)
        })
    }

    fn try_find(&mut self, end: u64, mut is_inner: impl FnMut(&Candidate) -> bool) -> io::Result<bool> {
        let magic = self.packing.magic();
        let Some(&first) = magic.first() else { return Ok(false) };
        loop {
            self.input.mark();
            let is_behind = self.input.position() >= end;
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() || is_behind {
                return Ok(false);
            }
            let Some(at) = memchr::memchr(first, bytes) else {
                let n = bytes.len();
                self.input.consume(n);
                continue;
            };
            self.input.consume(at);
            if self.input.position() >= end {
                return Ok(false);
            }
            if self.input.peek(magic.len())? == magic {
                let begins = self.input.peek(PROBE_BYTES)?;
                if begins_with_record(self.packing, &begins) {
                    let (position, before) = (self.input.position(), self.input.before(SIZE_BYTES)?);
                    if !is_inner(&Candidate { position, before, begins }) {
                        return Ok(true);
                    }
                }
            }
            self.input.consume(1);
        }
    }
}

/// Returns whether bytes begin a skippable frame of zstd. They may be cut off.
fn is_skippable(bytes: &[u8]) -> bool {
    let Some((first, rest)) = bytes.split_first() else { return false };
    let n = rest.len().min(SKIPPABLE.len());
    (0x50..=0x5f).contains(first) && rest[..n] == SKIPPABLE[..n]
}

/// Returns whether a member begins with the header of a record.
fn begins_with_record(packing: Packing, member: &[u8]) -> bool {
    let mut unpacked = vec![0; PROBE_BYTES];
    let (mut read, mut written) = (0, 0);
    let Ok(mut unpacker) = Unpacker::new(packing) else { return false };
    while let Ok(unpacking) = unpacker.unpack(&member[read..], &mut unpacked[written..]) {
        (read, written) = (read + unpacking.consumed, written + unpacking.written);
        let is_still = unpacking.consumed == 0 && unpacking.written == 0;
        if unpacking.then != Then::More || is_still || written == unpacked.len() {
            break;
        }
    }
    is_header(&unpacked[..written])
}

/// Returns whether bytes begin with the header of a record. A header that is cut off is none, and so is one with a line
/// that is no field: since the first line of a header is none, no line is looked at for many headers.
pub fn is_header(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
    if !bytes.starts_with(b"WARC/") {
        return false;
    }
    let mut end = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let is_first = end == 0;
        end += line.len();
        match line {
            b"\n" | b"\r\n" => return is_of_record(Fields::new(&bytes[..end])),
            _ if is_first || is_field(line) => {}
            _ => return false,
        }
    }
    false
}

fn is_of_record(fields: Fields<'_>) -> bool {
    fields.get("warc-type").is_some() && fields.get("content-length").is_some_and(|n| n.parse::<u64>().is_ok())
}

/// Returns whether a line is a field of a header, or goes on with one. No name of a field has a slash.
fn is_field(line: &[u8]) -> bool {
    let has_name = || line.iter().find(|byte| matches!(byte, b':' | b'/')) == Some(&b':');
    line.starts_with(b" ") || line.starts_with(b"\t") || has_name()
}
