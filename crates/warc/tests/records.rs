//! Records of files that the tests write: sound ones and damaged ones.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use nearprint_warc::{
    Block, Damage, HttpMessage, Next, Packing, Pieces, RecordLimits, Records, Slice, WarcError, spans_join,
};
use proptest::prelude::*;
use sha1::{Digest, Sha1};

/// A record whose block is these bytes.
fn record(n: usize, block: &[u8]) -> Vec<u8> {
    let head =
        format!("WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <{n}>\r\nContent-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn packed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    match packing {
        Packing::Plain => bytes.to_vec(),
        Packing::Zstd => zstd::encode_all(bytes, 3).unwrap(),
        Packing::Gzip => {
            let mut member = GzEncoder::new(Vec::new(), Compression::fast());
            member.write_all(bytes).unwrap();
            member.finish().unwrap()
        }
    }
}

/// The position, the id and the block of a record that was read, or the damage.
type Seen = (u64, Result<(String, Vec<u8>), Damage>);

fn read(file: &[u8], packing: Packing, limits: RecordLimits) -> Vec<Seen> {
    all(&mut Records::new(Slice::new(file), packing, limits), file.len())
}

fn all(records: &mut Records<impl Pieces>, file_bytes: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    while let Some(next) = records.next_record().unwrap() {
        seen.push(match next {
            Next::Broken(broken) => (broken.position, Err(broken.damage)),
            Next::Record(record) => {
                let id = record.header.get("warc-record-id").unwrap_or_default().into_owned();
                (record.position, Ok((id, record.block.held().unwrap_or(b"too large").to_vec())))
            }
        });
        assert!(seen.len() <= file_bytes + 1, "the reading does not end");
    }
    seen
}

/// Reads the spans between the cuts, each by itself. Returns what they gave, and whether they join.
fn in_spans(file: &[u8], packing: Packing, mut cuts: Vec<usize>) -> (Vec<Seen>, bool) {
    cuts.extend([0, file.len()]);
    cuts.sort_unstable();
    cuts.dedup();
    let (mut seen, mut spans) = (Vec::new(), Vec::new());
    for cut in cuts.windows(2) {
        let span = cut[0] as u64..cut[1] as u64;
        let mut records = Records::of_span(Slice::new(&file[cut[0]..]), packing, RecordLimits::default(), span.clone());
        seen.extend(all(&mut records, file.len()));
        spans.push((span, records.seam()));
    }
    (seen, spans_join(file.len() as u64, spans))
}

/// A file in pieces of this many bytes.
struct Cut<'a>(std::slice::Chunks<'a, u8>);

impl Pieces for Cut<'_> {
    fn next_piece(&mut self) -> std::io::Result<Option<bytes::Bytes>> {
        Ok(self.0.next().map(bytes::Bytes::copy_from_slice))
    }
}

/// Bytes in a gzip member that holds them as they are.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::none());
    member.write_all(bytes).unwrap();
    member.finish().unwrap()
}

fn whole(file: &[u8], packing: Packing) -> Vec<Seen> {
    read(file, packing, RecordLimits::default())
}

fn blocks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let noise = proptest::collection::vec(any::<u8>(), 0..3000);
    let text = "[a-zA-Z \n]{0,300}".prop_map(String::into_bytes);
    let looks_like_records = Just(record(77, b"a record in a page"));
    let long = (1_usize..90_000).prop_map(|n| (0..n).map(|at| (at * at % 251) as u8).collect());
    proptest::collection::vec(prop_oneof![noise, text, looks_like_records, long], 1..12)
}

