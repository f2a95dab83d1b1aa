//! Records that are no documents by what they are, and are passed over. They are counted, by reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The reason why a record of a WARC file is no document. None of them is damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassedReason {
    /// The record says how the file was made.
    Warcinfo,
    /// The record is what a crawler asked.
    Request,
    /// The record is about another one.
    Metadata,
    /// The page has the text of another record: that of its own response tonight, or of one that is not looked for.
    Revisit,
    /// The record has another type that holds no page.
    OtherType,
    /// The record is rules for robots.
    Robots,
    /// The server did not answer with a page: its status is not 200 to 299.
    HttpStatus,
    /// The content is no HTML; that of a conversion record, no plain text.
    ContentType,
    /// The body is empty.
    EmptyBody,
}

impl PassedReason {
    /// All reasons, in order.
    pub const ALL: [Self; 9] = [
        Self::Warcinfo,
        Self::Request,
        Self::Metadata,
        Self::Revisit,
        Self::OtherType,
        Self::Robots,
        Self::HttpStatus,
        Self::ContentType,
        Self::EmptyBody,
    ];

    /// Returns the name of the reason in summaries.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Request => "request",
            Self::Metadata => "metadata",
            Self::Revisit => "revisit",
            Self::OtherType => "other_type",
            Self::Robots => "robots",
            Self::HttpStatus => "http_status",
            Self::ContentType => "content_type",
            Self::EmptyBody => "empty_body",
        }
    }
}

/// The numbers of records that were passed over, by reason. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Passed(Arc<[AtomicU64; PassedReason::ALL.len()]>);

impl Passed {
    /// Counts a record.
    pub fn add(&self, reason: PassedReason) {
        self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the reasons that records had so far, each with their number.
    #[must_use]
    pub fn counts(&self) -> Vec<(PassedReason, u64)> {
        let counts = PassedReason::ALL.into_iter().zip(self.0.iter());
        counts.map(|(reason, n)| (reason, n.load(Ordering::Relaxed))).filter(|&(_, n)| n > 0).collect()
    }
}
