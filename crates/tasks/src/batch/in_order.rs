//! The documents of a night in order, while the texts of revisits are looked for.
//!
//! A revisit record says that its page has the text of another record. Its document takes the columns of that text, and keeps
//! its own id, place, source and values of the keep order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::{UInt32Type, UInt64Type};
use nearprint_documents::{BadReason, BadRow};
use nearprint_fault::Result;
use nearprint_fingerprint::Sketch;
use nearprint_join::RowSet;
use nearprint_parquet::schema::{DOC_ID, FINGERPRINT, N_FEATURES, SKETCH, TEXT_HASH};
use nearprint_parquet::{Columns, fixed, value};
use nearprint_storage::row_number;
use nearprint_store::{NewestTexts, StoredRows};

use super::collect::{CollectPolicy, Collecting, Target, keep_order};
use super::decimal_order::DecimalOrder;
use super::query_batch::{Ids, QueryBatch, SkipReason, Sources};
use super::words::{NightWords, WordSpill};
use crate::file_reading::FileReading;

/// The documents of a night in order of their ids, each once. The texts of some revisits may be unknown.
pub struct InOrder<'a> {
    collecting: Collecting<'a>,
    /// The arrivals, by id.
    order: Vec<u32>,
    /// The revisits in the order.
    revisits: Vec<Revisit>,
    n_passed_revisits: u64,
}

/// Whose text a revisit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextOf {
    /// That of the document that it names.
    Named,
    /// Its own, as an earlier execution of its night published it.
    Itself,
}

/// A document whose record is a revisit.
struct Revisit {
    /// Its position in the order.
    position: u32,
    /// The id of the document whose text it has.
    of: String,
    /// The place of that text in the columns of texts, if it is known.
    text: Option<u32>,
}

impl<'a> Collecting<'a> {
    /// Returns the batch, in order. Texts that revisits have and no document of the batch has are unknown.
    ///
    /// # Errors
    /// Any error of [`in_order`](Self::in_order) occurs.
    pub fn finish(self, policy: &CollectPolicy, name_of: impl Fn(u32) -> String) -> Result<QueryBatch> {
        self.in_order(policy, name_of)?.finish()
    }

    /// Puts the documents in order, each id once.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if ids are repeated and the policy has no rule for them,
    /// or if the rule leaves out more rows than it may.
    pub fn in_order(mut self, policy: &CollectPolicy, name_of: impl Fn(u32) -> String) -> Result<InOrder<'a>> {
        let n = self.fingerprints.n_rows();
        let numbered = self.ids.is_empty() && n > 0;
        self.refuse_misplaced(numbered)?;
        let (order, n_passed_revisits) =
            if numbered { (DecimalOrder::new(n).numbers().collect(), 0) } else { self.order_by_id(policy, name_of)? };
        self.bad_rows.retain(|bad| !policy.left_out.contains(&FileReading::from(bad.file)));
        Ok(InOrder::new(self, order, n_passed_revisits, &policy.left_out))
    }
}

impl<'a> InOrder<'a> {
    /// `order` are the arrivals by id, without those that were left out or passed over. The readings that are `left_out` count
    /// for nothing.
    fn new(
        mut collecting: Collecting<'a>,
        order: Vec<u32>,
        n_passed_revisits: u64,
        left_out: &BTreeSet<FileReading>,
    ) -> Self {
        let targets: Vec<(u32, &Target)> = match collecting.revisits.is_empty() {
            true => Vec::new(),
            false => (0..).zip(&order).filter_map(|(n, &at)| Some((n, collecting.revisit_of(at)?))).collect(),
        };
        let mut records: HashMap<&[u8], Vec<u32>> =
            targets.iter().map(|(_, target)| (target.id.as_bytes(), Vec::new())).collect();
        if !records.is_empty() {
            // The rule for repeated ids may have left the record out that is meant.
            for at in 0..collecting.fingerprints.n_rows() {
                let is_read = || !left_out.contains(&FileReading::from(collecting.places.of(at).0));
                if let Some(records) = records.get_mut(collecting.ids.get(at))
                    && collecting.revisit_of(at).is_none()
                    && is_read()
                {
                    records.push(at);
                }
            }
        }
        let text_of = |target: &Target| {
            let stays = order.binary_search_by(|&at| collecting.ids.get(at).cmp(target.id.as_bytes()));
            let stays = stays.ok().map(|found| order[found]);
            let is_meant = |&at: &u32| match (&target.newest_by, collecting.newest_by.get(at)) {
                (None, _) => Some(at) == stays,
                (Some(_), None) => true,
                (Some(meant), Some(newest_by)) => meant.contains(newest_by),
            };
            let meant = records.get(target.id.as_bytes())?.iter().copied().filter(is_meant);
            meant.min_by_key(|&at| (Some(at) != stays, collecting.places.of(at)))
        };
        let revisits = targets.iter().map(|&(position, target)| {
            let text = text_of(target);
            Revisit { position, of: target.id.clone(), text }
        });
        let revisits = revisits.collect();
        collecting.revisits = Vec::new();
        Self { collecting, order, revisits, n_passed_revisits }
    }

