//! The records of a file, and what lies between them.

use std::collections::VecDeque;
use std::ops::Range;

use crate::digest;
use crate::error::{Damage, Result, WarcError};
use crate::fields::{Fields, header_end};
use crate::input::Pieces;
use crate::members::{Candidate, Got, MAX_HEADER_BYTES, Members, Packing, is_header};
use crate::seam::Seam;

/// The limits of what is held of a file.
#[derive(Debug, Clone, Copy)]
pub struct RecordLimits {
    /// The size in bytes above which a block is passed over without being held.
    pub max_block_bytes: u64,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { max_block_bytes: 64 << 20 }
    }
}

/// The block of a record: what follows its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block<'a> {
    /// The bytes.
    Held(&'a [u8]),
    /// The block is larger than it may be.
    TooLarge {
        /// The number of its bytes.
        n_bytes: u64,
        /// The first of them, as many as a header may have.
        beginning: &'a [u8],
    },
}

impl<'a> Block<'a> {
    /// Returns the bytes, if they are held.
    #[must_use]
    pub fn held(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Held(bytes) => Some(bytes),
            Self::TooLarge { .. } => None,
        }
    }
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where the record begins. In a plain file it is the offset of its first byte. In a packed file it is the offset
    /// of the member that it begins in, plus the number of records before it in that member; and always more than that
    /// of the record before.
    pub position: u64,
    /// The bytes of the file that hold this record and no other: `None` if it shares a member with another one.
    pub alone: Option<(u64, u64)>,
    /// The fields of the header.
    pub header: Fields<'a>,
    /// The block.
    pub block: Block<'a>,
}

/// A stretch of the file that holds no record that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Where it begins, as for a record.
    pub position: u64,
    /// The damage.
    pub damage: Damage,
    /// The file ends within it: nothing but more bytes is missing.
    pub cut_off: bool,
}

/// The next thing in a file.
#[derive(Debug)]
pub enum Next<'a> {
    /// A record.
    Record(Record<'a>),
    /// Something else.
    Broken(Broken),
}

/// The number of times that the bytes of a file may be hashed for digests that they do not have.
const HASHED_IN_VAIN: u64 = 16;
/// Bytes that are unpacked at once.
const STEP_BYTES: usize = 64 << 10;
/// The size of the window above which it is made smaller when it can be.
const KEPT_WINDOW_BYTES: usize = 4 << 20;

/// The bytes behind the block of a record in which its member may end.
const MEMBER_END_BYTES: usize = 64;
/// The bytes of a member by which it is told whether a record holds it.
const TOLD_BYTES: usize = 32;

/// Returns the most bytes in which so many bytes are packed as they are: writers of gzip put five bytes before each block
/// of no less than 16,000, and those of zstd put fewer.
fn stored_bytes(n: u64) -> u64 {
    n.saturating_add(n / 16_000 * 5)
}

/// Reads the records of a file, or of a span of a packed file.
///
/// A record may hold the bytes of another WARC file as they are, and only what is before it tells them apart. So the
/// reader of a span may begin within a record. [`spans_join`](crate::spans_join) tells from the [`Seam`]s of all spans
/// whether one did.
///
/// The checksum of a gzip member is known at its end. So only in a member with one record it vouches for the record
/// before that is returned; damage in a member with several is reported behind those that were read.
///
/// Memory does not grow with the file, but with the largest block that may be held.
pub struct Records<P> {
    members: Members<P>,
    packing: Packing,
    limits: RecordLimits,
    /// The positions of the members to read.
    span: Range<u64>,
    /// Where the first member begins that is read.
    first: Option<u64>,
    begun: bool,
    /// The span was read to its end.
    done: bool,
    /// Where the span ends, if that is known.
    next: Option<u64>,
    /// Damage was found.
    is_damaged: bool,
    /// The unpacked bytes: those of `at..end` are not consumed yet. Those of a step before them are kept.
    window: Vec<u8>,
    at: usize,
    end: usize,
    /// The number of unpacked bytes before the window.
    before: u64,
    /// The members that begin at or behind `at`.
    starts: VecDeque<Start>,
    /// The numbers of bytes that were unpacked and consumed after each step of unpacking, as far as no record was
    /// returned that has these bytes.
    steps: VecDeque<(u64, u64)>,
    /// A position before which all bytes belong to records that were returned.
    returned: u64,
    /// The number of unpacked bytes before those that are kept: of the step in which the last returned record ends.
    kept: u64,
    /// The length in the header of the record that is read, if it could be read.
    announced: Option<Announced>,
    /// The member that the bytes at `at` belong to, and the number of its records so far.
    member: u64,
    n_in_member: u64,
    /// The least position of what comes next.
    least: u64,
    /// The bytes of the blocks that did not have the digests in their headers.
    hashed_in_vain: u64,
    stop: Option<Stop>,
}

