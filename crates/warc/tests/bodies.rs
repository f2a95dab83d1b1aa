//! Bodies of HTTP responses, in every encoding.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use nearprint_warc::{Body, HttpMessage};

const PAGE: &[u8] = b"<html><p>A page of some length, of some length, of some length.</p></html>";

fn encoded(encoding: &str) -> Vec<u8> {
    let level = Compression::default();
    match encoding {
        "gzip" => {
            let mut into = GzEncoder::new(Vec::new(), level);
            into.write_all(PAGE).unwrap();
            into.finish().unwrap()
        }
        "deflate" => {
            let mut into = ZlibEncoder::new(Vec::new(), level);
            into.write_all(PAGE).unwrap();
            into.finish().unwrap()
        }
        "bare deflate" => {
            let mut into = DeflateEncoder::new(Vec::new(), level);
            into.write_all(PAGE).unwrap();
            into.finish().unwrap()
        }
        "br" => {
            let mut into = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            into.write_all(PAGE).unwrap();
            into.into_inner()
        }
        "zstd" => zstd::encode_all(PAGE, 3).unwrap(),
        _ => PAGE.to_vec(),
    }
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let chunks = body.chunks(7).map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    chunks.chain([b"0\r\n\r\n".to_vec()]).flatten().collect()
}

fn response(fields: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat()
}

#[test]
fn a_body_is_decoded_from_every_encoding_in_chunks_and_without() {
    for encoding in ["identity", "gzip", "deflate", "bare deflate", "br", "zstd"] {
        let body = encoded(encoding);
        let field = format!("Content-Encoding: {}\r\n", encoding.trim_start_matches("bare "));
        let plain = response(&field, &body);
        let in_chunks = response(&format!("{field}Transfer-Encoding: chunked\r\n"), &chunked(&body));
        for block in [plain, in_chunks] {
            let message = HttpMessage::parse(&block).unwrap();
            assert_eq!((message.status, message.body(1000)), (200, Body::Whole(PAGE.into())), "{encoding}");
            assert_eq!(message.body(20), Body::TooLarge, "{encoding}");
        }
    }
}

#[test]
fn a_body_that_is_stored_decoded_under_the_fields_of_its_encoding_is_taken_as_it_is() {
    for encoding in ["gzip", "deflate", "br", "zstd", "unknown"] {
        let block = response(&format!("Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n"), PAGE);
        assert_eq!(HttpMessage::parse(&block).unwrap().body(1000), Body::Whole(PAGE.into()), "{encoding}");
    }
    // Some writers join the chunks, and leave the packing.
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        for fields in [
            format!("Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n"),
            format!("Transfer-Encoding: {encoding}, chunked\r\n"),
        ] {
            let block = response(&fields, &encoded(encoding));
            assert_eq!(HttpMessage::parse(&block).unwrap().body(1000), Body::Whole(PAGE.into()), "{fields}");
        }
    }
    let block = response("Content-Encoding: br, gzip\r\n", &encoded("br"));
    assert_eq!(HttpMessage::parse(&block).unwrap().body(1000), Body::Whole(PAGE.into()));
}

#[test]
fn bytes_behind_the_last_member_of_gzip_are_no_damage_and_further_members_are_read() {
    for (behind, expected) in [
        (b"\r\n".to_vec(), PAGE.to_vec()),
        (vec![0; 100], PAGE.to_vec()),
        (b"\x1f".to_vec(), PAGE.to_vec()),
        (encoded("gzip"), [PAGE, PAGE].concat()),
        ([encoded("gzip"), b"\n".to_vec()].concat(), [PAGE, PAGE].concat()),
    ] {
        let block = response("Content-Encoding: gzip\r\n", &[encoded("gzip"), behind].concat());
        let message = HttpMessage::parse(&block).unwrap();
        assert_eq!(message.body(1000), Body::Whole(expected.clone().into()));
        assert_eq!(message.body(expected.len() as u64), Body::Whole(expected.clone().into()));
        assert_eq!(message.body(expected.len() as u64 - 1), Body::TooLarge);
    }
    let second = encoded("gzip");
    for cut in [3, second.len() / 2, second.len() - 1] {
        let block = response("Content-Encoding: gzip\r\n", &[encoded("gzip"), second[..cut].to_vec()].concat());
        assert!(matches!(HttpMessage::parse(&block).unwrap().body(1000), Body::Beginning(_)), "{cut}");
    }
}

