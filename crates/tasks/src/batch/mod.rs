//! The query batch in memory: tonight's documents, in id order, after fingerprinting.

mod arrivals;
mod collect;
pub mod dataset;
mod decimal_order;
mod in_order;
mod query_batch;
mod repeats;
mod row_columns;
mod stored;
mod words;

pub(crate) use collect::BAD;
pub use collect::{CollectPolicy, Collecting};
pub use in_order::{InOrder, TextOf};
pub use nearprint_documents::{KeepKey, LENGTH};
pub(crate) use query_batch::{FILE, KEEP_PREFIX, LOW_HALF, NEWEST_BY, REVISIT_NEWEST_BY, REVISIT_OF, ROW, SKIPPED};
pub use query_batch::{QueryBatch, SkipReason, Sources};
pub use repeats::RepeatedIds;
pub use row_columns::RowColumns;
pub(crate) use row_columns::fixed_size_binary;
pub use stored::batch_of_stored;
pub(crate) use words::WORDS;
pub use words::{ArrivingWords, NightWords, WordSpill, WordsOfTexts};