/// Where a member begins.
struct Start {
    /// The place in the window.
    at: usize,
    /// The position in the file.
    position: u64,
    /// The position in the file at which the member before it ended.
    ended: u64,
}

/// The length that the header of a record announces.
#[derive(Debug, Clone, Copy)]
struct Announced {
    /// The bytes of the header and the block.
    bytes: u64,
    /// The number of unpacked bytes of the file up to the record's end.
    end: u64,
    /// The block is passed over without being held.
    is_large: bool,
}

/// Why there are no bytes behind the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    End,
    Bad,
    /// The file ended within a member.
    Cut,
}

/// A record in the window.
struct FoundRecord {
    position: u64,
    alone: Option<(u64, u64)>,
    first_line_end: usize,
    header_bytes: usize,
    /// The bytes of the block, or of one that is too large.
    block: std::result::Result<usize, u64>,
    /// The bytes from the record's first to the first of what follows. Of a block that is too large, the window has the beginning
    /// alone.
    bytes: usize,
}

/// Where a record ends.
struct End {
    /// The bytes from the record's first to the first of what follows.
    bytes: usize,
    /// The bytes of the file that hold this record alone.
    alone: Option<(u64, u64)>,
    /// A checksum was read that vouches for the record.
    has_checksum: bool,
}

impl<P: Pieces> Records<P> {
    /// Creates the reader of a file.
    pub fn new(pieces: P, packing: Packing, limits: RecordLimits) -> Self {
        Self::of_span(pieces, packing, limits, 0..u64::MAX)
    }

    /// Creates the reader of a span of a packed file: of the records whose members begin within these positions. The
    /// `pieces` are the bytes from the beginning of the span to the end of the file. They are read as far as the last
    /// record of the span reaches.
    pub fn of_span(pieces: P, packing: Packing, limits: RecordLimits, span: Range<u64>) -> Self {
        Self {
            members: Members::new(pieces, packing, span.start),
            packing,
            limits,
            span,
            first: None,
            begun: false,
            done: false,
            next: None,
            is_damaged: false,
            window: Vec::new(),
            at: 0,
            end: 0,
            before: 0,
            starts: VecDeque::new(),
            steps: VecDeque::new(),
            returned: 0,
            kept: 0,
            announced: None,
            member: 0,
            n_in_member: 0,
            least: 0,
            hashed_in_vain: 0,
            stop: None,
        }
    }