fn packings() -> impl Strategy<Value = Packing> {
    prop_oneof![Just(Packing::Gzip), Just(Packing::Zstd)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_record_is_read_exactly_once_whatever_it_holds_and_however_records_share_members(
        blocks in blocks(),
        packing in packings(),
        shared in 1_usize..4,
    ) {
        let records: Vec<Vec<u8>> = blocks.iter().enumerate().map(|(n, block)| record(n, block)).collect();
        let file: Vec<u8> = records.chunks(shared).flat_map(|some| packed(packing, &some.concat())).collect();
        let seen = whole(&file, packing);
        let expected = blocks.iter().enumerate().map(|(n, block)| Ok((format!("<{n}>"), block.clone())));
        prop_assert_eq!(seen.iter().map(|(_, seen)| seen.clone()).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        prop_assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_damaged_file_is_read_alike_whatever_the_pieces_in_which_its_bytes_come(
        blocks in blocks(),
        shared in 1_usize..4,
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        piece_bytes in 1_usize..5000,
    ) {
        let records: Vec<Vec<u8>> = blocks.iter().enumerate().map(|(n, block)| record(n, block)).collect();
        let mut file: Vec<u8> =
            records.chunks(shared).flat_map(|some| packed(Packing::Gzip, &some.concat())).collect();
        for (at, value) in places {
            let at = at.index(file.len());
            file[at] = value;
        }
        let mut in_pieces = Records::new(Cut(file.chunks(piece_bytes)), Packing::Gzip, RecordLimits::default());
        prop_assert_eq!(all(&mut in_pieces, file.len()), whole(&file, Packing::Gzip));
    }

    #[test]
    fn the_spans_of_a_file_give_its_records_wherever_it_is_cut(
        blocks in blocks(),
        packing in packings(),
        shared in 1_usize..4,
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let records: Vec<Vec<u8>> = blocks.iter().enumerate().map(|(n, block)| record(n, block)).collect();
        let file: Vec<u8> = records.chunks(shared).flat_map(|some| packed(packing, &some.concat())).collect();
        let (seen, joins) = in_spans(&file, packing, cuts.iter().map(|cut| cut.index(file.len())).collect());
        prop_assert!(joins);
        prop_assert_eq!(seen, whole(&file, packing));
    }

    #[test]
    fn spans_that_join_give_the_records_of_a_file_whatever_it_holds_and_however_it_is_damaged(
        blocks in blocks(),
        nested in proptest::collection::vec((any::<prop::sample::Index>(), 1_usize..4), 0..4),
        bytes_of_member in 1_usize..6000,
        by_record in any::<bool>(),
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 1..9),
    ) {
        let mut blocks = blocks;
        for (at, n) in nested {
            let at = at.index(blocks.len());
            blocks[at] = (0..n).flat_map(|n| stored(&record(90 + n, b"of the packed file in a record"))).collect();
        }
        let records: Vec<Vec<u8>> = blocks.iter().enumerate().map(|(n, block)| record(n, block)).collect();
        let mut file: Vec<u8> = match by_record {
            true => records.iter().flat_map(|record| stored(record)).collect(),
            // Members begin anywhere in records.
            false => records.concat().chunks(bytes_of_member).flat_map(stored).collect(),
        };
        for (at, value) in places {
            let at = at.index(file.len());
            file[at] = value;
        }
        let (seen, joins) = in_spans(&file, Packing::Gzip, cuts.iter().map(|cut| cut.index(file.len())).collect());
        prop_assert!(!joins || seen == whole(&file, Packing::Gzip));
    }

    #[test]
    fn a_damaged_file_gives_no_record_that_was_not_in_it_and_says_where_one_is_missing(
        blocks in blocks(),
        packing in packings(),
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        kept in any::<prop::sample::Index>(),
    ) {
        let records: Vec<Vec<u8>> = blocks.iter().enumerate().map(|(n, block)| record(n, block)).collect();
        // The checksum of zstd is an option of its writer.
        let packing = if packing == Packing::Zstd { Packing::Gzip } else { packing };
        let mut file: Vec<u8> = records.iter().flat_map(|record| packed(packing, record)).collect();
        let sound = whole(&file, packing);
        for (at, value) in places {
            let at = at.index(file.len());
            file[at] = value;
        }
        file.truncate(kept.index(file.len()).max(file.len() / 2));
        let seen = whole(&file, packing);
        let n_sound = seen.iter().filter(|(_, seen)| seen.is_ok()).count();
        for (_, read) in seen.iter().filter(|(_, read)| read.is_ok()) {
            prop_assert!(sound.iter().any(|(_, written)| written == read));
        }
        let is_cut_between_members = sound.iter().any(|&(position, _)| position == file.len() as u64);
        prop_assert!(n_sound == sound.len() || n_sound < seen.len() || is_cut_between_members);
    }

    #[test]
    fn no_bytes_make_the_reader_panic_or_run_forever(
        blocks in blocks(),
        packing in prop_oneof![Just(Packing::Plain), packings()],
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        max_block_bytes in 0_u64..5000,
        noise in proptest::collection::vec(any::<u8>(), 0..500),
    ) {
        let records: Vec<Vec<u8>> = blocks.iter().enumerate().map(|(n, block)| record(n, block)).collect();
        let mut file: Vec<u8> = records.iter().flat_map(|record| packed(packing, record)).chain(noise).collect();
        for (at, value) in places {
            let at = at.index(file.len());
            file[at] = value;
        }
        let seen = read(&file, packing, RecordLimits { max_block_bytes });
        prop_assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "positions ascend");
    }

    #[test]
    fn no_response_makes_the_decoding_of_bodies_panic(
        encoding in prop_oneof![Just("gzip"), Just("deflate"), Just("br"), Just("zstd"), Just("x")],
        chunked in any::<bool>(),
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let transfer = if chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
        let head = format!("HTTP/1.1 200 OK\r\n{transfer}Content-Encoding: {encoding}\r\n\r\n");
        let block = [head.as_bytes(), &body].concat();
        let _ = HttpMessage::parse(&block).unwrap().body(1000);
        let _ = HttpMessage::parse(&body);
    }
}

#[test]
fn a_damaged_member_costs_its_own_record_alone() {
    for packing in [Packing::Gzip, Packing::Zstd] {
        let members: Vec<Vec<u8>> = (0..5).map(|n| packed(packing, &record(n, &[b'a' + n as u8; 5000]))).collect();
        let mut file = members.concat();
        let start = members[0].len() + members[1].len();
        file[start + members[2].len() / 2..start + members[2].len() - 8].fill(0xff);
        let seen = whole(&file, packing);
        let ids: Vec<_> = seen.iter().map(|(_, seen)| seen.as_ref().map(|(id, _)| id.as_str())).collect();
        assert_eq!(ids, [Ok("<0>"), Ok("<1>"), Err(&Damage::BadMember), Ok("<3>"), Ok("<4>")], "{packing:?}");
        assert_eq!(seen[2].0, start as u64);
    }
}

#[test]
fn a_record_is_cut_off_where_the_file_ends_within_it_and_only_there() {
    let broken = |file: &[u8], packing| {
        let mut records = Records::new(Slice::new(file), packing, RecordLimits::default());
        let mut broken = Vec::new();
        while let Some(next) = records.next_record().unwrap() {
            if let Next::Broken(found) = next {
                broken.push(found.cut_off);
            }
        }
        broken
    };
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        let block: Vec<u8> = (0..50_000_usize).map(|at| (at * at % 251) as u8).collect();
        let all: Vec<Vec<u8>> = (0..3).map(|n| packed(packing, &record(n, &block))).collect();
        let last = all[..2].concat().len();
        for end in [last + 1, last + 2, last + 30, last + all[2].len() / 2, last + all[2].len() - 9] {
            assert_eq!(broken(&all.concat()[..end], packing), [true], "{packing:?} {}", end - last);
        }
        assert!(broken(&all.concat()[..last], packing).is_empty());
        let within = [&all[0], &all[1][..all[1].len() / 2], &all[2]].concat();
        assert_eq!(broken(&within, packing), [false], "{packing:?}");
    }
}

