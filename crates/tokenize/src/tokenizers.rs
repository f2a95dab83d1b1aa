//! The tokenizers.

use std::num::NonZeroUsize;
use std::sync::Arc;

#[cfg(feature = "published")]
use crate::ascii_words::AsciiWords;
#[cfg(feature = "published")]
use crate::byte_pieces::BytePieces;
use crate::char_ngrams::CharNgrams;
use crate::config::TokenizeConfig;
#[cfg(feature = "published")]
use crate::cppjieba::Cppjieba;
use crate::error::TokenizeError;
use crate::jieba::{Jieba, JiebaCutter};
use crate::mixed::Mixed;
use crate::pairs::Pairs;
use crate::script::{is_han, is_unspaced};
use crate::tokenizer::Tokenizer;
use crate::tokenizer_kind::TokenizerKind;
#[cfg(feature = "published")]
use crate::utf16_ngrams::Utf16Ngrams;
use crate::whitespace::Whitespace;
#[cfg(feature = "published")]
use crate::word_char_ngrams::WordCharNgrams;
use crate::words::{Symbols, WordCut, Words};

/// Builds the tokenizer that `config` names; `jieba` returns the dictionary, and is called only for tokenizers that
/// need one.
pub(crate) fn build(
    config: &TokenizeConfig,
    jieba: impl FnOnce() -> Result<Arc<Jieba>, TokenizeError>,
) -> Result<Box<dyn Tokenizer>, TokenizeError> {
    let cutter = |jieba| JiebaCutter::new(jieba, config.tokenizer.hmm, &config.stop_words.drop_parts_of_speech);
    let drops = config.tokenizer.drop_tokens_without_alphanumeric;
    let symbols = if drops { Symbols::Dropped } else { Symbols::Kept };
    let cut = WordCut { symbols, long_run: NonZeroUsize::new(config.tokenizer.long_run) };
    Ok(match config.tokenizer.kind {
        TokenizerKind::Mixed => Box::new(Mixed { jieba: cutter(jieba()?), cut }),
        TokenizerKind::Pairs => Box::new(Pairs { cut, is_of_run: is_unspaced }),
        TokenizerKind::Bigrams => Box::new(Pairs { cut, is_of_run: is_han }),
        TokenizerKind::Jieba => Box::new(cutter(jieba()?)),
        TokenizerKind::Words => Box::new(Words { cut }),
        TokenizerKind::Whitespace => Box::new(Whitespace::UNICODE),
        TokenizerKind::AsciiWhitespace => Box::new(Whitespace::ASCII),
        TokenizerKind::CharNgrams => Box::new(CharNgrams::new(config.tokenizer.ngram)),
        #[cfg(feature = "published")]
        TokenizerKind::WordCharNgrams => Box::new(WordCharNgrams::new(config.tokenizer.ngram)),
        #[cfg(feature = "published")]
        TokenizerKind::FullWordCharNgrams => Box::new(WordCharNgrams::full(config.tokenizer.ngram)),
        #[cfg(feature = "published")]
        TokenizerKind::Utf16Ngrams => Box::new(Utf16Ngrams::new(config.tokenizer.ngram)),
        #[cfg(feature = "published")]
        TokenizerKind::BytePieces => Box::new(BytePieces::new(config.tokenizer.ngram)),
        #[cfg(feature = "published")]
        TokenizerKind::AsciiWords => Box::new(AsciiWords),
        #[cfg(feature = "published")]
        TokenizerKind::Cppjieba => Box::new(Cppjieba::new(config.tokenizer.hmm)),
        #[cfg(not(feature = "published"))]
        kind => return Err(TokenizeError::NotBuilt { what: format!("tokenizer.kind = {kind}") }),
    })
}