    /// Returns the next record, or a stretch that holds none.
    ///
    /// # Errors
    /// The bytes of the file could not be had, or the file has a format that is not read.
    pub fn next_record(&mut self) -> Result<Option<Next<'_>>> {
        if !self.begun {
            self.begun = true;
            self.begin()?;
        }
        if self.done {
            return Ok(None);
        }
        // The last record may go on in a member that begins within it.
        let is_within = self.n_starts_before(self.at) > 0;
        self.skip_blank()?;
        self.shrink();
        let Some(place) = self.place() else {
            (self.done, self.next) = (true, Some(self.members.position()));
            return Ok(None);
        };
        // A member may have more records than bytes.
        let position = place.max(self.least);
        if self.n_in_member == 0 && place >= self.span.end {
            (self.done, self.next) = (true, (!is_within && position == place).then_some(place));
            return Ok(None);
        }
        self.least = position + 1;
        self.announced = None;
        match self.find_record(position)? {
            Ok(found) => {
                let end = self.before + (self.at + found.bytes) as u64;
                while let Some(step) = self.steps.pop_front_if(|(unpacked, _)| *unpacked <= end) {
                    (self.kept, self.returned) = step;
                }
                Ok(Some(Next::Record(self.take(&found))))
            }
            Err(damage) => {
                self.is_damaged = true;
                let damage = if self.ends_with_bad_member(damage)? { Damage::BadMember } else { damage };
                // That a plain file ends within what is damaged may show only behind it.
                let cut = self.is_cut(damage) | self.pass_over(damage)? | self.is_cut(damage);
                // If something follows, the length or the member was damaged, not the end of the file.
                let cut_off = cut && self.at == self.end && self.stop == Some(Stop::End);
                Ok(Some(Next::Broken(Broken { position, damage, cut_off })))
            }
        }
    }

    /// Returns the number of zeros with which a file of gzip ends, once it was read to its end.
    #[must_use]
    pub fn n_zeros(&self) -> u64 {
        self.members.n_zeros()
    }

    /// Returns how the span joins those beside it, once it was read to its end; `None` if that cannot be told. A span
    /// with damage joins nothing: where the reading goes on behind damage may depend on where it began.
    #[must_use]
    pub fn seam(&self) -> Option<Seam> {
        let is_sound = !self.is_damaged && self.hashed_in_vain == 0;
        debug_assert!(
            self.first.zip(self.next).is_none_or(|(first, next)| first <= next),
            "a span ends no earlier than its first record begins"
        );
        self.next.filter(|_| is_sound).map(|next| Seam { first: self.first, next })
    }

    /// Begins with the first member of the span.
    fn begin(&mut self) -> Result<()> {
        if self.span.start == 0 {
            self.first = Some(0);
            return self.members.refuse_dictionary();
        }
        if self.members.find(self.span.clone(), |_| false)? {
            self.first = Some(self.members.position());
        } else {
            (self.done, self.next) = (true, Some(self.span.end));
        }
        Ok(())
    }

    /// Unpacks until `n` bytes are in the window, or until there are no more.
    fn fill(&mut self, n: usize) -> Result<bool> {
        while self.end - self.at < n && self.stop.is_none() {
            self.make_room();
            match self.members.read(&mut self.window[self.end..])? {
                Got::Bytes(n) => {
                    self.end += n;
                    debug_assert!(self.end <= self.window.len(), "the window holds all that was read into it");
                    debug_assert!(
                        self.steps.back().is_none_or(|(unpacked, _)| *unpacked < self.before + self.end as u64),
                        "each step of reading gives more bytes"
                    );
                    self.steps.push_back((self.before + self.end as u64, self.members.position()));
                }
                Got::Member(position) => self.begin_member(position),
                Got::End => self.stop = Some(Stop::End),
                got @ (Got::Bad | Got::Cut) => {
                    if self.starts.back().map_or(self.member, |start| start.position) != self.members.start() {
                        self.begin_member(self.members.start());
                    }
                    self.stop = Some(if got == Got::Cut { Stop::Cut } else { Stop::Bad });
                }
            }
        }
        Ok(self.end - self.at >= n)
    }

    fn begin_member(&mut self, position: u64) {
        debug_assert!(
            self.starts.back().is_none_or(|before| before.at <= self.end),
            "members begin in the order of their bytes"
        );
        self.starts.push_back(Start { at: self.end, position, ended: self.members.ended() });
    }

    fn make_room(&mut self) {
        if self.window.len() - self.end >= STEP_BYTES / 4 {
            return;
        }
        let (from, held) = (self.kept_from(), self.end - self.kept_from());
        if from >= held {
            self.window.copy_within(from..self.end, 0);
            self.forget(from);
        }
        if self.window.len() - self.end < STEP_BYTES / 4 {
            let more = self.window.len().max(STEP_BYTES);
            self.window.resize(self.window.len() + more, 0);
        }
    }

    /// Frees a large window that is almost empty.
    fn shrink(&mut self) {
        if self.window.len() > KEPT_WINDOW_BYTES && self.end - self.at < STEP_BYTES {
            let from = self.kept_from().max(self.at.saturating_sub(STEP_BYTES));
            self.window = self.window[from..self.end].to_vec();
            self.forget(from);
        }
    }

    /// Returns the place in the window from which bytes are kept.
    fn kept_from(&self) -> usize {
        usize::try_from(self.kept.saturating_sub(self.before)).map_or(self.at, |kept| kept.min(self.at))
    }

    /// Counts all places from one on that is the window's first now.
    fn forget(&mut self, from: usize) {
        debug_assert!(from <= self.at, "bytes that are still to be read stay in the window");
        self.starts.iter_mut().for_each(|start| start.at = start.at.saturating_sub(from));
        self.before += from as u64;
        (self.at, self.end) = (self.at - from, self.end - from);
    }

    /// Passes over the line ends between records.
    fn skip_blank(&mut self) -> Result<()> {
        while self.fill(1)? && matches!(self.window[self.at], b'\r' | b'\n') {
            self.at += 1;
            // Line ends need not be kept, but a member that has nothing else is no part of a record that was returned.
            let end = self.before + self.at as u64;
            while let Some((unpacked, _)) = self.steps.pop_front_if(|(unpacked, _)| *unpacked <= end) {
                self.kept = unpacked;
            }
        }
        Ok(())
    }

    /// Returns the position of what comes next, or `None` at the end of the file.
    fn place(&mut self) -> Option<u64> {
        if self.at == self.end && self.stop == Some(Stop::End) {
            return None;
        }
        if self.packing == Packing::Plain {
            return Some(self.before + self.at as u64);
        }
        let mut is_new = false;
        while let Some(start) = self.starts.pop_front_if(|start| start.at <= self.at) {
            (self.member, self.n_in_member, is_new) = (start.position, 0, true);
        }
        if !is_new {
            self.n_in_member += 1;
        }
        Some(self.member + self.n_in_member)
    }

    fn find_record(&mut self, position: u64) -> Result<std::result::Result<FoundRecord, Damage>> {
        let header_bytes = match self.find_header(position)? {
            Ok(bytes) => bytes,
            Err(damage) => return Ok(Err(damage)),
        };
        let header = &self.window[self.at..self.at + header_bytes];
        let first_line_end = memchr::memchr(b'\n', header).map_or(header_bytes, |at| at + 1);
        let fields = Fields::new(&header[first_line_end..]);
        let digest = fields.get("warc-block-digest").map(String::from);
        let length = fields.get("content-length").and_then(|length| length.parse::<u64>().ok());
        let found = match length {
            None => self.find_block_of_digest(position, header_bytes, digest.as_deref(), Damage::NoLength)?,
            Some(length) => {
                let held = usize::try_from(length).ok().filter(|_| length <= self.limits.max_block_bytes);
                let bytes = (header_bytes as u64).saturating_add(length);
                let end = (self.before + self.at as u64).saturating_add(bytes);
                self.announced = Some(Announced { bytes, end, is_large: held.is_none() });
                // Where a plain file ends is known before its bytes are read.
                if held.is_none() && self.packing == Packing::Plain && end > self.span.end {
                    return Ok(Err(Damage::CutOff));
                }
                let Some(block) = held else { return self.skip_large(position, header_bytes, first_line_end, length) };
                self.find_block(position, header_bytes, block, digest.as_deref())?
            }
        };
        let (block, End { bytes, alone, .. }) = match found {
            Ok(found) => found,
            Err(damage) => return Ok(Err(damage)),
        };
        Ok(Ok(FoundRecord { position, alone, first_line_end, header_bytes, block: Ok(block), bytes }))
    }

    /// Returns the size of a block, and where its record ends. The header says that the block has `length` bytes.
    fn find_block(
        &mut self,
        position: u64,
        header_bytes: usize,
        length: usize,
        digest: Option<&str>,
    ) -> Result<std::result::Result<(usize, End), Damage>> {
        let end = match self.fill(header_bytes + length)? {
            true => self.find_end(header_bytes + length, position)?,
            false => Err(self.cut_off()),
        };
        let swallows = self.has_record_within(header_bytes + length);
        let damage = match end {
            // The length reaches over whole members that begin with records.
            Ok(_) if swallows && self.agrees(digest, header_bytes, length) != Some(true) => Damage::WrongLength,
            // A checksum says as much as the digest.
            Ok(end) if end.has_checksum || self.agrees(digest, header_bytes, length) != Some(false) => {
                return Ok(Ok((length, end)));
            }
            Ok(_) => Damage::WrongDigest,
            // What follows is damaged, not this record.
            Err(Damage::WrongLength) if self.agrees(digest, header_bytes, length) == Some(true) => {
                let end = End { bytes: header_bytes + length, alone: None, has_checksum: false };
                return Ok(Ok((length, end)));
            }
            Err(Damage::BadMember) if !swallows => return Ok(Err(Damage::BadMember)),
            // The length reaches over sound records to the bad member.
            Err(Damage::BadMember) => Damage::WrongLength,
            Err(damage) => damage,
        };
        self.find_block_of_digest(position, header_bytes, digest, damage)
    }

    /// Returns the size of a block whose length is wrong, and where its record ends: the block up to the next header, if it has the
    /// digest. Otherwise, the record has the `damage`.
    fn find_block_of_digest(
        &mut self,
        position: u64,
        header_bytes: usize,
        digest: Option<&str>,
        damage: Damage,
    ) -> Result<std::result::Result<(usize, End), Damage>> {
        if !digest.is_some_and(digest::is_known) {
            return Ok(Err(damage));
        }
        match self.block_to_next_header(header_bytes)? {
            Some(block) if self.agrees(digest, header_bytes, block) == Some(true) => {
                let end = self.find_end(header_bytes + block, position)?;
                Ok(end.map(|end| (block, end)))
            }
            _ => Ok(Err(damage)),
        }
    }

    /// Returns whether the next `block` bytes behind the header have the digest; `None` if there is no digest to compare
    /// with. Headers whose lengths reach far over each other would have the same bytes hashed again for each of them: a
    /// file with too much of that has no digest that agrees any more, so its records are damaged, and none is wrong.
    fn agrees(&mut self, digest: Option<&str>, header_bytes: usize, block: usize) -> Option<bool> {
        let digest = digest.filter(|digest| digest::is_known(digest))?;
        let passed = self.before + self.at as u64;
        let most = HASHED_IN_VAIN * passed.saturating_add(self.limits.max_block_bytes);
        if self.hashed_in_vain > most {
            return Some(false);
        }
        let from = self.at + header_bytes;
        let agrees = digest::agrees(digest, &self.window[from..from + block]);
        if agrees == Some(false) {
            self.hashed_in_vain += block as u64;
        }
        agrees
    }

    /// Returns the size of the header that begins here.
    fn find_header(&mut self, position: u64) -> Result<std::result::Result<usize, Damage>> {
        let mut wanted = 1 << 10;
        loop {
            let more = self.fill(wanted)?;
            let bytes = &self.window[self.at..self.end];
            if position == 0 && bytes.starts_with(b"filedesc:") {
                return Err(WarcError::Arc);
            }
            let n = bytes.len().min(5);
            if bytes[..n] != b"WARC/"[..n] {
                return Ok(Err(Damage::NoHeader));
            }
            if let Some(end) = header_end(&bytes[..bytes.len().min(MAX_HEADER_BYTES)]) {
                return Ok(Ok(end));
            }
            if !more {
                return Ok(Err(self.cut_off()));
            }
            if wanted >= MAX_HEADER_BYTES {
                return Ok(Err(Damage::LongHeader));
            }
            wanted *= 2;
        }
    }

    /// Returns the size of the block if it ends at the next header, or where there are no more bytes, and may be held.
    fn block_to_next_header(&mut self, header_bytes: usize) -> Result<Option<usize>> {
        let max_block = self.max_block();
        let most = max_block.saturating_add(header_bytes + MAX_HEADER_BYTES);
        let mut wanted = header_bytes + MAX_HEADER_BYTES;
        let next = loop {
            let more = self.fill(wanted)?;
            // The line end behind the header may be that before the next one.
            match self.header_in(self.at + header_bytes - 1..self.end) {
                Some(next) => break next,
                None if !more => break self.end,
                None if wanted == most => return Ok(None),
                None => wanted = wanted.saturating_mul(2).min(most),
            }
        };
        let block = self.window[self.at + header_bytes..next].strip_suffix(b"\r\n\r\n").map(<[u8]>::len);
        Ok(block.filter(|&block| block <= max_block))
    }

    fn max_block(&self) -> usize {
        // A limit beyond the memory is none.
        usize::try_from(self.limits.max_block_bytes).unwrap_or(usize::MAX)
    }

    /// Returns how many of the members in `starts` begin before a place in the window. They are told by their number:
    /// when the window moves, they are at its beginning, as a member that begins there is.
    fn n_starts_before(&self, place: usize) -> usize {
        self.starts.partition_point(|start| start.at < place)
    }

    /// Returns whether a member begins with a record within the next `n` bytes.
    fn has_record_within(&self, n: usize) -> bool {
        let end = self.at.saturating_add(n).min(self.end);
        let starts = self.starts.range(self.n_starts_before(self.at + 1)..).map(|start| start.at);
        starts.take_while(|&at| at < end).any(|at| is_header(&self.window[at..self.end]))
    }

    /// Returns whether a record is damaged because its member is, which shows at the member's end right behind it.
    fn ends_with_bad_member(&mut self, damage: Damage) -> Result<bool> {
        let Some(announced) = self.announced.filter(|_| damage == Damage::WrongLength) else { return Ok(false) };
        let left = announced.end.saturating_sub(self.before + self.at as u64);
        let Some(n) = usize::try_from(left).ok().filter(|n| self.at + n <= self.end) else { return Ok(false) };
        let goes_on = self.fill(n + MEMBER_END_BYTES)?;
        let is_alone = self.n_starts_before(self.at + 1) == self.starts.len();
        Ok(!goes_on && is_alone && matches!(self.stop, Some(Stop::Bad | Stop::Cut)))
    }

    fn cut_off(&self) -> Damage {
        if matches!(self.stop, Some(Stop::Bad | Stop::Cut)) { Damage::BadMember } else { Damage::CutOff }
    }

    /// Returns whether the file ended within what is damaged.
    fn is_cut(&self, damage: Damage) -> bool {
        match damage {
            Damage::CutOff => self.stop == Some(Stop::End) && self.packing == Packing::Plain,
            Damage::BadMember => self.stop == Some(Stop::Cut),
            _ => false,
        }
    }

    /// Passes over the line ends behind a record of `bytes` bytes. There must be another record, or the end of the
    /// member.
    fn find_end(&mut self, mut bytes: usize, position: u64) -> Result<std::result::Result<End, Damage>> {
        // A frame of zstd may have no checksum.
        let has_checksum = self.packing == Packing::Gzip;
        let (behind, most) = (bytes, self.max_block());
        let n_passed = self.n_starts_before(self.at + bytes);
        loop {
            let more = self.fill(bytes + 1)?;
            let here = self.at + bytes;
            let first = self.n_starts_before(here).max(n_passed);
            if let Some(next) = self.starts.get(first).filter(|start| start.at == here) {
                let alone = (self.n_in_member == 0).then_some((self.member, next.ended));
                return Ok(Ok(End { bytes, alone, has_checksum }));
            }
            match (more, self.stop) {
                (false, Some(Stop::Bad | Stop::Cut)) => return Ok(Err(Damage::BadMember)),
                (false, _) => {
                    let from = if self.packing == Packing::Plain { position } else { self.member };
                    let alone = (self.n_in_member == 0).then(|| (from, self.members.ended()));
                    return Ok(Ok(End { bytes, alone, has_checksum }));
                }
                // More line ends than a block may have bytes are not held either.
                (true, _) if matches!(self.window[here], b'\r' | b'\n') && bytes - behind <= most => bytes += 1,
                (true, _) => break,
            }
        }
        self.fill(bytes + 5)?;
        // The file may end within the first bytes of the next record.
        let next = &self.window[self.at + bytes..self.end];
        let n = next.len().min(5);
        if next[..n] != b"WARC/"[..n] {
            return Ok(Err(Damage::WrongLength));
        }
        // The record may begin before the window.
        let end = self.before + (self.at + bytes) as u64;
        let alone = (self.packing == Packing::Plain).then_some((position, end));
        Ok(Ok(End { bytes, alone, has_checksum: false }))
    }

    /// Passes over a block that is too large to be held.
    fn skip_large(
        &mut self,
        position: u64,
        header_bytes: usize,
        first_line_end: usize,
        length: u64,
    ) -> Result<std::result::Result<FoundRecord, Damage>> {
        let beginning = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_HEADER_BYTES);
        self.fill(header_bytes + beginning)?;
        let held = self.window[self.at..self.end.min(self.at + header_bytes + beginning)].to_vec();
        self.kept = u64::MAX;
        // The last byte that was passed stays in the window, so that `pass_over` finds a record right behind it.
        self.at += header_bytes - 1;
        let mut left = length;
        while left > 0 {
            if !self.fill(2)? {
                return Ok(Err(self.cut_off()));
            }
            // What is left and not in memory yet is read later.
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.at - 1);
            // A block may go on in a further member, but not where that begins with a record.
            let within = self.at + 1..=self.at + n;
            let first = self.starts.get(self.n_starts_before(self.at + 1));
            let Some(start) = first.map(|start| start.at).filter(|start| within.contains(start)) else {
                self.at += n;
                left -= n as u64;
                continue;
            };
            left -= (start - self.at - 1) as u64;
            self.at = start - 1;
            self.fill(1 + MAX_HEADER_BYTES)?;
            if is_header(&self.window[self.at + 1..self.end]) {
                return Ok(Err(Damage::WrongLength));
            }
            left -= 1;
            self.at += 1;
        }
        self.at += 1;
        let End { bytes: after, alone, .. } = match self.find_end(0, position)? {
            Ok(end) => end,
            Err(damage) => return Ok(Err(damage)),
        };
        // The header and the beginning of the block stand before what follows, as if the rest of the block were not there.
        self.before += (self.at + after) as u64;
        let passed = self.at + after;
        self.starts.iter_mut().for_each(|start| start.at = start.at.saturating_sub(passed) + held.len());
        self.before -= held.len() as u64;
        let rest = &self.window[self.at + after..self.end];
        self.window = [&held, rest].concat();
        (self.at, self.end) = (0, self.window.len());
        Ok(Ok(FoundRecord { position, alone, first_line_end, header_bytes, block: Err(length), bytes: held.len() }))
    }

    fn take(&mut self, found: &FoundRecord) -> Record<'_> {
        let from = self.at;
        self.at += found.bytes;
        debug_assert!(self.at <= self.end, "a record ends within what was read");
        let block = from + found.header_bytes;
        Record {
            position: found.position,
            alone: found.alone,
            header: Fields::new(&self.window[from + found.first_line_end..block]),
            block: match found.block {
                Ok(bytes) => Block::Held(&self.window[block..block + bytes]),
                Err(n_bytes) => Block::TooLarge { n_bytes, beginning: &self.window[block..self.at] },
            },
        }
    }

    /// Goes on behind damage: at the next member if this one is bad, and otherwise at the next header. Returns whether
    /// the file ended within the member that was left.
    fn pass_over(&mut self, damage: Damage) -> Result<bool> {
        if damage == Damage::BadMember {
            return self.leave_member(self.announced);
        }
        self.at = (self.at + 1).min(self.end);
        self.kept = u64::MAX;
        let n_passed = self.n_starts_before(self.at);
        loop {
            let next_member = self.starts.get(n_passed).map(|start| start.at);
            let until = next_member.unwrap_or(self.end);
            if let Some(at) = self.header_in(self.at..until) {
                self.at = at;
                return Ok(false);
            }
            if let Some(at) = next_member {
                self.at = at;
                return Ok(false);
            }
            // A header may begin in the last bytes.
            self.at = self.end.saturating_sub(MAX_HEADER_BYTES).max(self.at);
            let held = self.end - self.at;
            if !self.fill(held + STEP_BYTES)? && self.starts.len() == n_passed {
                let last = self.header_in(self.at..self.end);
                self.at = last.unwrap_or(self.end);
                // Damage that reaches to the bad rest of its member is one with it.
                return if self.at == self.end && self.stop != Some(Stop::End) {
                    self.leave_member(None)
                } else {
                    Ok(false)
                };
            }
        }
    }

    /// Leaves a member that cannot be unpacked any further, and with it the record that the header announced. Returns
    /// whether the file ended within the member.
    ///
    /// The record may hold a packed file as it is, and the member may do so whose earlier records were read. What
    /// begins a record there is none of this file. Bytes of the file are a part of a record
    ///
    /// - if they were consumed for records that were returned, or
    /// - if the member was unpacked past them, and they are as they are in the record; or
    /// - if the member was unpacked up to them, the last bytes had been packed as they are, and so many bytes of the
    ///   record were to come. How many more bytes its packing took is not known to the byte: there, what follows the
    ///   size of the member is the file's.
    ///
    /// All others may be those of the next member: damage may have made the end of this one unreadable.
    fn leave_member(&mut self, announced: Option<Announced>) -> Result<bool> {
        let is_cut = self.stop == Some(Stop::Cut);
        let position = self.members.position();
        let left = announced.map_or(0, |announced| announced.end.saturating_sub(self.before + self.end as u64));
        let left = if self.members.is_stored() { left } else { 0 };
        let (least, most) = (position.saturating_add(left), position.saturating_add(stored_bytes(left)));
        // Four line ends follow the block.
        let size = announced.filter(|_| self.n_in_member == 0).map(|announced| announced.bytes.wrapping_add(4));
        let size = size.map(u64::to_le_bytes).filter(|_| self.packing == Packing::Gzip);
        let window = std::mem::take(&mut self.window);
        let is_large = announced.is_some_and(|announced| announced.is_large);
        let mut unpacked = &window[self.kept_from()..self.end];
        let is_inner = |Candidate { position: at, before, begins }: &Candidate| {
            if *at >= position || is_large {
                let follows_size = size.is_some_and(|size| *before == size[..4]);
                return *at < least || (*at < most && !follows_size);
            }
            let found = memchr::memmem::find(unpacked, &begins[..begins.len().min(TOLD_BYTES)]);
            unpacked = &unpacked[found.map_or(0, |at| at + 1)..];
            found.is_some()
        };
        let found = self.members.find((self.members.start() + 1).max(self.returned)..u64::MAX, is_inner)?;
        self.window = window;
        self.starts.clear();
        self.steps.clear();
        (self.at, self.end) = (0, 0);
        self.kept = self.before;
        self.stop = (!found).then_some(Stop::End);
        Ok(is_cut)
    }

    /// Returns where a header begins a line in a range of the window.
    fn header_in(&self, range: Range<usize>) -> Option<usize> {
        let bytes = &self.window[range.clone()];
        let found = memchr::memmem::find_iter(bytes, b"\nWARC/").map(|at| range.start + at + 1);
        found.into_iter().find(|&at| is_header(&self.window[at..self.end]))
    }
}
