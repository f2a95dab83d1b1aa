//! The bytes of a file, piece after piece, with a way back.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use bytes::Bytes;

/// Gives the bytes of a file in pieces of any size.
pub trait Pieces {
    /// Returns the next piece, or `None` at the end of the file.
    ///
    /// # Errors
    /// The bytes cannot be had.
    fn next_piece(&mut self) -> io::Result<Option<Bytes>>;
}

/// A file in memory, given in pieces of 64 KiB.
#[derive(Debug)]
pub struct Slice(Bytes);

impl Slice {
    /// Copies the bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl Pieces for Slice {
    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        let piece = self.0.split_to(self.0.len().min(64 << 10));
        Ok((!piece.is_empty()).then_some(piece))
    }
}

/// The most bytes behind the mark that can be read again.
const KEPT_BYTES: u64 = 32 << 20;

/// Reads pieces as one stream of bytes. It can go back to the mark, which is where the compressed member begins that is
/// read: from there the next sound member is looked for if this one is damaged.
pub struct Input<P> {
    pieces: P,
    /// The pieces from the mark on, and where in the file each begins.
    held: VecDeque<(u64, Bytes)>,
    /// The piece that is read, and the offset in it.
    piece: usize,
    offset: usize,
    /// The position in the file behind the last piece.
    end: u64,
    /// There are no further pieces.
    ended: bool,
    /// The failure of the source. Readers of the stream only see that there was one.
    failed: Option<io::Error>,
}

impl<P: Pieces> Input<P> {
    /// Creates the input of a file whose pieces begin at a position.
    pub fn new(pieces: P, start: u64) -> Self {
        let held = VecDeque::new();
        Self { pieces, held, piece: 0, offset: 0, end: start, ended: false, failed: None }
    }

    /// Returns the position in the file of the next byte.
    pub fn position(&self) -> u64 {
        self.held.get(self.piece).map_or(self.end, |(start, _)| start + self.offset as u64)
    }

    /// Returns the failure of the source, if there was one.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// Sets the mark here.
    pub fn mark(&mut self) {
        self.held.drain(..self.piece);
        self.piece = 0;
    }

    /// Goes back to a position behind the mark, or as near to it as bytes are held.
    pub fn go_back(&mut self, position: u64) {
        let at = self.held.partition_point(|(start, _)| *start <= position).saturating_sub(1);
        self.piece = at;
        self.offset = self.held.get(at).map_or(0, |(start, piece)| {
            // A position behind the piece is its end.
            usize::try_from(position.saturating_sub(*start)).unwrap_or(usize::MAX).min(piece.len())
        });
    }

    /// Returns up to `n` of the next bytes without consuming them; fewer at the end of the file.
    pub fn peek(&mut self, n: usize) -> io::Result<Vec<u8>> {
        let here = self.position();
        let mut bytes = Vec::with_capacity(n);
        while bytes.len() < n {
            let found = self.fill_buf()?;
            if found.is_empty() {
                break;
            }
            let taken = found.len().min(n - bytes.len());
            bytes.extend_from_slice(&found[..taken]);
            self.consume(taken);
        }
        self.go_back(here);
        Ok(bytes)
    }

    /// Returns the `n` bytes before the next one, or none if they are not held.
    pub fn before(&mut self, n: u64) -> io::Result<Vec<u8>> {
        let here = self.position();
        self.go_back(here.saturating_sub(n));
        let is_held = self.position() + n == here;
        let bytes = if is_held { self.peek(usize::try_from(n).unwrap_or(usize::MAX))? } else { Vec::new() };
        self.go_back(here);
        Ok(bytes)
    }

    /// Forgets the bytes that are too far behind.
    fn trim(&mut self) {
        while self.piece > 0 && self.held.front().is_some_and(|(start, _)| self.end - start > KEPT_BYTES) {
            debug_assert!(self.piece < self.held.len(), "the piece that is read stays, and what follows it");
            self.held.pop_front();
            self.piece -= 1;
        }
    }
}

impl<P: Pieces> BufRead for Input<P> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.held.get(self.piece) {
                Some((_, piece)) if self.offset < piece.len() => break,
                Some(_) => (self.piece, self.offset) = (self.piece + 1, 0),
                None if self.ended => return Ok(&[]),
                None => match self.pieces.next_piece() {
                    Ok(Some(piece)) => {
                        debug_assert!(
                            self.held.back().is_none_or(|(start, before)| start + before.len() as u64 == self.end),
                            "pieces follow each other without a gap"
                        );
                        self.held.push_back((self.end, piece.clone()));
                        self.end += piece.len() as u64;
                        self.trim();
                    }
                    Ok(None) => self.ended = true,
                    Err(error) => {
                        self.failed = Some(error);
                        return Err(io::ErrorKind::Other.into());
                    }
                },
            }
        }
        Ok(self.held.get(self.piece).map_or(&[], |(_, piece)| &piece[self.offset..]))
    }

    fn consume(&mut self, n: usize) {
        self.offset += n;
        debug_assert!(
            self.held.get(self.piece).map_or(n == 0, |(_, piece)| self.offset <= piece.len()),
            "no more is consumed than was shown"
        );
    }
}

impl<P: Pieces> Read for Input<P> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let found = self.fill_buf()?;
        let n = found.len().min(into.len());
        into[..n].copy_from_slice(&found[..n]);
        self.consume(n);
        Ok(n)
    }
}
