//! Files with seeded mutations: flipped bits, cuts, inserted, removed and swapped pieces. No mutation makes the reader
//! panic or run forever, and no wrong record comes out as if it were sound.
//!
//! The rules for every record that is returned from a mutated file:
//!
//! - It has the header and the block of a record of the sound file; or
//! - it cannot be told from a sound one: nothing that the file has speaks against it. That is a header of a plain file or
//!   of a zstd frame without checksum, and a block in such a file without a digest of its own; or
//! - it shares its member with other records, and a [`Damage`] of this member follows.
//!
//! A record comes out if the bytes of its member are in the mutated file as they were, whatever else is damaged; in a
//! plain file, if its own bytes are, at the beginning of a line. In a plain file without digests, it may be reported in
//! place because of what follows it, or be within a changed record.
//!
//! And if a record of the sound file does not come out, a [`Damage`] is returned, except if whole members are gone, or
//! if a plain file lost bytes in such a way that what is left is a file of records.
//!
//! `NEARPRINT_WARC_MUTATIONS=2000 cargo test --release --test warc mutations -- --nocapture` mutates the crawls too and says
//! how often each of this happened.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use nearprint_warc::{Damage, HttpMessage, Next, Packing, RecordLimits, Records, Slice, WarcError};
use sha1::{Digest, Sha1};

/// A file to be mutated.
struct Sample {
    name: String,
    packing: Packing,
    bytes: Vec<u8>,
    /// Each member has a checksum that all writers give it.
    has_checksums: bool,
    sound: Reading,
    /// The number of records in the file with these header and block.
    n_of: HashMap<[u8; 20], usize>,
    n_of_block: HashMap<[u8; 20], usize>,
    pieces: Vec<Piece>,
}

/// A member with whole records, or a record of a plain file.
struct Piece {
    bytes: Range<usize>,
    records: Vec<[u8; 20]>,
}

/// A record that was read.
struct Seen {
    position: u64,
    /// No other record shares its member.
    is_alone: bool,
    /// The SHA-1 of header and block, and that of the block.
    sha1: [u8; 20],
    block: [u8; 20],
    digest: Option<String>,
}

#[derive(Default)]
struct Reading {
    records: Vec<Seen>,
    damage: Vec<(u64, Damage)>,
    refused: bool,
}

#[derive(Debug, Default)]
struct Counts {
    n_mutations: usize,
    n_refused: usize,
    n_records: usize,
    n_damage: usize,
    n_unchanged: usize,
    n_unchanged_said: usize,
    n_unchanged_untold: usize,
    n_said_afterwards: usize,
    n_headers_untold: usize,
    n_blocks_untold: usize,
    n_lost_untold: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.n_mutations += other.n_mutations;
        self.n_refused += other.n_refused;
        self.n_records += other.n_records;
        self.n_damage += other.n_damage;
        self.n_unchanged += other.n_unchanged;
        self.n_unchanged_said += other.n_unchanged_said;
        self.n_unchanged_untold += other.n_unchanged_untold;
        self.n_said_afterwards += other.n_said_afterwards;
        self.n_headers_untold += other.n_headers_untold;
        self.n_blocks_untold += other.n_blocks_untold;
        self.n_lost_untold += other.n_lost_untold;
    }
}

fn read(file: &[u8], packing: Packing) -> Reading {
    let mut records = Records::new(Slice::new(file), packing, RecordLimits::default());
    let mut reading = Reading::default();
    loop {
        match records.next_record() {
            Ok(None) => return reading,
            Ok(Some(Next::Broken(broken))) => reading.damage.push((broken.position, broken.damage)),
            Ok(Some(Next::Record(record))) => {
                let block = record.block.held().unwrap();
                if let Some(message) = HttpMessage::parse(block) {
                    let _ = message.body(8 << 20);
                }
                let names = ["warc-type", "warc-target-uri", "warc-record-id", "warc-date", "content-type"];
                let header = names.map(|name| record.header.get(name).unwrap_or_default().into_owned()).join("\n");
                reading.records.push(Seen {
                    position: record.position,
                    is_alone: record.alone.is_some(),
                    sha1: Sha1::new().chain_update(header).chain_update(block).finalize().into(),
                    block: Sha1::digest(block).into(),
                    digest: record.header.get("warc-block-digest").map(String::from),
                });
            }
            Err(error) => {
                assert!(matches!(error, WarcError::Arc | WarcError::ZstdDictionary), "{error}");
                reading.refused = true;
                return reading;
            }
        }
        assert!(reading.records.len() + reading.damage.len() <= file.len() + 1, "the reading does not end");
    }
}

fn counted(hashes: impl Iterator<Item = [u8; 20]>) -> HashMap<[u8; 20], usize> {
    hashes.fold(HashMap::new(), |mut n_of, hash| {
        *n_of.entry(hash).or_default() += 1;
        n_of
    })
}

