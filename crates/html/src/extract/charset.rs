//! The character set of a page.

use std::borrow::Cow;
use std::cell::LazyCell;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// The bytes in which a page may name its character set.
const PRESCAN_BYTES: usize = 4 << 10;
/// The characters beyond ASCII from which on valid UTF-8 is no chance.
const SURE_CHARACTERS: usize = 16;
/// The bytes that detection looks at.
const DETECT_BYTES: usize = 256 << 10;
/// The bytes before the first one beyond ASCII that detection looks at too.
const BEFORE_FIRST: usize = 256;
const ESCAPE: u8 = 0x1b;

/// Decodes a page. The character set is that of its byte order mark; or that of `content_type`, the field of the HTTP
/// header; or that of its `<meta>`; or one that is detected. Bytes that are no characters become U+FFFD.
///
/// Names are often wrong: servers give one to all pages, and a page that was saved as UTF-8 keeps that of its former
/// character set. In the wrong one, letters become symbols or U+FFFD, which are no features, and different pages look alike.
/// So bytes that tell count more than names: UTF-16 by the zeros of its markup, UTF-8 if the whole page is valid with 16
/// characters beyond ASCII. The name `UTF-8`, or its byte order mark, is ignored if at least 16 byte sequences are invalid
/// UTF-8, and these are more than twice as many as the valid characters beyond ASCII.
///
/// ```
/// use nearprint_html::decode;
///
/// assert_eq!(decode(b"\xd6\xd0\xce\xc4", Some("text/html; charset=gb2312")), "中文");
/// assert_eq!(decode(b"<meta charset=Shift_JIS>\x93\xfa\x96{", None), "<meta charset=Shift_JIS>日本");
/// ```
#[must_use]
pub fn decode<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    let marked = bytes.strip_prefix(b"\xef\xbb\xbf");
    let bytes = marked.filter(|rest| is_surely_not_utf8(rest)).unwrap_or(bytes);
    // Header and `<meta>` may both name it, and the page is looked at once.
    let is_no_utf8 = LazyCell::new(|| is_surely_not_utf8(bytes));
    let fits = |named: &&'static Encoding| *named != UTF_8 || !*is_no_utf8;
    let of_header = || content_type.and_then(|value| of_label(value.as_bytes())).filter(fits);
    let of_bytes = || wide(bytes).or_else(|| is_surely_utf8(bytes).then_some(UTF_8));
    let encoding = of_bytes().or_else(of_header).or_else(|| of_meta(bytes).filter(fits));
    // A byte order mark takes precedence.
    encoding.unwrap_or_else(|| detect(bytes)).decode(bytes).0
}

/// The pairs of bytes from which on zeros tell.
const SURE_PAIRS: usize = 8;

/// Returns the form of UTF-16 in which most of the beginning is ASCII, as markup is: every other byte of that is zero.
fn wide(bytes: &[u8]) -> Option<&'static Encoding> {
    let (pairs, _) = bytes[..bytes.len().min(PRESCAN_BYTES)].as_chunks::<2>();
    let most = |is_wide: &dyn Fn(&[u8; 2]) -> bool| 2 * pairs.iter().filter(|pair| is_wide(pair)).count() > pairs.len();
    match () {
        () if pairs.len() < SURE_PAIRS => None,
        () if most(&|[low, high]| *high == 0 && *low != 0) => Some(UTF_16LE),
        () if most(&|[high, low]| *high == 0 && *low != 0) => Some(UTF_16BE),
        () => None,
    }
}

/// Returns whether bytes are no UTF-8. Pages in UTF-8 may have faults. Not counted are no-break spaces of another character set,
/// emoji in two halves, and what follows a control character behind a text, which is binary data.
fn is_surely_not_utf8(bytes: &[u8]) -> bool {
    if str::from_utf8(bytes).is_ok() {
        return false;
    }
    let text = bytes.split(|&byte| byte < b'\t').next().unwrap_or(bytes);
    let (of_text, _) = characters_and_faults(text);
    let (n_characters, n_faults) = characters_and_faults(if of_text >= SURE_CHARACTERS { text } else { bytes });
    n_faults >= SURE_CHARACTERS && n_faults > 2 * n_characters
}

/// Counts the characters beyond ASCII of bytes as UTF-8, and the places that are no characters.
fn characters_and_faults(bytes: &[u8]) -> (usize, usize) {
    let (mut n_characters, mut n_faults) = (0, 0);
    // The bytes to come of a half of an emoji, a surrogate: ED, and two bytes that continue it.
    let mut of_half = 0;
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            of_half = 0;
            n_characters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        }
        match chunk.invalid() {
            [0x80..=0xbf] if of_half > 0 => of_half -= 1,
            [] | [0xa0] => {}
            [0xed] => of_half = 2,
            _ => (of_half, n_faults) = (0, n_faults + 1),
        }
    }
    (n_characters, n_faults)
}