#[test]
fn a_wrong_length_costs_its_own_record_alone_in_a_plain_file() {
    let wrong = b"WARC/1.0\r\nContent-Length: 3\r\n\r\nlonger\r\n\r\n".to_vec();
    let file = [record(0, b"a"), wrong, record(2, b"c")].concat();
    let seen: Vec<_> = whole(&file, Packing::Plain).into_iter().map(|(_, seen)| seen.map(|(id, _)| id)).collect();
    assert_eq!(seen, [Ok("<0>".to_owned()), Err(Damage::WrongLength), Ok("<2>".to_owned())]);
}

#[test]
fn a_block_that_is_too_large_is_passed_over_without_being_held() {
    let block: Vec<u8> = (0..3_u64 << 20).map(|at| (at * at % 251) as u8).collect();
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        let file: Vec<u8> =
            [record(0, b"a"), record(1, &block), record(2, b"c")].iter().flat_map(|r| packed(packing, r)).collect();
        let mut records = Records::new(Slice::new(&file), packing, RecordLimits { max_block_bytes: 1000 });
        let mut blocks = Vec::new();
        while let Some(Next::Record(record)) = records.next_record().unwrap() {
            blocks.push(match record.block {
                Block::Held(bytes) => Ok(bytes.to_vec()),
                Block::TooLarge { n_bytes, beginning } => {
                    assert_eq!(beginning, &block[..64 << 10], "{packing:?}");
                    Err(n_bytes)
                }
            });
        }
        assert_eq!(blocks, [Ok(b"a".to_vec()), Err(3 << 20), Ok(b"c".to_vec())], "{packing:?}");
    }
}

#[test]
fn files_of_other_formats_are_refused_with_a_way_out() {
    let refusal = |file: &[u8], packing| {
        let mut records = Records::new(Slice::new(file), packing, RecordLimits::default());
        records.next_record().map(|next| next.is_some())
    };
    assert!(matches!(refusal(b"filedesc://a.arc 0.0.0.0 2022 text/plain 9\n", Packing::Plain), Err(WarcError::Arc)));
    let arc = packed(Packing::Gzip, b"filedesc://a.arc 0.0.0.0 2022 text/plain 9\n");
    assert!(matches!(refusal(&arc, Packing::Gzip), Err(WarcError::Arc)));
    assert!(matches!(refusal(b"\x5d\x2a\x4d\x18dict", Packing::Zstd), Err(WarcError::ZstdDictionary)));
}

