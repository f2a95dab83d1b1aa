//! Turns text into weighted features, the first stage of nearprint: pure functions of a text and a [`TokenizeConfig`].
//!
//! ```text
//! text ─► normalize ─► tokens ─► features ─► has_enough?
//!         Cow<str>     Tokens    (bytes, weight)
//! ```
//!
//! An [`Analyzer`] is built once from a config and the contents of the user's files ([`Resources`]), and is then shared
//! by every thread. Nothing here reads a file, a clock or a locale, so the same text and config give the same features
//! everywhere.
//!
//! ```
//! use nearprint_tokenize::{Analyzer, Resources, TokenizeConfig};
//!
//! let config = TokenizeConfig::default();
//! let analyzer = Analyzer::try_new(&config, &Resources::default())?;
//! let text = analyzer.normalize("Near-duplicates&nbsp;in 北京市！");
//! let tokens = analyzer.tokens(&text);
//! assert_eq!(tokens.iter().collect::<Vec<_>>(), ["near", "duplicates", "in", "北京", "京市"]);
//! let features = analyzer.features(&tokens, &config.features);
//! assert_eq!(features.iter().next(), Some((&b"near"[..], 65_536)));
//! assert!(!analyzer.has_enough(&text, features.n_distinct()));
//! # Ok::<(), nearprint_tokenize::TokenizeError>(())
//! ```

mod analyzer;
#[cfg(feature = "published")]
mod ascii_words;
#[cfg(feature = "published")]
mod byte_pieces;
mod char_ngrams;
mod config;
#[cfg(feature = "published")]
mod cppjieba;
mod distinct;
mod error;
mod idf;
mod jieba;
mod mixed;
pub mod naive;
mod normalize;
mod pairs;
mod partial_sort;
mod script;
mod shingle;
mod stop_words;
mod tokenizer;
mod tokenizer_kind;
mod tokenizers;
mod tokens;
#[cfg(feature = "published")]
mod utf16_ngrams;
mod weight;
mod whitespace;
#[cfg(feature = "published")]
mod word_char_ngrams;
mod words;

pub use analyzer::{Analyzer, Resources};
pub use config::{FeatureConfig, MinFeatures, NormalizeConfig, StopWordsConfig, TokenizeConfig, TokenizerConfig};
pub use distinct::{DistinctTokens, Scratch, WordsAndPairs};
pub use error::TokenizeError;
pub use idf::IdfBuilder;
pub use shingle::Features;
pub use tokenizer_kind::TokenizerKind;
pub use tokens::Tokens;
pub use weight::{ONE, Top, Weight};