/// Returns whether bytes are valid UTF-8 that no text in another character set would be by chance. They may end within a
/// character.
fn is_surely_utf8(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // What is before the first error is valid.
        Err(error) if error.error_len().is_none() => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        Err(_) => return false,
    };
    valid.chars().filter(|c| !c.is_ascii()).nth(SURE_CHARACTERS - 1).is_some()
}

/// Returns the character set that a `<meta>` at the beginning of the page names: one that is for it, or else one whose content is
/// that of an HTTP field.
fn of_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(PRESCAN_BYTES)].to_ascii_lowercase();
    of_metas(&head, false).or_else(|| of_metas(&head, true))
}

fn of_metas(head: &[u8], is_lenient: bool) -> Option<&'static Encoding> {
    let mut rest = head;
    while let Some(at) = find(rest, b"<") {
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix(b"<!--") {
            rest = &comment[find(comment, b"-->")?..];
            continue;
        }
        let tag = &rest[..find(rest, b">").unwrap_or(rest.len())];
        if tag.starts_with(b"<meta")
            && let Some(encoding) = of_attributes(&tag[b"<meta".len()..], is_lenient)
        {
            // Bytes in which an ASCII `<meta>` was read are not UTF-16.
            let is_wide = encoding == UTF_16LE || encoding == UTF_16BE;
            return Some(if is_wide { UTF_8 } else { encoding });
        }
        rest = &rest[tag.len().max(1)..];
    }
    None
}

/// Returns the character set that the attributes of a `<meta>` name: `charset`, or `content` in place of an HTTP field. Source: the
/// HTML standard, 13.2.3.2, "prescan a byte stream to determine its encoding". The names are in lower case.
fn of_attributes(mut rest: &[u8], is_lenient: bool) -> Option<&'static Encoding> {
    let (mut of_content, mut is_field) = (None, false);
    while let Some((name, value, behind)) = attribute(rest) {
        match name {
            b"charset" => return known(value),
            b"content" => {
                of_content = of_content.or_else(|| of_label(value));
                is_field |=
                    is_lenient && [&b"text/html"[..], b"application/xhtml"].iter().any(|kind| value.starts_with(kind));
            }
            b"http-equiv" => is_field |= value == b"content-type",
            _ => {}
        }
        rest = behind;
    }
    of_content.filter(|_| is_field)
}

/// Returns the name and the value of the first attribute of a tag, and what is behind it.
fn attribute(tag: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let ends = |at: &[u8], end: &dyn Fn(u8) -> bool| at.iter().position(|&byte| end(byte)).unwrap_or(at.len());
    let rest = &tag[ends(tag, &|byte| !byte.is_ascii_whitespace() && byte != b'/')..];
    if rest.is_empty() {
        return None;
    }
    // A name has one byte at least, which may be `=`.
    let name_bytes = 1 + ends(&rest[1..], &|byte| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'/'));
    let (name, rest) = rest.split_at(name_bytes);
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b"=") else { return Some((name, b"", rest)) };
    match rest.trim_ascii_start() {
        [quote @ (b'"' | b'\''), rest @ ..] => {
            let end = ends(rest, &|byte| byte == *quote);
            Some((name, rest[..end].trim_ascii(), &rest[(end + 1).min(rest.len())..]))
        }
        rest => {
            let (value, behind) = rest.split_at(ends(rest, &|byte| byte.is_ascii_whitespace()));
            // The tag ended with it.
            Some((name, value.strip_suffix(b"/").unwrap_or(value), behind))
        }
    }
}

/// Returns the character set that a value names.
fn of_label(value: &[u8]) -> Option<&'static Encoding> {
    label_in(value).and_then(known)
}

/// Returns the character set of a name. Browsers show one U+FFFD for pages in some character sets that are no longer used, such
/// as `hz-gb-2312`. Those are taken as unknown: different pages must not look alike. For the same reason `x-user-defined`, whose
/// characters are no letters, is what browsers take a `<meta>` with this name for.
fn known(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label_no_replacement(label)?;
    Some(if encoding == X_USER_DEFINED { WINDOWS_1252 } else { encoding })
}