/// A record whose header has the digest of its block, and gives `length` as its size.
fn record_of_length(n: usize, block: &[u8], length: u64) -> Vec<u8> {
    let digest: String = Sha1::digest(block).iter().map(|byte| format!("{byte:02x}")).collect();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <{n}>\r\nWARC-Block-Digest: sha1:{digest}\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

#[test]
fn a_wrong_length_costs_nothing_where_the_block_has_its_digest() {
    for (size, length) in
        [972, 300_000].into_iter().flat_map(|size| [0, 3, 971, 973, 50_000, 299_999, 400_000].map(|l| (size, l)))
    {
        let records = [record(0, b"a"), record_of_length(1, &vec![b'x'; size], length), record(2, b"c")];
        let packings = [Packing::Plain, Packing::Gzip, Packing::Zstd];
        let one_member = packings.map(|packing| (packing, packed(packing, &records.concat())));
        let member_each =
            packings.map(|packing| (packing, records.iter().flat_map(|record| packed(packing, record)).collect()));
        for (packing, file) in one_member.into_iter().chain(member_each) {
            let seen: Vec<_> = whole(&file, packing).into_iter().map(|(_, seen)| seen.map(|(id, _)| id)).collect();
            let expected = ["<0>", "<1>", "<2>"].map(|id| Ok(id.to_owned()));
            assert_eq!(seen, expected, "{packing:?}, a block of {size} that is said to have {length}");
        }
    }
}

#[test]
fn a_wrong_length_costs_its_record_where_it_or_the_block_is_larger_than_a_block_may_be() {
    let limits = RecordLimits { max_block_bytes: 10_000 };
    let first_damage = |size: usize, length: u64| {
        let file =
            [record(0, b"a"), record_of_length(1, &vec![b'x'; size], length), record(2, &[b'c'; 5_000])].concat();
        read(&file, Packing::Plain, limits).into_iter().find_map(|(_, seen)| seen.err())
    };
    assert_eq!(first_damage(10_000, 9_000), None);
    assert_eq!(first_damage(10_001, 9_000), Some(Damage::WrongLength));
    // A block that is said to be too large is never held, so nothing is known of it.
    assert_eq!(first_damage(1_000, 10_001), Some(Damage::CutOff));
}

#[test]
fn a_length_beyond_the_end_of_a_plain_file_costs_its_own_record_alone() {
    let read = |file: &[u8]| {
        let span = 0..file.len() as u64;
        let mut records = Records::of_span(Slice::new(file), Packing::Plain, RecordLimits::default(), span);
        let mut seen = Vec::new();
        while let Some(next) = records.next_record().unwrap() {
            seen.push(match next {
                Next::Record(record) => Ok(record.header.get("warc-record-id").unwrap().into_owned()),
                Next::Broken(broken) => Err((broken.damage, broken.cut_off)),
            });
        }
        seen
    };
    let wrong = record_of_length(1, &[b'b'; 500], 999_999_999);
    let file = [record(0, b"a"), wrong.clone(), record(2, &[b'c'; 300_000]), record(3, b"d")].concat();
    let [zero, two, three] = ["<0>", "<2>", "<3>"].map(|id| Ok(id.to_owned()));
    assert_eq!(read(&file), [zero.clone(), Err((Damage::CutOff, false)), two.clone(), three]);
    assert_eq!(read(&[wrong, record(2, b"c")].concat()), [Err((Damage::CutOff, false)), two]);
    // What the file ends within is cut off.
    let cut = [record(0, b"a"), record_of_length(1, &[b'b'; 500_000], 999_999_999)].concat();
    assert_eq!(read(&cut[..cut.len() - 4]), [zero, Err((Damage::CutOff, true))]);
}

#[test]
fn a_length_that_is_no_number_costs_nothing_where_the_block_has_its_digest() {
    let sound = String::from_utf8(record_of_length(1, b"block", 5)).unwrap();
    for length in ["Content-Length: -5", "Content-Length: five", "X-Length: 5"] {
        let file = [record(0, b"a"), sound.replace("Content-Length: 5", length).into_bytes(), record(2, b"c")].concat();
        let seen = whole(&file, Packing::Plain);
        assert_eq!(ids(&seen), [Ok("<0>"), Ok("<1>"), Ok("<2>")], "{length}");
        let file = String::from_utf8(file).unwrap().replace("block", "black").into_bytes();
        assert_eq!(ids(&whole(&file, Packing::Plain))[1], Err(Damage::NoLength), "{length}");
    }
}

#[test]
fn no_record_is_lost_behind_a_damaged_member_of_line_ends() {
    for (n, cut) in [100, 5_000, 1_000_000].into_iter().flat_map(|n| [4, 9, 20].map(|cut| (n, cut))) {
        let blank = packed(Packing::Gzip, &vec![b'\n'; n]);
        let of = |n: usize| packed(Packing::Gzip, &record(n, b"block"));
        let file = [of(0), blank[..blank.len() - cut].to_vec(), of(1), of(2)].concat();
        let seen = whole(&file, Packing::Gzip);
        let sound: Vec<_> = ids(&seen).into_iter().flatten().collect();
        assert_eq!(sound, ["<0>", "<1>", "<2>"], "{n} line ends, {cut} bytes are missing");
    }
}

#[test]
fn behind_a_record_no_more_line_ends_are_held_than_a_block_may_have_bytes() {
    let limits = RecordLimits { max_block_bytes: 10_000 };
    for (packing, n) in [Packing::Plain, Packing::Gzip].into_iter().flat_map(|p| [9_000, 500_000].map(|n| (p, n))) {
        let blank = vec![b'\n'; n];
        let records = [record(0, b"a"), record_of_length(1, b"block", 5), blank, record(2, b"c")];
        let seen = read(&packed(packing, &records.concat()), packing, limits);
        assert_eq!(ids(&seen), [Ok("<0>"), Ok("<1>"), Ok("<2>")], "{packing:?}, {n}");
        // Without a digest, a block whose end is not found may be another one.
        let records = [record(0, b"a"), vec![b'\n'; n], record(2, b"c")];
        let seen = read(&packed(packing, &records.concat()), packing, limits);
        let first = if n > 10_000 { Err(Damage::WrongLength) } else { Ok("<0>") };
        assert_eq!(ids(&seen), [first, Ok("<2>")], "{packing:?}, {n}");
    }
}

#[test]
fn records_within_a_wrong_length_keep_their_places_whatever_line_ends_follow() {
    // The length of the second record reaches over the two behind it, up to the line ends.
    let block = [b"a\r\n\r\n".to_vec(), record(2, b"inner"), record(3, b"inner")].concat();
    let wrong = record(1, &block[..block.len() - 4]);
    let file = [record(0, b"z"), wrong, vec![b'\n'; 200_000], b"garbage\n".to_vec(), record(4, b"c")].concat();
    let mut records = Records::new(Slice::new(&file), Packing::Plain, RecordLimits::default());
    let mut n = 0;
    while let Some(next) = records.next_record().unwrap() {
        let Next::Record(record) = next else { continue };
        let at = usize::try_from(record.position).unwrap();
        assert!(file[at..].starts_with(b"WARC/1.0"), "{at}");
        assert!(record.alone.is_none_or(|(start, _)| start == record.position), "{at}");
        n += 1;
    }
    // The second and the fourth end in no other record.
    assert_eq!(n, 3);
}

#[test]
fn a_record_is_alone_whatever_the_number_of_line_ends_behind_it() {
    for (packing, n) in [Packing::Plain, Packing::Gzip].into_iter().flat_map(|p| [2, 70_000, 1 << 20].map(|n| (p, n))) {
        let blank = vec![b'\n'; n];
        let pieces = [0, 1].map(|at| packed(packing, &[&record(at, b"block")[..], &blank].concat()));
        let file = pieces.concat();
        let mut records = Records::new(Slice::new(&file), packing, RecordLimits::default());
        let mut alone = Vec::new();
        while let Some(Next::Record(record)) = records.next_record().unwrap() {
            alone.push(record.alone.unwrap());
        }
        let end = pieces[0].len() as u64;
        assert_eq!(alone, [(0, end), (end, file.len() as u64)], "{packing:?}, {n} line ends");
    }
}

#[test]
fn line_ends_of_any_number_lie_between_records() {
    for (packing, end) in
        [Packing::Plain, Packing::Gzip, Packing::Zstd].into_iter().flat_map(|p| [(p, "\n"), (p, "\r\n")])
    {
        let blank = packed(packing, &end.repeat(1 << 20).into_bytes());
        let file = [packed(packing, &record(0, b"a")), blank, packed(packing, &record(1, b"b"))].concat();
        let seen = whole(&file, packing);
        assert_eq!(ids(&seen), [Ok("<0>"), Ok("<1>")], "{packing:?}");
        let one = packed(packing, &[record(0, b"a"), end.repeat(1 << 20).into_bytes(), record(1, b"b")].concat());
        assert_eq!(ids(&whole(&one, packing)), [Ok("<0>"), Ok("<1>")], "{packing:?}, one member");
    }
}

#[test]
fn a_length_that_is_far_too_large_costs_its_own_record_alone_in_a_packed_file() {
    for (packing, size) in [Packing::Gzip, Packing::Zstd].into_iter().flat_map(|p| [1, 5000, 100_000].map(|n| (p, n))) {
        let wrong = record_of_length(1, &vec![b'b'; size], 1 << 40);
        let records = [record(0, b"a"), wrong, record(2, &[b'c'; 300_000]), record(3, b"d")];
        let file: Vec<u8> = records.iter().flat_map(|record| packed(packing, record)).collect();
        let seen: Vec<_> = whole(&file, packing).into_iter().map(|(_, seen)| seen.map(|(id, _)| id)).collect();
        let expected = [Ok("<0>"), Err(Damage::WrongLength), Ok("<2>"), Ok("<3>")];
        assert_eq!(seen, expected.map(|seen| seen.map(str::to_owned)), "{packing:?}, a block of {size}");
    }
}

#[test]
fn a_wrong_length_that_reaches_into_a_damaged_member_costs_its_own_record_alone() {
    let ids = |file: &[u8], packing| -> Vec<_> {
        whole(file, packing).into_iter().map(|(_, seen)| seen.map(|(id, _)| id)).collect()
    };
    for packing in [Packing::Gzip, Packing::Zstd] {
        let without_digest = String::from_utf8(record(1, &[b'a'; 5000])).unwrap().replace("th: 5000", "th: 15000");
        for (wrong, expected) in [
            (without_digest.into_bytes(), Err(Damage::WrongLength)),
            (record_of_length(1, &[b'a'; 5000], 15_000), Ok("<1>")),
        ] {
            let members = [wrong, record(2, &[b'b'; 5000]), record(3, &[b'c'; 2000]), record(4, &[b'd'; 5000])]
                .map(|record| packed(packing, &record));
            let mut file = members.concat();
            let to = file.len();
            file[to - members[3].len() / 2..to - 8].fill(0xff);
            file.extend(packed(packing, &record(5, b"e")));
            let expected = [expected, Ok("<2>"), Ok("<3>"), Err(Damage::BadMember), Ok("<5>")];
            assert_eq!(ids(&file, packing), expected.map(|seen| seen.map(str::to_owned)), "{packing:?}");
        }
    }
}

#[test]
fn a_block_that_has_not_its_digest_is_told_where_no_checksum_vouches_for_it() {
    let wrong = record_of_length(1, b"good", 4);
    let at = wrong.windows(4).position(|bytes| bytes == b"good").unwrap();
    let wrong = [&wrong[..at], b"evil", &wrong[at + 4..]].concat();
    let file = |packing| -> Vec<u8> { packed(packing, &[wrong.clone(), record(2, b"c")].concat()) };
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        let seen: Vec<_> = whole(&file(packing), packing).into_iter().map(|(_, seen)| seen.map(|(id, _)| id)).collect();
        assert_eq!(seen, [Err(Damage::WrongDigest), Ok("<2>".to_owned())], "{packing:?}");
    }
    // The writer of a member's checksum saw these bytes: its digest is wrong, not the block.
    assert_eq!(whole(&packed(Packing::Gzip, &wrong), Packing::Gzip)[0].1, Ok(("<1>".to_owned(), b"evil".to_vec())));
}

