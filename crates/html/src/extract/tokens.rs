//! The tokens of a page, without the attributes behind the first 1000 of a tag.
//!
//! The tokenizer compares each attribute of a tag with all before it, so a tag of many attributes would take a time
//! that grows with their square. Further ones are kept from it. Only the tokenizer knows whether what looks like a tag
//! is one, or lies in a script, a title or a comment: it gives no token for a tag before the tag ends.

use std::cell::Cell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// The most attributes of a tag.
const MAX_ATTRIBUTES: usize = 1000;
/// The bytes of attributes that are looked at before the tokenizer is asked whether a tag has them.
const SHORT_BYTES: usize = 256;
/// Bytes that the tokenizer gets at once. It counts those of a piece by 32 bits.
const PIECE_BYTES: usize = 1 << 20;

/// Gives the tokens of a page to a sink, and returns it. The sink asks for no script to be run.
pub fn tokenize<S: TokenSink>(html: &str, sink: S) -> S {
    let mut feeder = Feeder::new(html.strip_prefix('\u{feff}').unwrap_or(html), sink);
    // What has begun and gives no token before it ends, and the number of tokens before it.
    let mut open = None;
    while let Some(at) = feeder.rest.find('<') {
        feeder.feed(at + 1);
        let (rest, n_tokens) = (feeder.rest, feeder.n_tokens());
        let name = match open.filter(|&(_, before)| before == n_tokens) {
            Some((Open::Other, _)) => continue,
            Some((Open::Name, _)) => rest,
            None => {
                let name = rest.strip_prefix('/').unwrap_or(rest);
                if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    // The tokenizer passes over `</>` without a token.
                    open = (!rest.starts_with("/>")).then_some((Open::Other, n_tokens));
                    continue;
                }
                name
            }
        };
        let Some(name_bytes) = name.find(|c: char| is_blank(c) || matches!(c, '/' | '>' | '<')) else { break };
        let (head, behind) = rest.split_at(rest.len() - name.len() + name_bytes + 1);
        match head.as_bytes()[head.len() - 1] {
            b'>' => {}
            b'<' => open = Some((Open::Name, n_tokens)),
            _ if Attributes::are_short(behind) => open = Some((Open::Other, n_tokens)),
            _ => {
                feeder.feed(head.len());
                if feeder.n_tokens() == n_tokens {
                    let attributes = Attributes::of(behind);
                    feeder.feed(attributes.fed);
                    feeder.rest = &behind[attributes.end..];
                }
            }
        }
    }
    feeder.feed(feeder.rest.len());
    feeder.end()
}

/// The beginnings that give no token before they end.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// The name of a tag, in which a `<` was.
    Name,
    /// A tag of few attributes, a comment, or something that is read as one.
    Other,
}

/// A tokenizer that gets a page in pieces.
struct Feeder<'a, S: TokenSink> {
    tokenizer: Tokenizer<Counting<S>>,
    queue: BufferQueue,
    /// The rest of the page, which the tokenizer has not got yet.
    rest: &'a str,
    /// A copy of what comes next, whose parts are not copied again, and the length of `rest` behind it.
    copy: StrTendril,
    n_behind: usize,
}

impl<'a, S: TokenSink> Feeder<'a, S> {
    fn new(html: &'a str, sink: S) -> Self {
        // A mark would be taken from the beginning of each piece.
        let options = TokenizerOpts { discard_bom: false, ..TokenizerOpts::default() };
        let tokenizer = Tokenizer::new(Counting { sink, n_tokens: Cell::new(0) }, options);
        let (copy, n_behind) = (StrTendril::new(), html.len());
        Self { tokenizer, queue: BufferQueue::default(), rest: html, copy, n_behind }
    }

    /// Gives the next bytes to the tokenizer.
    fn feed(&mut self, n_bytes: usize) {
        debug_assert!(self.rest.is_char_boundary(n_bytes), "the tokenizer is fed whole characters");
        let until = self.rest.len() - n_bytes;
        while self.rest.len() > until {
            if self.rest.len() <= self.n_behind {
                let (copied, behind) = self.rest.split_at(self.rest.floor_char_boundary(PIECE_BYTES));
                (self.copy, self.n_behind) = (StrTendril::from_slice(copied), behind.len());
            }
            // What was left out of the copy is passed over with it.
            self.copy.pop_front(self.copy.len32() - size(self.rest.len() - self.n_behind));
            let n = self.rest.len() - until.max(self.n_behind);
            self.queue.push_back(self.copy.subtendril(0, size(n)));
            self.rest = &self.rest[n..];
            let _ = self.tokenizer.feed(&self.queue);
        }
    }

