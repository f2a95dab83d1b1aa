use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub(crate) use jieba_rs::Jieba;

use crate::config::NormalizeConfig;
use crate::error::TokenizeError;
use crate::normalize::normalize;
use crate::tokenizer::Tokenizer;

/// jieba, which cuts a whole text; `mixed` uses it for runs of Han. The tokens are those of Python's jieba 0.42.1
/// (tested on its own output).
pub(crate) struct JiebaCutter {
    jieba: Arc<Jieba>,
    hmm: bool,
    /// Tokens whose tag starts with one of these are dropped. Tagging takes time, so nothing is tagged if the list is
    /// empty.
    dropped_tags: Vec<String>,
}

impl JiebaCutter {
    pub(crate) fn new(jieba: Arc<Jieba>, hmm: bool, dropped_tags: &[String]) -> Self {
        Self { jieba, hmm, dropped_tags: dropped_tags.to_vec() }
    }

    /// Appends the tokens of `text`, which starts at byte `base` of the whole.
    pub(crate) fn cut(&self, text: &str, base: usize, spans: &mut Vec<Range<usize>>) {
        if self.dropped_tags.is_empty() {
            let tokens = self.jieba.cut(text, self.hmm);
            for token in &tokens {
                self.push(token.word, base + token.byte_start, spans);
            }
        } else {
            let tags = self.jieba.tag(text, self.hmm);
            for tag in tags.iter().filter(|tag| !self.is_dropped(tag.tag)) {
                self.push(tag.word, base + tag.byte_start, spans);
            }
        }
    }

    /// Appends a token that starts at byte `start`. The token is cut further if jieba-rs with its hidden Markov model
    /// joins parts that Python's jieba does not: `Native-Kubernetes`, `Bondex.png`, `1.2.0`.
    fn push(&self, token: &str, start: usize, spans: &mut Vec<Range<usize>>) {
        let is_joined = self.hmm && token.contains(['.', '-', '_']) && token.is_ascii() && !self.jieba.has_word(token);
        if is_joined {
            cut_as_python(token, start, spans);
        } else {
            spans.push(start..start + token.len());
        }
    }

    fn is_dropped(&self, tag: &str) -> bool {
        self.dropped_tags.iter().any(|prefix| tag.starts_with(prefix.as_str()))
    }
}

/// Cuts an ASCII token into what Python's `finalseg` matches with `[a-zA-Z0-9]+(?:\.\d+)?%?` and what lies between
/// (jieba 0.42.1).
fn cut_as_python(token: &str, start: usize, spans: &mut Vec<Range<usize>>) {
    let bytes = token.as_bytes();
    let run = |from: usize, is_in: fn(&u8) -> bool| bytes[from..].iter().take_while(|byte| is_in(byte)).count();
    let mut at = 0;
    while at < bytes.len() {
        let mut end = at + run(at, u8::is_ascii_alphanumeric);
        if end == at {
            end += run(at, |byte| !byte.is_ascii_alphanumeric());
        } else {
            let decimals = if bytes.get(end) == Some(&b'.') { run(end + 1, u8::is_ascii_digit) } else { 0 };
            end += if decimals > 0 { 1 + decimals } else { 0 };
            end += usize::from(bytes.get(end) == Some(&b'%'));
        }
        spans.push(start + at..start + end);
        at = end;
    }
}

impl Tokenizer for JiebaCutter {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        self.cut(text, 0, spans);
    }
}

/// Returns jieba's own dictionary with the user's words added. The dictionary is decoded once in a process (a few
/// hundred milliseconds, some tens of megabytes).
///
/// # Errors
/// [`TokenizeError::UserDictionary`] at the first line that is not `word [frequency] [tag]`.
pub(crate) fn dictionary(user: Option<&str>, config: &NormalizeConfig) -> Result<Arc<Jieba>, TokenizeError> {
    let default = default_dictionary();
    let Some(user) = user else {
        return Ok(default);
    };
    let mut jieba = Jieba::clone(&default);
    for (at, line) in user.lines().enumerate() {
        add_line(&mut jieba, line, config).map_err(|reason| TokenizeError::UserDictionary {
            line: at + 1,
            text: line.to_owned(),
            reason,
        })?;
    }
    Ok(Arc::new(jieba))
}

/// Returns jieba's own dictionary.
pub(crate) fn default_dictionary() -> Arc<Jieba> {
    static DEFAULT: OnceLock<Arc<Jieba>> = OnceLock::new();
    Arc::clone(DEFAULT.get_or_init(|| Arc::new(Jieba::new())))
}

/// Adds `word [frequency] [tag]`, as Python's `load_userdict` reads it; a blank line adds nothing. The word is
/// normalised like the texts in which it is to be found. A word without a frequency gets the least one that keeps it in
/// one piece. A word that is already in the dictionary keeps its tag.
fn add_line(jieba: &mut Jieba, line: &str, config: &NormalizeConfig) -> Result<(), &'static str> {
    let mut fields = line.trim_start_matches('\u{FEFF}').split_whitespace();
    let Some(word) = fields.next() else {
        return Ok(());
    };
    let mut field = fields.next();
    let frequency = match field {
        Some(digits) if digits.starts_with(|c: char| !c.is_alphabetic()) => Some(frequency(digits)?),
        _ => None,
    };
    if frequency.is_some() {
        field = fields.next();
    }
    if fields.next().is_some() {
        return Err("too many fields");
    }
    let word = normalize(word, config);
    if word.is_empty() {
        return Err("nothing is left of the word once normalised");
    }
    jieba.add_word(&word, frequency, field);
    Ok(())
}

/// A positive 32-bit number: the sum over any dictionary then fits 64 bits.
fn frequency(digits: &str) -> Result<usize, &'static str> {
    match digits.parse::<u32>() {
        Ok(0) => Err("a frequency of 0"),
        Ok(frequency) => usize::try_from(frequency).map_err(|_| "a frequency out of range"),
        Err(_) => Err("a frequency that is no positive 32-bit integer"),
    }
}