#[test]
fn a_record_may_go_on_in_further_members_and_a_member_may_hold_all_records() {
    let records = [record(0, b"a"), record(1, &[b'b'; 1000]), record(2, b"c")];
    let all = records.concat();
    let expected = ["<0>", "<1>", "<2>"].map(|id| Ok(id.to_owned()));
    for packing in [Packing::Gzip, Packing::Zstd] {
        let in_pieces: Vec<u8> = all.chunks(170).flat_map(|piece| packed(packing, piece)).collect();
        for file in [in_pieces, packed(packing, &all)] {
            let seen: Vec<_> = whole(&file, packing).into_iter().map(|(_, seen)| seen.map(|(id, _)| id)).collect();
            assert_eq!(seen, expected, "{packing:?}");
        }
    }
}

#[test]
fn a_damaged_stretch_of_any_size_is_one_row() {
    let limits = RecordLimits { max_block_bytes: 10_000 };
    let size = 300_000;
    // The second length ends where the window does, in a further member.
    for (said, goes_on) in [(3, false), ((128 << 10) - HEAD, true)] {
        let head = format!("WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {said:06}\r\n\r\n");
        assert_eq!(head.len(), HEAD);
        let wrong = [head.as_bytes(), &vec![b'x'; size], b"\r\n\r\n"].concat();
        for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
            let pieces = if goes_on { in_two(packing, &wrong) } else { packed(packing, &wrong) };
            let file = [pieces, packed(packing, &record(2, b"c"))].concat();
            let seen = read(&file, packing, limits);
            let expected = [Err(Damage::WrongLength), Ok(("<2>".to_owned(), b"c".to_vec()))];
            let found: Vec<_> = seen.into_iter().map(|(_, seen)| seen).collect();
            assert_eq!(found, expected, "{packing:?}, {said}");
        }
    }
}