    /// Returns the number of revisits that add nothing, because another record of the night has the same id.
    #[must_use]
    pub fn n_passed_revisits(&self) -> u64 {
        self.n_passed_revisits
    }

    /// Returns the ids of the documents whose texts revisits have and no record of the night has, or of the revisits themselves.
    #[must_use]
    pub fn wanted(&self, of: TextOf) -> BTreeSet<&str> {
        let without = self.revisits.iter().filter(|revisit| revisit.text.is_none());
        without.filter_map(|revisit| self.id_of(revisit, of)).collect()
    }

    /// Returns the id of the document whose text a revisit has, or its own.
    fn id_of<'b>(&'b self, revisit: &'b Revisit, of: TextOf) -> Option<&'b str> {
        match of {
            TextOf::Named => Some(&revisit.of),
            TextOf::Itself => {
                let id = std::str::from_utf8(self.collecting.ids.get(self.order[revisit.position as usize]));
                debug_assert!(id.is_ok(), "ids are text");
                id.ok()
            }
        }
    }

    /// Gives revisits the texts that the store has of the documents that they name, or of themselves.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the batch would take more memory than it may; the
    /// columns have other types.
    pub fn add(&mut self, texts: &NewestTexts, of: TextOf) -> Result<()> {
        let mut found: HashMap<&str, u32> = HashMap::new();
        for rows in &texts.stored {
            self.collecting.refuse_too_large(rows.batch.num_rows())?;
            self.add_stored(rows, &mut found)?;
        }
        self.collecting.refuse_too_large(texts.without_text.len())?;
        for id in &texts.without_text {
            found.insert(id, self.add_text(Text { skipped: Some(SkipReason::Empty), ..Text::default() }));
        }
        let mut revisits = std::mem::take(&mut self.revisits);
        for revisit in revisits.iter_mut().filter(|revisit| revisit.text.is_none()) {
            revisit.text = self.id_of(revisit, of).and_then(|id| found.get(id).copied());
        }
        self.revisits = revisits;
        Ok(())
    }

