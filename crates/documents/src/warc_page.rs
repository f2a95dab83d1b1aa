//! The document of a record of a WARC file, or the reason why there is none.

use std::borrow::Cow;

use chrono::DateTime;
use nearprint_html::{Extractor, Syntax, decode, title_of};
use nearprint_warc::{Block, Body, HttpMessage, Record, begins_with_tag};

use super::batch::ReadContext;
use super::passed::PassedReason;
use super::web_pages::WarcId;
use super::web_rows::{RevisitTarget, WebRow};
use crate::quarantine::BadReason;

/// The kind of a record.
pub enum Page {
    /// It is no document.
    Passed(PassedReason),
    /// It is a document, or a row that fails to be one.
    Row(WebRow),
    /// It says that its page has the text of another record. The row names the document of that record.
    Revisit(WebRow),
}

/// What is taken of pages beside their ids.
#[derive(Clone, Copy)]
pub struct Taken<'a> {
    /// Takes their texts.
    pub extractor: &'a Extractor,
    /// Their titles are wanted.
    pub title: bool,
}

/// The content of a page, and its media type.
struct Content<'a> {
    /// The media type in lower case, without parameters.
    media_type: String,
    /// The field of the header that names the media type.
    field: Option<Cow<'a, str>>,
    body: Cow<'a, [u8]>,
}

/// Returns the document of a record: its id alone if nothing is taken of pages.
pub fn page_of(record: &Record<'_>, warc_id: WarcId, context: &ReadContext, taken: Option<Taken<'_>>) -> Page {
    let field = |name: &str| record.header.get(name);
    let url = record.header.address("warc-target-uri").map(|url| url.trim_matches(['<', '>']).to_owned());
    // A record without a type is passed over as one of another type.
    let kind = field("warc-type").unwrap_or_default().to_ascii_lowercase();
    if let Some(reason) = passed_type(&kind, url.as_deref()) {
        return Page::Passed(reason);
    }
    let time = field("warc-date");
    let mut row = WebRow {
        // Rows are counted from 1.
        row: record.position + 1,
        id: id_of(record, warc_id, url.as_deref()),
        fetch_time: time.and_then(|time| micros(&time)),
        url,
        ..WebRow::default()
    };
    if kind == "revisit" {
        return revisit(record, row, warc_id);
    }
    let block = match record.block {
        Block::Held(block) => block,
        Block::TooLarge { beginning, .. } => {
            if let Err(reason) = described(record, beginning, &kind) {
                return Page::Passed(reason);
            }
            row.fault = Some(BadReason::TooLarge);
            return Page::Row(row);
        }
    };
    let content = match content(record, block, &kind, context.max_line_bytes()) {
        Ok(content) => content,
        Err(Failed::Passed(reason)) => return Page::Passed(reason),
        Err(Failed::Fault(fault)) => {
            row.fault = Some(fault);
            return Page::Row(row);
        }
    };
    if let Some(taken) = taken {
        take(&mut row, &content, taken);
    }
    row.content_type = Some(content.media_type);
    Page::Row(row)
}

/// Returns a time of a field, in microseconds since 1970 in UTC. WARC 1.1 allows times of less precision, down to the year, which are
/// the first moment that they may mean.
fn micros(time: &str) -> Option<i64> {
    let whole = match time.len() {
        4 => format!("{time}-01-01T00:00:00Z"),
        7 => format!("{time}-01T00:00:00Z"),
        10 => format!("{time}T00:00:00Z"),
        17 => time.strip_suffix('Z').map(|minutes| format!("{minutes}:00Z"))?,
        _ => time.to_owned(),
    };
    let parsed = DateTime::parse_from_rfc3339(&whole);
    // Without a zone, it is UTC, as in columns of times.
    let parsed = parsed.or_else(|_| DateTime::parse_from_rfc3339(&format!("{whole}Z")));
    Some(parsed.ok()?.timestamp_micros())
}