/// The size of a header with a length of six digits, and no id.
const HEAD: usize = "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 000000\r\n\r\n".len();

/// A record whose block goes on in a second member.
fn in_two(packing: Packing, record: &[u8]) -> Vec<u8> {
    let (first, second) = record.split_at(30_000);
    [packed(packing, first), packed(packing, second)].concat()
}

#[test]
fn a_block_that_is_too_large_has_all_its_bytes_however_the_file_is_packed() {
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        for size in [10_001, 100_000, 3 << 20] {
            let records = [record(0, b"a"), record(1, &vec![b'x'; size]), record(2, b"c")].map(|r| packed(packing, &r));
            let file = records.concat();
            let ends: Vec<u64> = (0..=3).map(|n| records[..n].concat().len() as u64).collect();
            let mut reader = Records::new(Slice::new(&file), packing, RecordLimits { max_block_bytes: 10_000 });
            let mut alone = Vec::new();
            while let Some(next) = reader.next_record().unwrap() {
                let Next::Record(record) = next else { panic!("{next:?}") };
                alone.extend(record.alone);
            }
            let expected: Vec<(u64, u64)> = ends.windows(2).map(|ends| (ends[0], ends[1])).collect();
            assert_eq!(alone, expected, "{packing:?}, {size}");
        }
    }
}

#[test]
fn what_looks_like_many_records_takes_no_longer_than_other_damage() {
    let lines = |line: &str| line.repeat((4 << 20) / line.len());
    for damage in [lines("\nWARC/"), lines("\nWARC/1.0: a"), lines("\nWARC/1.0\na: b"), lines("\nWARC/\n ")] {
        let wrong = record_of_length(1, b"good", 4 << 20);
        let at = wrong.windows(4).position(|bytes| bytes == b"good").unwrap();
        let block = [damage.as_bytes(), &vec![b'x'; (4 << 20) - damage.len()]].concat();
        let file = [&wrong[..at], &block, &wrong[at + 4..], &record(2, b"c")].concat();
        let seen: Vec<_> = whole(&file, Packing::Plain).into_iter().map(|(_, seen)| seen.map(|(id, _)| id)).collect();
        assert_eq!(seen, [Err(Damage::WrongDigest), Ok("<2>".to_owned())]);
    }
}

#[test]
fn headers_whose_lengths_reach_over_each_other_are_damage_and_take_no_longer() {
    let digest = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let header =
        format!("WARC/1.0\r\nWARC-Type: resource\r\nWARC-Block-Digest: {digest}\r\nContent-Length: 2000000\r\n\r\n\n");
    let n = (4 << 20) / header.len();
    for packing in [Packing::Plain, Packing::Gzip] {
        let file = match packing {
            Packing::Plain => [header.repeat(n).into_bytes(), record(1, b"good")].concat(),
            _ => [packed(packing, header.as_bytes()).repeat(n / 8), packed(packing, &record(1, b"good"))].concat(),
        };
        let seen = whole(&file, packing);
        assert!(seen.len() > n / 16, "{}", seen.len());
        let (last, others) = seen.split_last().unwrap();
        assert_eq!(last.1.as_ref().map(|(id, _)| id.as_str()), Ok("<1>"));
        assert!(others.iter().all(|(_, seen)| seen.is_err()));
    }
}

#[test]
fn a_large_record_that_goes_on_in_a_further_member_has_the_bytes_of_both_wherever_it_ends() {
    for packing in [Packing::Gzip, Packing::Zstd] {
        // The window grows by 64 KiB.
        for size in (1..4).flat_map(|n| [0, 1, 2, 3].map(|more| n * (64 << 10) - HEAD - 2 + more)) {
            let head = format!("WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {size:06}\r\n\r\n");
            let large = in_two(packing, &[head.as_bytes(), &vec![b'x'; size], b"\r\n\r\n"].concat());
            let file = [large.clone(), packed(packing, &record(2, b"c"))].concat();
            let limits = RecordLimits { max_block_bytes: 10_000 };
            let mut records = Records::new(Slice::new(&file), packing, limits);
            let mut alone = Vec::new();
            while let Some(next) = records.next_record().unwrap() {
                let Next::Record(record) = next else { panic!("{next:?}") };
                alone.push(record.alone);
            }
            let (middle, end) = (large.len() as u64, file.len() as u64);
            assert_eq!(alone, [Some((0, middle)), Some((middle, end))], "{packing:?}, {size}");
        }
    }
}

#[test]
fn a_span_that_begins_within_a_record_that_holds_a_packed_file_does_not_join() {
    let inner = [stored(&record(7, b"one")), stored(&record(8, b"two"))].concat();
    let file = [stored(&record(0, b"first")), stored(&record(1, &inner)), stored(&record(2, b"last"))].concat();
    let within = file.windows(inner.len()).position(|bytes| bytes == inner).unwrap();
    assert_eq!(whole(&file, Packing::Gzip).len(), 3);
    for cut in 1..file.len() {
        let (seen, joins) = in_spans(&file, Packing::Gzip, vec![cut]);
        // The first member in the second span: the last one of the file that is cut.
        let second = within + inner.len() / 2;
        assert_eq!(joins, cut <= stored(&record(0, b"first")).len() || cut > second, "{cut}");
        assert_eq!(joins, seen == whole(&file, Packing::Gzip), "{cut}");
    }
}