    fn n_tokens(&self) -> u64 {
        self.tokenizer.sink.n_tokens.get()
    }

    fn end(self) -> S {
        self.tokenizer.end();
        self.tokenizer.sink.sink
    }
}

/// Returns the size of a part of a copy, which has no more than [`PIECE_BYTES`].
#[allow(clippy::cast_possible_truncation, reason = "a piece has few bytes")]
fn size(n_bytes: usize) -> u32 {
    debug_assert!(n_bytes <= PIECE_BYTES, "a part of {n_bytes} bytes");
    n_bytes as u32
}

/// A sink that counts its tokens. Errors are none, since they are given within tags too.
struct Counting<S> {
    sink: S,
    n_tokens: Cell<u64>,
}

impl<S: TokenSink> TokenSink for Counting<S> {
    type Handle = S::Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<S::Handle> {
        if !matches!(token, Token::ParseError(_)) {
            self.n_tokens.set(self.n_tokens.get() + 1);
        }
        self.sink.process_token(token, line)
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.sink.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// The attributes of a tag.
#[derive(Debug)]
struct Attributes {
    /// The bytes of those that the tokenizer gets.
    fed: usize,
    /// Where the tag ends: its `>`, or the end of the page.
    end: usize,
}

impl Attributes {
    /// Returns whether a tag whose name is before this ends so soon that it cannot have too many.
    fn are_short(rest: &str) -> bool {
        let near = &rest[..rest.floor_char_boundary(SHORT_BYTES)];
        Self::of(near).end < near.len()
    }

    /// Looks at what follows the name of a tag, by the states of the HTML standard.
    fn of(rest: &str) -> Self {
        let bytes = rest.as_bytes();
        let (mut state, mut n_attributes, mut at) = (State::BeforeName, 0, 0);
        let mut fed = None;
        while at < bytes.len() {
            let byte = bytes[at];
            state = match (state, byte) {
                (State::Quoted(quote), _) => {
                    let Some(n) = bytes[at..].iter().position(|&byte| byte == quote) else { break };
                    at += n;
                    State::BeforeName
                }
                (_, b'>') => return Self { fed: fed.unwrap_or(at), end: at },
                (State::BeforeValue, b'"' | b'\'') => State::Quoted(byte),
                (State::BeforeValue, _) if is_blank(byte.into()) => state,
                (State::BeforeValue, _) => State::Unquoted,
                (State::Unquoted, _) if is_blank(byte.into()) => State::BeforeName,
                (State::Unquoted, _) => state,
                (_, b'/') => State::BeforeName,
                (State::Name, _) if is_blank(byte.into()) => State::AfterName,
                (State::Name | State::AfterName, b'=') => State::BeforeValue,
                (State::Name, _) => state,
                (State::BeforeName | State::AfterName, _) if is_blank(byte.into()) => state,
                (State::BeforeName | State::AfterName, _) => {
                    n_attributes += 1;
                    if n_attributes == MAX_ATTRIBUTES + 1 {
                        fed = Some(at);
                    }
                    State::Name
                }
            };
            at += 1;
        }
        Self { fed: fed.unwrap_or(bytes.len()), end: bytes.len() }
    }
}

/// Where in its attributes a tag is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
}

fn is_blank(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\x0c' | ' ')
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fmt::Write as _;

    use html5ever::tokenizer::states::RawKind;
    use html5ever::tokenizer::{TagKind, TokenizerOpts};
    use proptest::prelude::*;

    use super::*;

    /// Writes the tokens down. Texts that follow one another are one.
    #[derive(Default)]
    struct Written(RefCell<String>);

    impl TokenSink for Written {
        type Handle = ();

        fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
            let mut written = self.0.borrow_mut();
            match token {
                Token::ParseError(_) => {}
                Token::CharacterTokens(text) => written.push_str(&text),
                Token::TagToken(tag) => {
                    write!(written, "\n[{:?} {} {} {:?}]\n", tag.kind, tag.name, tag.self_closing, tag.attrs).unwrap();
                    match &*tag.name {
                        "script" if tag.kind == TagKind::StartTag => {
                            return TokenSinkResult::RawData(RawKind::ScriptData);
                        }
                        "style" if tag.kind == TagKind::StartTag => return TokenSinkResult::RawData(RawKind::Rawtext),
                        "title" if tag.kind == TagKind::StartTag => return TokenSinkResult::RawData(RawKind::Rcdata),
                        "plaintext" => return TokenSinkResult::Plaintext,
                        _ => {}
                    }
                }
                other => write!(written, "\n[{other:?}]\n").unwrap(),
            }
            TokenSinkResult::Continue
        }
    }