fn passed_type(kind: &str, url: Option<&str>) -> Option<PassedReason> {
    let is_robots = || {
        let path = url.and_then(|url| url.split_once("://")).and_then(|(_, rest)| rest.split_once('/'));
        path.is_some_and(|(_, path)| path.split(['?', '#']).next() == Some("robots.txt"))
    };
    match kind {
        "warcinfo" => Some(PassedReason::Warcinfo),
        "request" => Some(PassedReason::Request),
        "metadata" => Some(PassedReason::Metadata),
        "response" | "resource" | "conversion" | "revisit" => is_robots().then_some(PassedReason::Robots),
        _ => Some(PassedReason::OtherType),
    }
}

/// Returns the row of a revisit record, as far as it is about a page. Of what is no page by the HTTP header that the record
/// repeats, nobody has a text.
fn revisit(record: &Record<'_>, mut row: WebRow, warc_id: WarcId) -> Page {
    let target = record.header.address("warc-refers-to-target-uri");
    let target = target.as_deref().map(|url| url.trim_matches(['<', '>'])).filter(|url| !url.is_empty());
    // With another id, each record is a document of its own.
    let Some(of) = target.or(row.url.as_deref()).filter(|_| warc_id == WarcId::Url && row.id.is_some()) else {
        return Page::Passed(PassedReason::Revisit);
    };
    let time = record.header.get("warc-refers-to-date").and_then(|time| micros(&time));
    row.revisit = Some(RevisitTarget { id: of.to_owned(), time });
    let Block::Held(block) = record.block else { return Page::Revisit(row) };
    if let Some(message) = HttpMessage::parse(block) {
        // A server that was asked whether the page has changed answers with 304, often without a content type.
        if !(200..300).contains(&message.status) && message.status != 304 {
            return Page::Passed(PassedReason::HttpStatus);
        }
        row.content_type = content_type(&message).and_then(|field| named_type(&field));
        if row.content_type.as_deref().is_some_and(|media_type| !is_html(media_type)) {
            return Page::Passed(PassedReason::ContentType);
        }
    }
    Page::Revisit(row)
}

fn id_of(record: &Record<'_>, id: WarcId, url: Option<&str>) -> Option<String> {
    let given = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
    match id {
        WarcId::Url => url.and_then(given),
        WarcId::UrlTime => Some(format!("{} {}", record.header.get("warc-date")?, url?)),
        WarcId::RecordId => given(record.header.address("warc-record-id")?.trim_matches(['<', '>'])),
    }
}

enum Failed {
    Passed(PassedReason),
    Fault(BadReason),
}

/// What a record says of its content, by its fields and the header with which its block begins.
struct Described<'a> {
    /// The HTTP message, if the block is one.
    message: Option<HttpMessage<'a>>,
    /// The field that names the media type, and this type.
    field: Option<Cow<'a, str>>,
    named: Option<String>,
}

/// Returns what a record says of its content, unless that is plainly no page. The block may be the beginning of a larger one.
fn described<'a>(record: &Record<'a>, block: &'a [u8], kind: &str) -> Result<Described<'a>, PassedReason> {
    let declared = record.header.get("content-type");
    let is_http = kind == "response" && declared.as_deref().is_none_or(|kind| media_type(kind) == "application/http");
    let (message, field, named) = match HttpMessage::parse(block).filter(|_| is_http) {
        Some(message) if !(200..300).contains(&message.status) => return Err(PassedReason::HttpStatus),
        Some(message) => {
            let field = content_type(&message);
            let named = field.as_deref().and_then(named_type);
            (Some(message), field, named)
        }
        None if is_http => return Err(PassedReason::ContentType),
        None => {
            let named = declared.as_deref().map(media_type);
            (None, declared, named)
        }
    };
    if named.as_deref().is_some_and(|named| !is_type_of_pages(named, kind)) {
        return Err(PassedReason::ContentType);
    }
    Ok(Described { message, field, named })
}