#[test]
fn a_file_of_one_member_is_read_by_the_span_where_it_begins() {
    let records: Vec<Vec<u8>> = (0..30).map(|n| record(n, b"a page")).collect();
    let file = packed(Packing::Gzip, &records.concat());
    let (seen, joins) = in_spans(&file, Packing::Gzip, vec![file.len() / 3, file.len() / 2]);
    assert!(joins);
    assert_eq!(seen, whole(&file, Packing::Gzip));
}

#[test]
fn a_file_with_a_wrong_checksum_or_size_at_its_end_is_damaged_and_not_cut_off() {
    let file = [packed(Packing::Gzip, &record(0, b"first")), packed(Packing::Gzip, &record(1, &[7; 100_000]))].concat();
    for at in file.len() - 8..file.len() {
        let mut file = file.clone();
        file[at] ^= 1;
        for piece_bytes in [1, 100, file.len()] {
            let mut records = Records::new(Cut(file.chunks(piece_bytes)), Packing::Gzip, RecordLimits::default());
            assert!(matches!(records.next_record(), Ok(Some(Next::Record(_)))));
            let last = records.next_record().unwrap();
            assert!(matches!(last, Some(Next::Broken(broken)) if !broken.cut_off), "{at} {piece_bytes} {last:?}");
            assert!(records.next_record().unwrap().is_none());
        }
    }
}

/// Returns a packed file with a record in its middle that holds a packed file of two records as it is, and where that
/// begins and ends.
fn nesting(packing: Packing, pack: impl Fn(&[u8]) -> Vec<u8>, last: &[u8]) -> (Vec<u8>, std::ops::Range<usize>) {
    let noise: Vec<u8> = (0..300_u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u8).collect();
    let inner: Vec<u8> = [7, 8, 9].iter().flat_map(|&n| packed(packing, &record(n, &noise))).collect();
    let held = [&noise, &inner[..], &noise].concat();
    let file = [packed(packing, &record(0, b"first")), pack(&record(1, &held)), last.to_vec()].concat();
    let start = file.windows(inner.len()).position(|bytes| bytes == inner).unwrap();
    (file, start..start + inner.len())
}

/// Bytes in a frame of zstd that holds them as they are.
fn raw_frame(bytes: &[u8]) -> Vec<u8> {
    let size = u32::try_from(bytes.len()).unwrap();
    assert!(size < 1 << 17, "one block");
    [b"\x28\xb5\x2f\xfd\xa0", &size.to_le_bytes()[..], &(size << 3 | 1).to_le_bytes()[..3], bytes].concat()
}

fn ids(seen: &[Seen]) -> Vec<Result<&str, Damage>> {
    seen.iter().map(|(_, seen)| seen.as_ref().map(|(id, _)| id.as_str()).map_err(|damage| *damage)).collect()
}

#[test]
fn a_packed_file_within_a_record_that_is_cut_off_gives_no_records() {
    let small = RecordLimits { max_block_bytes: 100 };
    for (packing, (file, inner)) in
        [(Packing::Gzip, nesting(Packing::Gzip, stored, &[])), (Packing::Zstd, nesting(Packing::Zstd, raw_frame, &[]))]
    {
        for end in inner.start..file.len() - 8 {
            let cut = &file[..end];
            assert_eq!(ids(&whole(cut, packing)), [Ok("<0>"), Err(Damage::BadMember)], "{packing:?} {end}");
            assert_eq!(ids(&read(cut, packing, small)), [Ok("<0>"), Err(Damage::BadMember)], "{packing:?} {end}");
            let (seen, joins) = in_spans(cut, packing, vec![inner.start]);
            assert!(!joins || seen == whole(cut, packing), "{packing:?} {end}");
        }
    }
}

#[test]
fn a_packed_file_within_a_damaged_record_gives_no_records_and_those_behind_the_record_are_read() {
    let last = |packing| [packed(packing, &record(2, b"second")), packed(packing, &record(3, b"last"))].concat();
    let (file, inner) = nesting(Packing::Gzip, stored, &last(Packing::Gzip));
    let member = packed(Packing::Gzip, &record(0, b"first")).len();
    let end = file.len() - last(Packing::Gzip).len();
    // Behind the head of the member and the header of its record.
    for at in member + 110..end {
        for bit in 0..8 {
            let mut file = file.clone();
            file[at] ^= 1 << bit;
            let seen = whole(&file, Packing::Gzip);
            let expected = [Ok("<0>"), Err(Damage::BadMember), Ok("<2>"), Ok("<3>")];
            assert_eq!(ids(&seen), expected, "{at} {bit} {inner:?}");
        }
    }
}

#[test]
fn the_records_behind_a_large_damaged_one_are_read_though_its_packing_is_damaged() {
    let noise: Vec<u8> = (0..1_000_000_u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u8).collect();
    let inner = stored(&record(7, b"inner"));
    let holder = stored(&record(1, &[&noise, &inner[..], &noise, &inner].concat()));
    let last = [stored(&record(2, b"second")), stored(&record(3, b"last"))].concat();
    // Behind the ten bytes of the head, each block has five bytes before it, of which the last four say its size twice.
    let mut block = 10;
    while block < 500_000 {
        block += 5 + usize::from(u16::from_le_bytes([holder[block + 1], holder[block + 2]]));
    }
    let mut file = [stored(&record(0, b"first")), holder, last].concat();
    file[stored(&record(0, b"first")).len() + block + 3] ^= 1;
    let expected = [Ok("<0>"), Err(Damage::BadMember), Ok("<2>"), Ok("<3>")];
    assert_eq!(ids(&whole(&file, Packing::Gzip)), expected);
}