/// Returns what follows `charset=`.
fn label_in(value: &[u8]) -> Option<&[u8]> {
    let value_start = (0..value.len()).find(|&at| {
        value[at..].get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"charset"))
            && value[at + 7..].trim_ascii_start().starts_with(b"=")
    })?;
    let rest = value[value_start + 7..].trim_ascii_start().get(1..)?.trim_ascii_start();
    let (rest, quote) = match rest {
        [quote @ (b'"' | b'\''), rest @ ..] => (rest, Some(*quote)),
        _ => (rest, None),
    };
    let ends = |byte: &u8| match quote {
        Some(quote) => *byte == quote,
        None => byte.is_ascii_whitespace() || matches!(byte, b';' | b'"' | b'\'' | b'>' | b'/' | b','),
    };
    Some(&rest[..rest.iter().position(ends).unwrap_or(rest.len())])
}

fn detect(bytes: &[u8]) -> &'static Encoding {
    // What is before the first byte that tells says nothing, however long it is. ISO-2022-JP tells by its escapes.
    let first = bytes.iter().position(|&byte| byte >= 0x80 || byte == ESCAPE).unwrap_or(bytes.len());
    let start = first.saturating_sub(BEFORE_FIRST);
    let end = bytes.len().min(start + DETECT_BYTES);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes[start..end], end == bytes.len());
    detector.guess(None, Utf8Detection::Allow)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_KR, GB18030, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1255, WINDOWS_1256};

    use super::decode;

    const CHINESE: &str = "今天天气很好，我们去公园散步。公园里有很多人在跑步、打太极拳，孩子们在草地上玩。";
    const JAPANESE: &str = "今日はとても良い天気なので、公園へ散歩に行きました。子どもたちが遊んでいました。";
    const KOREAN: &str = "오늘은 날씨가 아주 좋아서 우리는 공원에 산책하러 갔습니다. 아이들이 놀고 있었습니다.";
    const RUSSIAN: &str = "Сегодня очень хорошая погода, и мы пошли гулять в парк, где играли дети.";

    #[test]
    fn a_character_set_is_taken_from_the_header_or_the_meta_or_is_detected() {
        let all = [(GB18030, CHINESE), (SHIFT_JIS, JAPANESE), (EUC_KR, KOREAN), (WINDOWS_1251, RUSSIAN)];
        for (encoding, text) in all.into_iter().chain([(BIG5, "今天天氣很好，我們去公園散步。公園裡有很多人在跑步。")])
        {
            let (bytes, ..) = encoding.encode(text);
            assert_eq!(decode(&bytes, None), text, "detected {}", encoding.name());
            let header = format!("text/html;Charset = \"{}\"", encoding.name());
            assert_eq!(decode(&bytes, Some(&header)), text, "header {}", encoding.name());
            let meta = format!(
                "<!-- <meta charset=utf-8> --><meta http-equiv=x content='text/html; charset={}'>",
                encoding.name()
            );
            let page = [meta.as_bytes(), &bytes].concat();
            assert_eq!(decode(&page, Some("text/html")), format!("{meta}{text}"), "meta {}", encoding.name());
        }
        // Detection would say something else.
        let (text, bytes) = ("żółw", b"\xbf\xf3\xb3w");
        assert_ne!(decode(bytes, None), text);
        for meta in
            ["<meta charset=iso-8859-2>", "<meta http-equiv=content-type content='text/html; charset=iso-8859-2'>"]
        {
            let page = [b"<!-- <meta charset=utf-8> -->", meta.as_bytes(), bytes].concat();
            assert!(decode(&page, Some("text/html")).ends_with(text), "{meta}");
        }
    }

    #[test]
    fn a_page_that_is_utf8_is_read_so_whatever_its_meta_says_and_one_that_is_not_follows_its_meta() {
        let meta = "<meta charset=gb2312>";
        assert_eq!(decode(format!("{meta}{CHINESE}").as_bytes(), None), format!("{meta}{CHINESE}"));
        let cut = &format!("{meta}{CHINESE}").into_bytes()[..meta.len() + 100];
        assert!(decode(cut, None).starts_with(&format!("{meta}今天天气很好")));
        // These two bytes are a character in both.
        assert_eq!(decode(b"<meta charset=gb2312>\xd6\xb0", None), "<meta charset=gb2312>职");
    }

    #[test]
    fn a_page_that_is_no_utf8_is_not_read_so_whoever_says_it() {
        let hebrew = "היום מזג האוויר טוב מאוד, והלכנו לטייל בפארק שבו שיחקו ילדים רבים כל היום.";
        let arabic = "الطقس اليوم جميل جدا، وذهبنا للتنزه في الحديقة حيث كان الأطفال يلعبون طوال اليوم.";
        for (encoding, text) in
            [(WINDOWS_1251, RUSSIAN), (KOI8_R, RUSSIAN), (WINDOWS_1255, hebrew), (WINDOWS_1256, arabic)]
        {
            let (name, (body, ..)) = (encoding.name(), encoding.encode(text));
            let header = Some("text/html; charset=utf-8");
            for (meta, header) in [
                (format!("<meta charset={name}>"), header),
                ("<meta charset=utf-8>".to_owned(), header),
                ("<meta charset=utf-8>".to_owned(), None),
                (String::new(), header),
            ] {
                let page = [meta.as_bytes(), &body].concat();
                assert_eq!(decode(&page, header), format!("{meta}{text}"), "{name}, {meta}, {header:?}");
            }
        }
        let (russian, ..) = WINDOWS_1251.encode(RUSSIAN);
        let marked = [b"\xef\xbb\xbf<meta charset=windows-1251>", &*russian].concat();
        assert_eq!(decode(&marked, None), format!("<meta charset=windows-1251>{RUSSIAN}"));
        let (text, bytes) = ("é".repeat(20), [0xe9; 20]);
        assert_eq!(decode(&bytes, Some("text/html; charset=x-user-defined")), text);
    }

    #[test]
    fn a_page_in_utf8_with_faults_stays_what_it_says() {
        let emoji_in_halves = b"\xed\xa0\xbd\xed\xb8\x80 ".repeat(20);
        let binary = [b"\0", &*(0x80..=0xff).rev().collect::<Vec<u8>>().repeat(16)].concat();
        let rows: [(&str, &[u8], &str); 4] = [
            (RUSSIAN, &b"\xff ".repeat(20), "\u{fffd}"),
            ("d\u{e9}j\u{e0} vu", &emoji_in_halves, "\u{fffd}"),
            (RUSSIAN, &binary, "\0"),
            ("d\u{e9}j\u{e0} vu", &b"\xa0 ".repeat(60), "\u{fffd}"),
        ];
        for (text, faults, first) in rows {
            let page = [b"<meta charset=utf-8>", text.as_bytes(), faults].concat();
            for header in [None, Some("text/html; charset=utf-8")] {
                let said = decode(&page, header);
                assert!(said.starts_with(&format!("<meta charset=utf-8>{text}{first}")), "{said}");
            }
        }
        // A control character among the markup says nothing of what follows.
        let (russian, ..) = WINDOWS_1251.encode(RUSSIAN);
        let page = [b"<title>\x03</title>", &*russian].concat();
        assert_eq!(decode(&page, Some("text/html; charset=utf-8")), format!("<title>\u{3}</title>{RUSSIAN}"));
    }

    #[test]
    fn a_page_that_is_utf8_or_utf16_is_read_so_whatever_its_header_says() {
        for header in ["iso-8859-1", "gbk", "utf-16"] {
            let header = format!("text/html; charset={header}");
            assert_eq!(decode(CHINESE.as_bytes(), Some(&header)), CHINESE, "{header}");
        }
        let page = format!("<!doctype html><meta charset=utf-16><title>1</title><p>{CHINESE}</p>");
        let units = || page.encode_utf16();
        let (little, big): (Vec<u8>, Vec<u8>) =
            (units().flat_map(u16::to_le_bytes).collect(), units().flat_map(u16::to_be_bytes).collect());
        for header in [None, Some("text/html"), Some("text/html; charset=utf-8"), Some("text/html; charset=utf-16be")] {
            assert_eq!(decode(&little, header), page, "{header:?}");
            assert_eq!(decode(&big, header), page, "{header:?}");
        }
        assert_eq!(decode(b"a\0b", None), "a\0b", "a zero is no sign of UTF-16");
    }

    #[test]
    fn pages_in_character_sets_that_browsers_refuse_keep_their_bytes_apart() {
        for label in ["hz-gb-2312", "iso-2022-kr", "iso-2022-cn", "iso-2022-cn-ext", "replacement"] {
            let header = format!("text/html; charset={label}");
            assert_eq!(decode(b"one ~{VPND~}", Some(&header)), "one ~{VPND~}", "{label}");
            let page = format!("<meta charset={label}>two");
            assert_eq!(decode(page.as_bytes(), None), page);
            let page = format!("<meta charset=utf-8><meta charset={label}>中");
            assert_eq!(decode(page.as_bytes(), Some(&header)), page);
        }
    }

    #[test]
    fn a_byte_order_mark_takes_precedence_over_the_header_and_the_header_over_the_meta() {
        assert_eq!(decode(b"\xef\xbb\xbf\xc3\xa9", Some("text/html; charset=windows-1252")), "é");
        assert_eq!(decode(b"\xff\xfeA\0", None), "A");
        assert_eq!(decode(b"<meta charset=utf-8>\xe9", Some("text/html; charset=iso-8859-1")), "<meta charset=utf-8>é");
        assert_eq!(decode(b"<meta charset=utf-16>a", None), "<meta charset=utf-16>a");
        assert_eq!(decode(b"a\xff", Some("text/html; charset=utf-8")), "a\u{fffd}");
    }
}