fn is_type_of_pages(media_type: &str, kind: &str) -> bool {
    if kind == "conversion" { media_type == "text/plain" } else { is_html(media_type) }
}

fn content<'a>(record: &Record<'a>, block: &'a [u8], kind: &str, max_bytes: u64) -> Result<Content<'a>, Failed> {
    let Described { message, field, named } = described(record, block, kind).map_err(Failed::Passed)?;
    let body = match &message {
        Some(message) => decoded(record, message, max_bytes)?,
        None => Cow::Borrowed(block),
    };
    // The rest of the page is in records of the type `continuation`.
    let is_segment = record.header.get("warc-segment-number").is_some();
    if body.trim_ascii().is_empty() && !is_segment {
        return Err(Failed::Passed(PassedReason::EmptyBody));
    }
    let media_type = match named {
        Some(media_type) => media_type,
        // Nobody says what it is: HTML begins with a tag.
        None if begins_with_tag(&body) => "text/html".to_owned(),
        None => String::new(),
    };
    match is_type_of_pages(&media_type, kind) {
        false => Err(Failed::Passed(PassedReason::ContentType)),
        true if is_segment => Err(Failed::Fault(BadReason::BrokenBody)),
        true => Ok(Content { media_type, field, body }),
    }
}

fn decoded<'a>(record: &Record<'a>, message: &HttpMessage<'a>, max_bytes: u64) -> Result<Cow<'a, [u8]>, Failed> {
    match message.body(max_bytes) {
        Body::Whole(body) => Ok(body),
        Body::Beginning(body) if record.header.get("warc-truncated").is_some() => Ok(body),
        Body::Beginning(_) => Err(Failed::Fault(BadReason::BrokenBody)),
        Body::TooLarge => Err(Failed::Fault(BadReason::TooLarge)),
    }
}

fn take(row: &mut WebRow, content: &Content<'_>, taken: Taken<'_>) {
    if content.media_type == "text/plain" {
        // Text in a conversion record is UTF-8; if it is not, that is found out with all other texts.
        row.text = Some(content.body.to_vec());
        return;
    }
    let html = decode(&content.body, content.field.as_deref());
    let syntax = if content.media_type == XHTML { Syntax::Xhtml } else { Syntax::Html };
    row.text = Some(taken.extractor.text_of(&html, syntax).into_bytes());
    row.title = taken.title.then(|| title_of(&html, syntax)).flatten();
}

/// Returns the media type of a field in lower case, without what follows it.
fn media_type(field: &str) -> String {
    let end = field.trim_start().find(|c: char| c.is_whitespace() || matches!(c, ';' | ','));
    let field = field.trim_start();
    field[..end.unwrap_or(field.len())].to_ascii_lowercase()
}

/// Returns the field that names the media type of a message: of several, the last one that names any but `*/*`; or of those with
/// the same type behind each other, the last one with a character set. If none names a type, the first one may still name the
/// character set. Source: the Fetch standard, "extract a MIME type".
fn content_type<'a>(message: &HttpMessage<'a>) -> Option<Cow<'a, str>> {
    let (mut named, mut found): (Option<String>, Option<Cow<'a, str>>) = (None, None);
    for field in message.fields.all("content-type") {
        let now = named_type(&field);
        if found.is_none() || (now.is_some() && (now != named || has_charset(&field))) {
            found = Some(field);
        }
        named = now.or(named);
    }
    found
}

/// Returns the media type of a field, if it says what something is.
fn named_type(field: &str) -> Option<String> {
    Some(media_type(field)).filter(|media_type| media_type.contains('/') && media_type != "*/*")
}

fn has_charset(field: &str) -> bool {
    field.to_ascii_lowercase().contains("charset")
}

/// The media type of pages in XML.
const XHTML: &str = "application/xhtml+xml";

fn is_html(media_type: &str) -> bool {
    matches!(media_type, "text/html" | XHTML)
}