    fn at_once(html: &str) -> String {
        let tokenizer = Tokenizer::new(Written::default(), TokenizerOpts::default());
        let queue = BufferQueue::default();
        queue.push_back(StrTendril::from_slice(html));
        let _ = tokenizer.feed(&queue);
        tokenizer.end();
        tokenizer.sink.0.into_inner()
    }

    fn bounded(html: &str) -> String {
        tokenize(html, Written::default()).0.into_inner()
    }

    /// The pieces of which pages are made, with and without a sense.
    fn pieces() -> impl Strategy<Value = String> {
        let pieces = "<|>|</|/>|</>|<!--|-->|--!>|<!|<?|<![CDATA[|]]>|<!DOCTYPE html|&am|&lt|&#6|&|;|\"|'|=|/| |\n|\r|\
            \t|\0|\u{feff}|a|b=c|d=\"e f\"|g='h > i'|<div |<p>|</p |<script |<script>|</script |</script>|<title>|\
            </title |<style>|</style>|<plaintext>|é|文|<a<b |<x/y|<script|</titl|-|!";
        let pieces: Vec<&str> = pieces.split('|').collect();
        let piece = prop::sample::select(pieces).prop_map(str::to_owned);
        let tag = (0_usize..12).prop_map(|n| format!("<div {}>", "a b=c ".repeat(n)));
        prop::collection::vec(prop_oneof![9 => piece, 1 => tag], 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_page_whose_tags_have_few_attributes_has_the_tokens_that_it_has_without_the_bound(html in pieces()) {
            prop_assert_eq!(bounded(&html), at_once(&html), "{:?}", html);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn wherever_a_tag_of_many_attributes_stands_they_are_bounded(before in pieces(), after in pieces()) {
            let many: String = (0..2 * MAX_ATTRIBUTES).map(|n| format!("z{n}='>' ")).collect();
            let html = format!("{before}<i {many}>{after}");
            let tokens = bounded(&html);
            for tag in tokens.lines().filter(|line| line.starts_with("[StartTag") || line.starts_with("[EndTag")) {
                prop_assert!(tag.matches("QualName").count() <= MAX_ATTRIBUTES, "{:?}", html);
            }
        }
    }

    #[test]
    fn further_attributes_are_left_out_and_what_follows_the_tag_stays() {
        let attributes = |n: usize| (0..n).map(|n| format!("a{n}='>'")).collect::<Vec<_>>().join(" ");
        for kept in ["", "/"] {
            let whole = at_once(&format!("<p {}{kept}>text<b>", attributes(MAX_ATTRIBUTES)));
            assert_eq!(bounded(&format!("<p {}{kept}>text<b>", attributes(MAX_ATTRIBUTES))), whole);
        }
        let whole = at_once(&format!("<p {}>text<b>", attributes(MAX_ATTRIBUTES)));
        assert_eq!(bounded(&format!("<p {}>text<b>", attributes(MAX_ATTRIBUTES + 1))), whole);
        assert_eq!(bounded(&format!("<p {}>text<b>", attributes(3 * MAX_ATTRIBUTES))), whole);
        let in_script = format!("<script>a <b {}></script>", attributes(3 * MAX_ATTRIBUTES));
        assert_eq!(bounded(&in_script), at_once(&in_script));
        let in_comment = format!("<!-- <b {}> -->", attributes(3 * MAX_ATTRIBUTES));
        assert_eq!(bounded(&in_comment), at_once(&in_comment));
    }
}