#[test]
fn a_packed_file_within_a_record_gives_no_records_where_a_later_record_of_its_member_is_damaged() {
    let inner: Vec<u8> = [7, 8].iter().flat_map(|&n| stored(&record(n, b"inner"))).collect();
    let mut file = stored(&[record(0, &inner), record(1, &[b'a'; 200_000]), record(2, b"last")].concat());
    assert_eq!(ids(&whole(&file[..100_000], Packing::Gzip)), [Ok("<0>"), Err(Damage::BadMember)]);
    file[100_000] ^= 1;
    assert_eq!(ids(&whole(&file, Packing::Gzip)), [Ok("<0>"), Ok("<1>"), Err(Damage::BadMember)]);
}

/// A frame of zstd that readers pass over.
fn skippable(kind: u8, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).unwrap().to_le_bytes();
    [&[0x50 + kind, 0x2a, 0x4d, 0x18], &size[..], content].concat()
}

#[test]
fn frames_of_zstd_that_hold_no_data_are_passed_over_wherever_they_are() {
    let frames: Vec<Vec<u8>> = (0..3).map(|n| packed(Packing::Zstd, &record(n, b"a page"))).collect();
    let inner = packed(Packing::Zstd, &record(7, b"no page"));
    for (n, kind) in [0, 0x0d, 0x0e, 0x0f].into_iter().enumerate() {
        let content: Vec<u8> = [vec![1; n * 1000], inner.clone()].concat();
        let skipped = skippable(kind, &content);
        // A dictionary comes first.
        let first = if kind == 0x0d { Vec::new() } else { skipped.clone() };
        let file: Vec<u8> = [&first, &frames[0], &skipped, &skipped, &frames[1], &frames[2], &skipped]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let mut records = Records::new(Slice::new(&file), Packing::Zstd, RecordLimits::default());
        let mut n_read = 0;
        while let Some(next) = records.next_record().unwrap() {
            let Next::Record(record) = next else { panic!("{kind} {next:?}") };
            let (from, to) = record.alone.unwrap();
            assert_eq!((record.position, &file[from as usize..to as usize]), (from, &frames[n_read][..]), "{kind}");
            n_read += 1;
        }
        assert_eq!(n_read, 3);
        for cut in (1..file.len()).step_by(29) {
            let (seen, joins) = in_spans(&file, Packing::Zstd, vec![cut]);
            assert!(!joins || seen == whole(&file, Packing::Zstd), "{kind} {cut}");
        }
        // A file that is cut off within such a frame says so.
        for cut in (1..skipped.len() - 8).step_by(29).chain(skipped.len() - 8..skipped.len()) {
            let seen = whole(&file[..file.len() - cut], Packing::Zstd);
            let expected = [Ok("<0>"), Ok("<1>"), Ok("<2>"), Err(Damage::BadMember)];
            assert_eq!(ids(&seen), expected, "{kind} {cut}");
        }
    }
}

#[test]
fn zeros_behind_the_last_member_of_gzip_are_the_end_of_the_file_and_other_bytes_are_damage() {
    let members: Vec<Vec<u8>> = (0..3).map(|n| packed(Packing::Gzip, &record(n, b"a page"))).collect();
    let file = members.concat();
    let sound = whole(&file, Packing::Gzip);
    assert_eq!(ids(&sound), [Ok("<0>"), Ok("<1>"), Ok("<2>")]);
    for n in [1, 512, 100_000] {
        let padded = [&file[..], &vec![0; n]].concat();
        assert_eq!(whole(&padded, Packing::Gzip), sound);
        for cut in [members[0].len(), file.len() - 5, file.len(), padded.len() - 1] {
            let (seen, joins) = in_spans(&padded, Packing::Gzip, vec![cut]);
            assert!(joins && seen == sound, "{n} {cut}");
        }
        let mut records = Records::new(Slice::new(&padded), Packing::Gzip, RecordLimits::default());
        let mut ends = Vec::new();
        while let Some(Next::Record(record)) = records.next_record().unwrap() {
            ends.push(record.alone.unwrap().1);
        }
        assert_eq!(ends.last(), Some(&(file.len() as u64)));
        for behind in [&b"x"[..], &members[0][..]] {
            let seen = whole(&[&padded[..], behind].concat(), Packing::Gzip);
            assert_eq!(seen[3], (file.len() as u64, Err(Damage::BadMember)), "{n}");
        }
    }
    assert_eq!(ids(&whole(&[0; 512], Packing::Gzip)), [Err(Damage::BadMember)]);
}

#[test]
fn a_length_that_reaches_over_whole_members_with_records_swallows_none_of_them() {
    for packing in [Packing::Gzip, Packing::Zstd] {
        let members: Vec<Vec<u8>> = (0..4).map(|n| packed(packing, &record(n, b"page"))).collect();
        let honest = record(1, b"page");
        // The length of the second record ends where the third one does.
        let longer = record(2, b"page").len() + 4;
        let lying =
            String::from_utf8(honest).unwrap().replace("Content-Length: 4", &format!("Content-Length: {}", longer + 4));
        let file = [&members[0][..], &packed(packing, lying.as_bytes()), &members[2], &members[3]].concat();
        let seen = read(&file, packing, RecordLimits::default());
        let ids: Vec<&str> = seen.iter().filter_map(|(_, found)| Some(found.as_ref().ok()?.0.as_str())).collect();
        assert_eq!(ids, ["<0>", "<2>", "<3>"], "{packing:?}: {seen:?}");
        assert!(seen.iter().any(|(_, found)| *found == Err(Damage::WrongLength)), "{seen:?}");
    }
}