    fn add_stored<'b>(&mut self, rows: &'b StoredRows, found: &mut HashMap<&'b str, u32>) -> Result<()> {
        let columns = Columns { batch: &rows.batch, file: "texts of earlier nights" };
        let (ids, text_hashes, sketches) =
            (columns.strings(DOC_ID)?, columns.bytes::<16>(TEXT_HASH)?, columns.bytes::<32>(SKETCH)?);
        let fingerprints = columns.optional(FINGERPRINT, Columns::primitive::<UInt64Type>)?;
        let n_features = columns.optional(N_FEATURES, Columns::primitive::<UInt32Type>)?;
        for i in 0..rows.batch.num_rows() {
            let text = Text {
                fingerprint: fingerprints.map(|values| values.value(i)),
                sketch: fixed::<32>(sketches, i).map(Sketch),
                n_features: n_features.and_then(|n| value(n, i)),
                text_hash: fixed(text_hashes, i),
                skipped: rows.are_short.then_some(SkipReason::TooShort),
            };
            found.insert(ids.value(i), self.add_text(text));
        }
        Ok(())
    }

    /// Adds a text, and returns its place. The store does not know its length.
    fn add_text(&mut self, text: Text) -> u32 {
        let columns = &mut self.collecting;
        let place = columns.fingerprints.n_rows();
        columns.fingerprints.push(text.fingerprint);
        columns.low_halves.push(None);
        columns.sketches.push(text.sketch);
        columns.n_features.push(text.n_features);
        columns.text_hashes.push(text.text_hash);
        columns.skipped.push(text.skipped);
        columns.lengths.push(None);
        columns.have_words.push(None);
        columns.words.push(None);
        place
    }

    /// Returns the batch. Revisits whose texts are unknown are no documents, and are among its bad rows.
    ///
    /// # Errors
    /// A column of the keep order has no values, which is a defect.
    pub fn finish(self) -> Result<QueryBatch> {
        let numbered = self.collecting.ids.is_empty() && !self.order.is_empty();
        let (mut collecting, Documents { order, texts, revisits }) = self.documents();
        let texts = texts.as_ref().unwrap_or(&order);
        let ids = if numbered {
            Ids::Numbered(DecimalOrder::new(row_number(order.len())))
        } else {
            Ids::Named(collecting.ids.take(&order))
        };
        drop((collecting.places, collecting.ids, collecting.newest_by));
        collecting.bad_rows.sort_unstable();
        let lengths = collecting.lengths.take(texts);
        let sources = collecting.source.map(|_| {
            let mut names: Vec<(String, u32)> = collecting.source_names.into_iter().collect();
            names.sort_unstable_by_key(|&(_, code)| code);
            let names = names.into_iter().map(|(name, _)| name).collect();
            Sources { of_rows: collecting.sources.take(&order), names }
        });
        let spilled = collecting.spill.map(WordSpill::finish).transpose()?;
        let words = spilled.map(|file| NightWords { file: Arc::new(file), places: collecting.words.take(texts) });
        Ok(QueryBatch {
            n_rows: row_number(order.len()),
            ids,
            keep_order: keep_order(collecting.keys, collecting.keep, &lengths, &order)?,
            fingerprints: collecting.fingerprints.take(texts),
            low_halves: collecting.low_halves.take(texts),
            sketches: Arc::new(collecting.sketches.take(texts)),
            n_features: Arc::new(collecting.n_features.take(texts)),
            text_hashes: collecting.text_hashes.take(texts),
            skipped: collecting.skipped.take(texts),
            lengths,
            sources,
            have_words: collecting.have_words.take(texts),
            words,
            revisits,
            bad_rows: collecting.bad_rows,
        })
    }

    /// Makes bad rows of revisits whose texts are unknown. Returns the documents.
    fn documents(self) -> (Collecting<'a>, Documents) {
        let Self { mut collecting, order, revisits, .. } = self;
        if revisits.is_empty() {
            return (collecting, Documents { order, texts: None, revisits: RowSet::default() });
        }
        let (mut left, mut texts, mut rows) = (Vec::with_capacity(order.len()), Vec::new(), RowSet::default());
        let mut revisits = revisits.into_iter().peekable();
        for (position, at) in (0..).zip(order) {
            let text = match revisits.next_if(|revisit| revisit.position == position) {
                None => Some(at),
                Some(Revisit { text: None, .. }) => None,
                Some(Revisit { text, .. }) => {
                    rows.insert(row_number(left.len()));
                    text
                }
            };
            match text {
                Some(text) => {
                    left.push(at);
                    texts.push(text);
                }
                None => {
                    let ((file, row), id) = (collecting.places.of(at), collecting.ids.text(at).into_owned());
                    collecting.bad_rows.push(BadRow { file, row, reason: BadReason::UnknownRevisit, id: Some(id) });
                }
            }
        }
        (collecting, Documents { order: left, texts: Some(texts), revisits: rows })
    }
}

/// The documents of a batch, as places in columns.
struct Documents {
    /// Their own values.
    order: Vec<u32>,
    /// Their texts. `None` means that they are in the same places.
    texts: Option<Vec<u32>>,
    /// The rows that are revisits.
    revisits: RowSet,
}

/// What a store has of a text.
#[derive(Default)]
struct Text {
    fingerprint: Option<u64>,
    sketch: Option<Sketch>,
    n_features: Option<u32>,
    text_hash: Option<[u8; 16]>,
    skipped: Option<SkipReason>,
}
