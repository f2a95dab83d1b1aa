use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::ascii_words::AsciiWords;
use crate::bigrams::Bigrams;
use crate::byte_pieces::BytePieces;
use crate::char_ngrams::CharNgrams;
use crate::cppjieba::Cppjieba;
use crate::jieba::{Jieba, JiebaCutter};
use crate::mixed::Mixed;
use crate::utf16_ngrams::Utf16Ngrams;
use crate::whitespace::Whitespace;
use crate::word_char_ngrams::WordCharNgrams;
use crate::words::{Symbols, Words};
use crate::{TokenizeConfig, TokenizeError, TokenizerKind};

/// Cuts a normalised text into tokens. A new tokenizer is one file that implements this, and one line in [`build`].
pub(crate) trait Tokenizer: Send + Sync {
    /// The text that [`spans`](Self::spans) is given: what came in, unless the tokenizer leaves some of it out.
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }

    /// Appends the byte range of each token of the prepared text, in order.
    fn spans(&self, prepared: &str, spans: &mut Vec<Range<usize>>);

    /// Whether it was told to give no token without a letter or digit, and gives none.
    fn drops_symbols(&self) -> bool {
        false
    }
}

/// The tokenizer that `config` names; `jieba` gives the dictionary, and is called only by tokenizers that need one.
pub(crate) fn build(
    config: &TokenizeConfig,
    jieba: impl FnOnce() -> Result<Arc<Jieba>, TokenizeError>,
) -> Result<Box<dyn Tokenizer>, TokenizeError> {
    let cutter = |jieba| JiebaCutter::new(jieba, config.tokenizer.hmm, &config.stop_words.drop_parts_of_speech);
    let drops = config.tokenizer.drop_tokens_without_alphanumeric;
    let symbols = if drops { Symbols::Dropped } else { Symbols::Kept };
    Ok(match config.tokenizer.kind {
        TokenizerKind::Mixed => Box::new(Mixed { jieba: cutter(jieba()?), symbols }),
        TokenizerKind::Bigrams => Box::new(Bigrams { symbols }),
        TokenizerKind::Jieba => Box::new(cutter(jieba()?)),
        TokenizerKind::Words => Box::new(Words { symbols }),
        TokenizerKind::Whitespace => Box::new(Whitespace::UNICODE),
        TokenizerKind::AsciiWhitespace => Box::new(Whitespace::ASCII),
        TokenizerKind::CharNgrams => Box::new(CharNgrams::new(config.tokenizer.ngram)),
        TokenizerKind::WordCharNgrams => Box::new(WordCharNgrams::new(config.tokenizer.ngram)),
        TokenizerKind::FullWordCharNgrams => Box::new(WordCharNgrams::full(config.tokenizer.ngram)),
        TokenizerKind::Utf16Ngrams => Box::new(Utf16Ngrams::new(config.tokenizer.ngram)),
        TokenizerKind::BytePieces => Box::new(BytePieces::new(config.tokenizer.ngram)),
        TokenizerKind::AsciiWords => Box::new(AsciiWords),
        TokenizerKind::Cppjieba => Box::new(Cppjieba::new(config.tokenizer.hmm)),
    })
}

/// The tokens of one text, in order: byte ranges of the text, which is borrowed unless the tokenizer had to change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens<'a> {
    text: Cow<'a, str>,
    spans: Vec<Range<usize>>,
}

impl<'a> Tokens<'a> {
    /// `spans` are byte ranges of `text`, on character boundaries.
    pub(crate) fn new(text: Cow<'a, str>, spans: Vec<Range<usize>>) -> Self {
        Self { text, spans }
    }

    /// The tokens, in the order of the text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| &self.text[span.clone()])
    }

    /// How many there are, repeats counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of the text that the tokens lie in.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }
}