#[test]
fn the_reason_behind_a_status_may_be_of_any_length_and_character_set() {
    let russian = b"\xcd\xe5 \xed\xe0\xe9\xe4\xe5\xed\xee";
    for reason in [&russian[..], "Найдено ".repeat(20).as_bytes(), b""] {
        let block = [b"HTTP/1.1 200 ", reason, b"\r\nContent-Type: text/html\r\n\r\npage"].concat();
        let message = HttpMessage::parse(&block).unwrap();
        assert_eq!((message.status, message.body(1000)), (200, Body::Whole(b"page".into())));
        assert_eq!(message.fields.get("content-type").as_deref(), Some("text/html"));
    }
    for block in [&b"HTTP/1.1 \xff00 OK\r\n\r\n"[..], b"HTTP/1.1\r\n200\r\n\r\n", b"HTTP/1.1 many\r\n\r\n", b"HTTP"] {
        assert!(HttpMessage::parse(block).is_none());
    }
}

#[test]
fn a_body_that_is_cut_off_is_told_from_a_whole_one() {
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let body = encoded(encoding);
        let block = response(&format!("Content-Encoding: {encoding}\r\n"), &body[..body.len() - 9]);
        assert!(matches!(HttpMessage::parse(&block).unwrap().body(1000), Body::Beginning(_)), "{encoding}");
    }
    let chunks = chunked(PAGE);
    for cut in 3..chunks.len() - 4 {
        let block = response("Transfer-Encoding: chunked\r\n", &chunks[..cut]);
        assert!(matches!(HttpMessage::parse(&block).unwrap().body(1000), Body::Beginning(_)), "{cut}");
    }
    // A packing says by itself where it ends.
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let chunks = chunked(&encoded(encoding));
        let field = format!("Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n");
        let block = response(&field, &chunks[..chunks.len() - 5]);
        assert_eq!(HttpMessage::parse(&block).unwrap().body(1000), Body::Whole(PAGE.into()), "{encoding}");
        let block = response(&field, &chunks[..chunks.len() - 17]);
        assert!(matches!(HttpMessage::parse(&block).unwrap().body(1000), Body::Beginning(_)), "{encoding}");
    }
}

#[test]
fn a_body_in_another_encoding_than_its_field_names_is_damaged() {
    for (named, packed) in [("gzip", "br"), ("gzip", "deflate"), ("deflate", "gzip"), ("zstd", "gzip"), ("br", "gzip")]
    {
        let block = response(&format!("Content-Encoding: {named}\r\n"), &encoded(packed));
        let body = HttpMessage::parse(&block).unwrap().body(1000);
        assert!(matches!(body, Body::Beginning(_)), "{packed} under the name of {named}: {body:?}");
    }
}

#[test]
fn interim_responses_and_empty_lines_before_an_encoded_body_are_passed_over() {
    let page = b"<p>page</p>";
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(page).unwrap();
    let gzip = gzip.finish().unwrap();
    let chunks = |body: &[u8]| [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    for (head, body) in [
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n", page.to_vec()),
        ("\r\n\r\nhttp/1.1 200 OK\r\n", page.to_vec()),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", chunks(&gzip)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", chunks(&gzip)),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n", [b"\r\n", &gzip[..]].concat()),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", [b"\r\n", &chunks(page)[..]].concat()),
    ] {
        let block = [format!("{head}\r\n").as_bytes(), &body].concat();
        let message = HttpMessage::parse(&block).unwrap();
        assert_eq!((message.status, message.body(1000)), (200, Body::Whole(page.into())), "{head}");
    }
    assert_eq!(HttpMessage::parse(b"HTTP/1.1 103 Early Hints\r\n\r\n").unwrap().status, 103);
    let bom = [&b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\xef\xbb\xbf"[..], page].concat();
    assert!(matches!(HttpMessage::parse(&bom).unwrap().body(1000), Body::Whole(body) if body.ends_with(page)));
}