impl Sample {
    fn new(name: &str, packing: Packing, bytes: Vec<u8>, has_checksums: bool) -> Self {
        let sound = read(&bytes, packing);
        let n_of = counted(sound.records.iter().map(|record| record.sha1));
        let n_of_block = counted(sound.records.iter().map(|record| record.block));
        let pieces = Self::pieces(packing, &bytes, &sound, &n_of);
        Self { name: name.to_owned(), packing, bytes, has_checksums, sound, n_of, n_of_block, pieces }
    }

    fn pieces(packing: Packing, bytes: &[u8], sound: &Reading, n_of: &HashMap<[u8; 20], usize>) -> Vec<Piece> {
        let mut ends: Vec<usize> = match packing {
            Packing::Plain => sound.records.iter().skip(1).map(|record| record.position as usize).collect(),
            _ => {
                let sizes = members(packing, bytes).into_iter().map(<[u8]>::len);
                sizes.scan(0, |end, size| Some(std::mem::replace(end, *end + size))).skip(1).collect()
            }
        };
        ends.push(bytes.len());
        let starts = std::iter::once(0).chain(ends.clone());
        let piece = |(start, end): (usize, usize)| {
            let read = read(&bytes[start..end], packing);
            let records: Vec<_> = read.records.iter().map(|record| record.sha1).collect();
            let is_whole = read.damage.is_empty() && records.iter().all(|sha1| n_of.contains_key(sha1));
            // After damage, no record is looked for behind the rest of another one.
            let is_whole = is_whole && unpacked(packing, &bytes[start..end]).starts_with(b"WARC/");
            is_whole.then_some(Piece { bytes: start..end, records })
        };
        starts.zip(ends.iter().copied()).filter_map(piece).collect()
    }

    /// Returns where a piece is in a mutated file as it is in this one, and where a reader looks for it.
    fn unchanged(&self, file: &[u8], piece: &Piece) -> Option<usize> {
        let bytes = &self.bytes[piece.bytes.clone()];
        let begins_line = |at: usize| self.packing != Packing::Plain || at == 0 || file[at - 1] == b'\n';
        let is_at = |&at: &usize| file.get(at..).is_some_and(|file| file.starts_with(bytes)) && begins_line(at);
        let from_end = (file.len() + piece.bytes.start).checked_sub(self.bytes.len());
        let nearby = [Some(piece.bytes.start), from_end].into_iter().flatten().find(is_at);
        nearby.or_else(|| memchr::memmem::find_iter(file, bytes).find(|&at| begins_line(at)))
    }

    /// Returns whether a file is made of members of this one alone, whatever the headers of gzip say of times, and of zeros
    /// behind members of gzip.
    fn is_made_of_members(&self, file: &[u8]) -> bool {
        let members = members(self.packing, &self.bytes);
        let begins =
            |at: usize, member: &[u8]| file[at..].get(10..).is_some_and(|rest| rest.starts_with(&member[10..]));
        let mut at = 0;
        while let Some(member) = members.iter().find(|member| begins(at, member)) {
            at += member.len();
        }
        let is_padding = at > 0 && self.packing == Packing::Gzip && file[at..].iter().all(|&byte| byte == 0);
        at == file.len() || is_padding
    }

    /// Checks what was read of this file after mutations.
    fn check(&self, file: &[u8], shrinks: bool, counts: &mut Counts) {
        let reading = read(file, self.packing);
        counts.n_mutations += 1;
        counts.n_refused += usize::from(reading.refused);
        counts.n_records += reading.records.len();
        counts.n_damage += reading.damage.len();
        let mut left = self.n_of.clone();
        let (mut n_same, mut n_changed) = (0, 0);
        for record in &reading.records {
            if let Some(n) = left.get_mut(&record.sha1) {
                n_same += usize::from(*n > 0);
                *n = n.saturating_sub(1);
                continue;
            }
            n_changed += 1;
            // What follows in the same member has the positions that follow.
            let has_damage_behind = || {
                let mut behind =
                    (record.position + 1..).skip_while(|at| reading.records.iter().any(|r| r.position == *at));
                behind.next().is_some_and(|at| reading.damage.iter().any(|(position, _)| *position == at))
            };
            if self.has_checksums {
                assert!(!record.is_alone, "a member's checksum vouched for a wrong record");
                assert!(has_damage_behind(), "a wrong record of a shared member, and no damage behind it");
                counts.n_said_afterwards += 1;
            } else if self.n_of_block.contains_key(&record.block) {
                counts.n_headers_untold += 1;
            } else {
                assert!(!has_sha1(record), "a block that has not its digest");
                counts.n_blocks_untold += 1;
            }
        }
        let read: HashSet<_> = reading.records.iter().map(|record| record.sha1).collect();
        for piece in self.pieces.iter().filter(|_| !reading.refused) {
            let Some(at) = self.unchanged(file, piece) else { continue };
            let is_read = piece.records.iter().all(|sha1| read.contains(sha1));
            counts.n_unchanged += piece.records.len();
            if !is_read {
                let is_untold = self.packing == Packing::Plain && !self.sound.records.iter().all(has_sha1);
                assert!(is_untold, "{:?} is not read, though nothing changed it: {:?}", piece.bytes, reading.damage);
                let is_said = reading.damage.iter().any(|(position, _)| *position == at as u64);
                let before = reading.records.iter().take_while(|record| record.position <= at as u64).last();
                let is_within_changed = before.is_some_and(|record| !self.n_of.contains_key(&record.sha1));
                assert!(is_said || is_within_changed, "{:?} is lost: {:?}", piece.bytes, reading.damage);
                counts.n_unchanged_said += usize::from(is_said);
                counts.n_unchanged_untold += usize::from(!is_said);
            }
        }
        let n_lost = self.sound.records.len().saturating_sub(n_same + n_changed);
        if n_lost > 0 && reading.damage.is_empty() && !reading.refused {
            let is_untold = if self.has_checksums { self.is_made_of_members(file) } else { shrinks || n_changed > 0 };
            assert!(is_untold, "{n_lost} records are lost, and nothing says so");
            counts.n_lost_untold += 1;
        }
    }
}

fn has_sha1(record: &Seen) -> bool {
    let digest = record.digest.as_deref().unwrap_or_default().trim();
    let (kind, value) = digest.split_once(':').unwrap_or_default();
    kind.eq_ignore_ascii_case("sha1") && matches!(value.len(), 32 | 40)
}

/// A small generator, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 20) as usize % n.max(1)
    }

    /// A place in a file: anywhere, or within a few bytes of where a record begins.
    fn place(&mut self, sample: &Sample, file: &[u8]) -> usize {
        match self.below(4) {
            0 if !sample.sound.records.is_empty() => {
                let record = &sample.sound.records[self.below(sample.sound.records.len())];
                (record.position as usize + self.below(8)).saturating_sub(4).min(file.len())
            }
            1 if !sample.sound.records.is_empty() => {
                (sample.sound.records[self.below(sample.sound.records.len())].position as usize).min(file.len())
            }
            _ => self.below(file.len() + 1),
        }
    }
}

/// Mutates a file. Returns whether it lost bytes.
fn mutate(sample: &Sample, file: &mut Vec<u8>, random: &mut Random) -> bool {
    let (a, b) = (random.place(sample, file), random.place(sample, file));
    let (from, to) = (a.min(b), a.max(b));
    let short = from + (to - from).min(1 + random.below(300));
    match random.below(8) {
        _ if file.is_empty() => false,
        0..3 => {
            for _ in 0..=random.below(4) {
                let at = random.below(file.len());
                file[at] ^= 1 << random.below(8);
            }
            false
        }
        3 => {
            file.truncate(a);
            true
        }
        4 => {
            let noise: Vec<u8> = (0..=random.below(300)).map(|_| random.below(256) as u8).collect();
            file.splice(a..a, noise);
            false
        }
        5 => {
            let piece = file[from..short].to_vec();
            let at = random.place(sample, file);
            file.splice(at..at, piece);
            false
        }
        6 => {
            file.drain(from..if random.below(2) == 0 { short } else { to });
            true
        }
        _ => {
            // Two pieces of equal size change places.
            let n = (to - from).min(file.len() - to).min(1 + random.below(4096));
            let (head, tail) = file.split_at_mut(to);
            head[from..from + n].swap_with_slice(&mut tail[..n]);
            n > 0
        }
    }
}

fn base32(bytes: &[u8]) -> String {
    let bit = |at: usize| usize::from(bytes[at / 8] >> (7 - at % 8) & 1);
    let letter = |n: usize| (n * 5..n * 5 + 5).fold(0, |value, at| value << 1 | bit(at));
    (0..bytes.len() * 8 / 5).map(|n| char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[letter(n)])).collect()
}

/// A response of some words, whose header gives the digest of its block.
fn response(n: usize, has_digest: bool) -> Vec<u8> {
    let words: Vec<String> = (0..n * 97 % 400).map(|word| format!("<p>word{}</p>", word * n % 61)).collect();
    let body = words.join("\n");
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let digest = match has_digest {
        true => format!("WARC-Block-Digest: sha1:{}\r\n", base32(&Sha1::digest(&block))),
        false => String::new(),
    };
    let header = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:{n}>\r\nWARC-Target-URI: http://example.org/{n}\r\n\
         WARC-Date: 2026-11-20T00:00:00Z\r\n{digest}Content-Type: application/http\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [header, block, "\r\n\r\n".to_owned()].concat().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    member.write_all(bytes).unwrap();
    member.finish().unwrap()
}

fn zstd_frame(bytes: &[u8], has_checksum: bool) -> Vec<u8> {
    let mut frame = zstd::Encoder::new(Vec::new(), 3).unwrap();
    frame.include_checksum(has_checksum).unwrap();
    frame.write_all(bytes).unwrap();
    frame.finish().unwrap()
}

/// Cuts a file into its members.
fn members(packing: Packing, mut file: &[u8]) -> Vec<&[u8]> {
    let mut members = Vec::new();
    while !file.is_empty() {
        let mut rest = file;
        let read = match packing {
            Packing::Zstd => zstd::Decoder::with_buffer(&mut rest).unwrap().single_frame().read_to_end(&mut Vec::new()),
            _ => GzDecoder::new(&mut rest).read_to_end(&mut Vec::new()),
        };
        if read.is_err() {
            break;
        }
        let (member, behind) = file.split_at(file.len() - rest.len());
        members.push(member);
        file = behind;
    }
    members
}

fn unpacked(packing: Packing, member: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match packing {
        Packing::Plain => bytes.extend_from_slice(member),
        Packing::Gzip => drop(GzDecoder::new(member).read_to_end(&mut bytes)),
        Packing::Zstd => drop(zstd::Decoder::with_buffer(member).unwrap().read_to_end(&mut bytes)),
    }
    bytes
}

/// Files that need nothing: packed in every way, with digests and without.
fn own_samples() -> Vec<Sample> {
    let records = |has_digest: bool| (1..20).map(|n| response(n, has_digest)).collect::<Vec<_>>();
    let all = |pack: &dyn Fn(&[u8]) -> Vec<u8>, has_digest: bool| -> Vec<u8> {
        records(has_digest).iter().flat_map(|record| pack(record)).collect()
    };
    let shared: Vec<u8> = records(false).chunks(3).flat_map(|some| gzip(&some.concat())).collect();
    vec![
        Sample::new("own plain, digests", Packing::Plain, all(&<[u8]>::to_vec, true), false),
        Sample::new("own plain", Packing::Plain, all(&<[u8]>::to_vec, false), false),
        Sample::new("own gzip", Packing::Gzip, all(&gzip, false), true),
        Sample::new("own gzip, shared members", Packing::Gzip, shared, true),
        Sample::new("own zstd, checksums", Packing::Zstd, all(&|record| zstd_frame(record, true), false), true),
        Sample::new("own zstd, digests", Packing::Zstd, all(&|record| zstd_frame(record, false), true), false),
    ]
}

/// The samples and crawls, if they are there.
fn shared_samples(max_bytes: u64) -> Vec<Sample> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folders = ["warc_samples", "crawl_seatunnel"];
    let mut paths: Vec<_> = folders
        .iter()
        .filter_map(|folder| data.join(folder).read_dir().ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().contains(".warc") || path.to_str().unwrap().contains(".arc"))
        .filter(|path| path.metadata().unwrap().len() <= max_bytes)
        .collect();
    paths.sort();
    let sample = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let packing = Packing::of(name.trim_end_matches(".bad"));
        Sample::new(name, packing, std::fs::read(path).unwrap(), packing == Packing::Gzip)
    };
    paths.iter().map(sample).collect()
}

#[test]
fn no_mutation_of_a_file_panics_or_gives_a_wrong_record_as_if_it_were_sound() {
    let wanted = std::env::var("NEARPRINT_WARC_MUTATIONS").ok().map(|n| n.parse::<usize>().unwrap());
    let max_bytes = if wanted.is_some() { u64::MAX } else { 10_000 };
    let mut samples = own_samples();
    samples.extend(shared_samples(max_bytes));
    let n = wanted.unwrap_or(600);
    let mut counts: Vec<Counts> = samples.iter().map(|_| Counts::default()).collect();
    let mut total = Counts::default();
    for seed in 0..n {
        let which = seed % samples.len();
        let sample = &samples[which];
        let mut random = Random((seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut file = sample.bytes.clone();
        let shrinks = (0..=random.below(3)).fold(false, |shrinks, _| mutate(sample, &mut file, &mut random) | shrinks);
        let checked = std::panic::catch_unwind(|| {
            let mut counts = Counts::default();
            sample.check(&file, shrinks, &mut counts);
            counts
        });
        let found = checked.unwrap_or_else(|_| panic!("{}, seed {seed}", sample.name));
        let sum = &mut counts[which];
        sum.add(&found);
        total.add(&found);
    }
    for (name, counts) in samples.iter().map(|sample| sample.name.as_str()).zip(&counts).chain([("all", &total)]) {
        eprintln!("{name}: {counts:?}");
    }
}
