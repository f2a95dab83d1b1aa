//! Stubs: walls, soft errors and interstitials. Many addresses of one source answer with one text, which is not what their
//! pages say.
//!
//! ```text
//! query batch, sources ─► classes: pages of one source with one text, or nearly ─► signals ─► stubs
//! earlier nights ─► what the pages of a class said before ─────────────────────────┘
//! ```
//!
//! Invariant: a stub is no state of its page. It leaves the batch before the night is joined, so it represents nothing, and
//! the page keeps its earlier text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use nearprint_documents::url_host;
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::{Sketch, hamming_distance};
use nearprint_join::{Origin, RowSet, Verifier, lost_share};
use nearprint_parquet::schema::STUBS;
use nearprint_parquet::{BATCH_ROWS, DatasetWriter, StagedFile};
use nearprint_store::{EarlierState, RecrawlHistory, Recrawls, Store};
use nearprint_tasks::{QueryBatch, SkipReason, batch_of_stored};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::excerpt::excerpt;
use crate::resources::Resources;
use crate::stages::sources::{NO_SOURCE, RowSources, address};

/// What a stub is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StubRules {
    /// Whether stubs are looked for.
    pub find: bool,
    /// The smallest share of a source's pages with which one text is a stub, whatever its pages said before. 1 means that
    /// only what pages said before counts.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_share: f64,
    /// The largest number of features of a text that carries little. A longer one is a stub only if many pages said
    /// something else before.
    pub max_features: u32,
}

impl Default for StubRules {
    fn default() -> Self {
        Self { find: true, min_share: 0.2, max_features: 200 }
    }
}

impl StubRules {
    /// Returns an error if the smallest share is no share.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) about the key.
    pub fn validate(&self) -> Result<()> {
        if (0.0..=1.0).contains(&self.min_share) {
            return Ok(());
        }
        let reason = format!("{} is not a share: write a number from 0 to 1, 1 is off", self.min_share);
        Err(Fault::config("stubs.min_share", reason))
    }
}

/// The fewest addresses that make a text a stub by its share alone.
const MIN_ADDRESSES: usize = 20;
/// The largest lost share between pages that have one text by share.
const MAX_LOSS: f64 = 0.04;
/// The fewest different earlier texts of pages that all say one thing now, if that carries little.
const MIN_EARLIER: usize = 3;
/// The same, if it carries more: a site that sends old addresses to one page.
const MIN_EARLIER_OF_LONG: usize = 10;
/// The most bits in which the sketches differ of pages that say one thing now: a resemblance of 7/16. Walls name the address or
/// the time, and soft errors list other pages.
const MAX_BITS_ALIKE: u32 = 72;
/// The fewest bits in which the sketches differ of different texts: a resemblance of 1/5. Pages of one template are no
/// different texts, and neither are a page and the same page with other chrome.
const MIN_BITS_DIFFERENT: u32 = 102;
/// The number of a source's texts among which the centres of classes are looked for: the most frequent ones and, as all
/// others are equally frequent, those with the least hashes.
const SAMPLED_TEXTS: usize = 256;
/// The number of classes of a source that are looked at, for each signal.
const MAX_CLASSES: usize = 8;
/// The number of pages of a class whose earlier texts are compared with one another.
const SAMPLED_EARLIER: usize = 64;
/// The number of classes in a night's counts.
const LISTED: usize = 10;

/// The reason of the decision about a stub.
pub const STUB: &str = "stub";

/// How a stub was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StubSignal {
    /// Its pages had different texts before, and all have one now.
    Collapse,
    /// Many addresses of its source have this text, and it carries little.
    Share,
}

impl StubSignal {
    fn name(self) -> &'static str {
        match self {
            Self::Collapse => "collapse",
            Self::Share => "share",
        }
    }
}

/// A text that pages of one source answer with instead of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StubClass {
    /// The source.
    pub source: String,
    /// How it was found.
    pub signal: StubSignal,
    /// The page whose text it is. Those of the other pages are the same, or nearly.
    pub stub_id: String,
    /// The number of its pages.
    pub n_documents: u64,
    /// The number of the source's pages that have a text.
    pub n_of_source: u64,
    /// The number of different texts that its pages had before, as far as they were compared.
    pub n_earlier_texts: u64,
}

/// A page that has the text of a class.
#[derive(Debug)]
pub(crate) struct Stub {
    pub(crate) id: String,
    pub(crate) is_revisit: bool,
    /// What its text is to the nights before.
    pub(crate) history: RecrawlHistory,
    class: usize,
    source: u32,
}

/// The stubs of a night, by id.
#[derive(Debug, Default)]
pub struct Stubs {
    classes: Vec<StubClass>,
    stubs: Vec<Stub>,
}

/// The pages of a source that have one text: its hash with each of their rows.
type SameText = [([u8; 16], u32)];

/// What is known of a text.
struct Text<'a> {
    hash: [u8; 16],
    fingerprint: Option<u64>,
    sketch: Option<&'a Sketch>,
    n_features: Option<u32>,
}

impl Text<'_> {
    fn is_near(&self, other: &Self, verifier: &Verifier) -> bool {
        let (Some(a), Some(b)) = (self.fingerprint, other.fingerprint) else { return false };
        let distance = u8::try_from(hamming_distance(a, b));
        distance.is_ok_and(|distance| verifier.verify(distance, self.sketch, other.sketch).is_some())
    }

    /// Returns the number of bits in which the sketches of two texts differ.
    fn bits(&self, other: &Self) -> Option<u32> {
        Some(self.sketch?.distance(other.sketch?))
    }

    /// Returns whether two texts are the same, or near and neither loses more than next to nothing with the other.
    fn is_same(&self, other: &Self, verifier: &Verifier) -> bool {
        let losses = || [self.loss(other), other.loss(self)];
        self.hash == other.hash
            || (self.is_near(other, verifier)
                && losses().into_iter().all(|loss| loss.is_none_or(|loss| loss <= MAX_LOSS)))
    }

    /// Returns whether a page says the same thing as another one, and little of its own: at most this number of features.
    /// Without sketches, near texts do.
    fn is_alike(&self, other: &Self, verifier: &Verifier, max_own: u32) -> bool {
        let alike = || match self.bits(other) {
            Some(bits) => bits <= MAX_BITS_ALIKE && self.n_own(other).is_none_or(|n| n <= f64::from(max_own)),
            None => self.is_near(other, verifier),
        };
        self.hash == other.hash || alike()
    }

    /// Returns the share of its features that another text lacks, about.
    fn loss(&self, other: &Self) -> Option<f64> {
        let bits = u16::try_from(self.bits(other)?).ok()?;
        Some(lost_share(self.n_features?, other.n_features?, bits))
    }

    /// Returns the number of its features that another text lacks, about.
    fn n_own(&self, other: &Self) -> Option<f64> {
        Some(self.loss(other)? * f64::from(self.n_features?))
    }

    /// Returns whether two texts have little in common. Without sketches, texts that are not near have.
    fn is_different(&self, other: &Self, verifier: &Verifier) -> bool {
        let differ =
            || self.bits(other).map_or_else(|| !self.is_near(other, verifier), |bits| bits >= MIN_BITS_DIFFERENT);
        self.hash != other.hash && differ()
    }
}

/// The pages of a source that say one thing.
struct Class {
    source: u32,
    n_of_source: usize,
    centre: u32,
    carries_little: bool,
    rows: Vec<u32>,
}

/// The pages of a source that have a text.
struct Pages<'a> {
    source: u32,
    rows: &'a [(u32, u32)],
}

/// What stubs are found in.
pub struct StubSearch<'a> {
    /// The store.
    pub store: &'a Store,
    /// The night's documents.
    pub batch: &'a QueryBatch,
    /// Their sources.
    pub sources: &'a RowSources,
    /// Those that earlier nights have too.
    pub recrawls: &'a Recrawls,
    /// What makes a pair.
    pub verifier: Verifier,
    /// What a stub is.
    pub rules: StubRules,
    /// The resources.
    pub resources: &'a Resources,
}

impl StubSearch<'_> {
    /// Finds the stubs of the night, and the rows that they have in its batch.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn find(&self) -> Result<(Stubs, RowSet)> {
        let mut rows = RowSet::default();
        if !self.rules.find {
            return Ok((Stubs::default(), rows));
        }
        let of_sources = self.with_texts();
        let (mut found, mut collapsed) = (Vec::new(), Vec::new());
        for rows in of_sources.chunk_by(|a, b| a.0 == b.0) {
            let pages = Pages { source: rows[0].0, rows };
            if self.sources.names[pages.source as usize] == NO_SOURCE {
                continue;
            }
            let by_share = self.by_share(&pages);
            let mut taken = RowSet::default();
            by_share.iter().flat_map(|class| &class.rows).for_each(|&row| taken.insert(row));
            collapsed.extend(self.that_changed(&pages, &taken));
            found.extend(by_share.into_iter().map(|class| {
                let of_class = class.rows.clone();
                (class, StubSignal::Share, of_class, 0)
            }));
        }
        found.extend(self.collapsed(collapsed).await?);
        let mut stubs = Stubs::default();
        found.sort_by_key(|(class, ..)| class.centre);
        for (class, signal, of_class, n_earlier) in found {
            let at = stubs.classes.len();
            for &row in &of_class {
                rows.insert(row);
                stubs.stubs.push(Stub {
                    id: self.batch.id(row).into_owned(),
                    is_revisit: self.batch.revisits.contains(row),
                    history: self.recrawls.history(row),
                    class: at,
                    source: class.source,
                });
            }
            stubs.classes.push(StubClass {
                source: self.sources.names[class.source as usize].clone(),
                signal,
                stub_id: self.batch.id(class.centre).into_owned(),
                n_documents: of_class.len() as u64,
                n_of_source: class.n_of_source as u64,
                n_earlier_texts: n_earlier as u64,
            });
        }
        stubs.stubs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok((stubs, rows))
    }

    /// Returns the rows that have a text, by source, with the sources.
    fn with_texts(&self) -> Vec<(u32, u32)> {
        let with_text = |row: &u32| self.batch.text_hashes.get(*row).is_some();
        let rows = self.batch.rows().filter(with_text).map(|row| (self.sources.of_rows[row as usize], row));
        let mut rows: Vec<(u32, u32)> = rows.collect();
        rows.sort_unstable();
        rows
    }

    /// Returns the texts that carry little and that many addresses of a source have.
    fn by_share(&self, pages: &Pages<'_>) -> Vec<Class> {
        #[allow(clippy::cast_precision_loss, reason = "a share of pages")]
        let is_enough = |n: usize| {
            n >= MIN_ADDRESSES
                && n as f64 >= self.rules.min_share * pages.rows.len() as f64
                && self.rules.min_share < 1.0
        };
        let little = pages.rows.iter().map(|&(_, row)| row).filter(|&row| self.carries_little(row));
        let hashes = self.hashes(little);
        if !is_enough(hashes.len()) {
            return Vec::new();
        }
        // A class has about its share in the sample too. Half of it is enough to look at all texts.
        #[allow(clippy::cast_precision_loss, reason = "a share of pages")]
        let is_large = |n: usize, of: usize| n >= MIN_EARLIER && n as f64 >= self.rules.min_share / 2.0 * of as f64;
        let mut classes = self.classes(pages, &hashes, is_large, |a, b| a.is_same(b, &self.verifier));
        classes.retain(|class| is_enough(class.rows.len()) && self.n_addresses(&class.rows) >= MIN_ADDRESSES);
        classes
    }

    /// Returns the pages of a source that changed and say one thing now, as many as may have said different ones before. With
    /// them are new pages that have the same text. `taken` are pages that are stubs already.
    fn that_changed(&self, pages: &Pages<'_>, taken: &RowSet) -> Vec<Class> {
        let left = || pages.rows.iter().map(|&(_, row)| row).filter(|&row| !taken.contains(row));
        let changed = self.hashes(left().filter(|&row| self.is_changed(row)));
        if changed.len() < MIN_EARLIER {
            return Vec::new();
        }
        let is_alike = |a: &Text<'_>, b: &Text<'_>| a.is_alike(b, &self.verifier, self.rules.max_features);
        let mut classes = self.classes(pages, &changed, |n, _| n >= MIN_EARLIER, is_alike);
        classes.retain(|class| class.rows.len() >= self.min_earlier(class));
        let new: Vec<u32> = left().filter(|&row| !classes.is_empty() && !self.recrawls.has(row)).collect();
        for class in &mut classes {
            let centre = self.text(class.centre);
            let is_same = |row: &u32| {
                let text = self.text(*row).zip(centre.as_ref());
                text.is_some_and(|(text, centre)| text.is_same(centre, &self.verifier))
            };
            class.rows.extend(new.iter().copied().filter(is_same));
            class.rows.sort_unstable();
        }
        classes
    }

    /// Divides pages of a source, which are given by the hashes of their texts, into classes of texts that belong to a centre, the
    /// largest first. It ends when the largest one is not large any more, by its pages in the sample and all pages there.
    fn classes(
        &self,
        pages: &Pages<'_>,
        hashes: &SameText,
        is_large: impl Fn(usize, usize) -> bool,
        belongs: impl Fn(&Text<'_>, &Text<'_>) -> bool,
    ) -> Vec<Class> {
        let mut pool: Vec<&SameText> = hashes.chunk_by(|a, b| a.0 == b.0).collect();
        let order = |a: &&SameText, b: &&SameText| b.len().cmp(&a.len()).then_with(|| a[0].0.cmp(&b[0].0));
        let text = |pages: &SameText| text_of(self.batch, pages[0].1, pages[0].0);
        let mut classes = Vec::new();
        while classes.len() < MAX_CLASSES {
            if pool.len() > SAMPLED_TEXTS {
                pool.select_nth_unstable_by(SAMPLED_TEXTS, order);
            }
            let n_sampled = pool.len().min(SAMPLED_TEXTS);
            pool[..n_sampled].sort_unstable_by(order);
            let sample: Vec<(Text<'_>, usize)> = pool[..n_sampled].iter().map(|of| (text(of), of.len())).collect();
            let n_all = sample.iter().map(|(_, n)| n).sum();
            let n_pages = |text: &Text<'_>| -> usize {
                sample.iter().filter(|(other, _)| belongs(other, text)).map(|(_, n)| n).sum()
            };
            // Of equally good centres the first stays, which has most pages of its own.
            let sizes = sample.iter().enumerate().map(|(at, (text, _))| (n_pages(text), Reverse(at)));
            let Some((_, Reverse(at))) = sizes.max().filter(|(n_pages, _)| is_large(*n_pages, n_all)) else { break };
            let (centre, row) = (text(pool[at]), pool[at][0].1);
            let (of_class, others): (Vec<_>, Vec<_>) = pool.into_iter().partition(|of| belongs(&text(of), &centre));
            pool = others;
            let mut rows: Vec<u32> = of_class.into_iter().flatten().map(|&(_, row)| row).collect();
            rows.sort_unstable();
            classes.push(Class {
                source: pages.source,
                n_of_source: pages.rows.len(),
                centre: row,
                carries_little: self.carries_little(row),
                rows,
            });
        }
        classes
    }

    /// Returns rows with the hashes of their texts, in order.
    fn hashes(&self, rows: impl Iterator<Item = u32>) -> Vec<([u8; 16], u32)> {
        let mut hashes: Vec<([u8; 16], u32)> =
            rows.filter_map(|row| Some((*self.batch.text_hashes.get(row)?, row))).collect();
        hashes.par_sort_unstable();
        hashes
    }

    /// Returns whether the text of a row has few features.
    fn carries_little(&self, row: u32) -> bool {
        self.batch.skipped.get(row) == Some(&SkipReason::TooShort)
            || self.batch.n_features.get(row).is_some_and(|&n| n <= self.rules.max_features)
    }

    /// Returns whether a page had another text before.
    fn is_changed(&self, row: u32) -> bool {
        self.recrawls.has(row) && !self.recrawls.is_same(row)
    }

    fn changed<'b>(&'b self, class: &'b Class) -> impl Iterator<Item = u32> + 'b {
        class.rows.iter().copied().filter(|&row| self.is_changed(row))
    }

    fn min_earlier(&self, class: &Class) -> usize {
        if class.carries_little { MIN_EARLIER } else { MIN_EARLIER_OF_LONG }
    }

    /// Counts the addresses of rows. Those that differ in their query alone are one, and ids that are no URLs are none.
    fn n_addresses(&self, rows: &[u32]) -> usize {
        let mut addresses = HashSet::new();
        for &row in rows {
            let id = self.batch.id(row);
            let address = address(&id);
            if url_host(address).is_some() {
                addresses.insert(address.split(['?', '#']).next().unwrap_or(address).to_owned());
            }
        }
        addresses.len()
    }

    /// Returns the classes whose pages had different texts before, and the pages that lose theirs.
    async fn collapsed(&self, classes: Vec<Class>) -> Result<Vec<(Class, StubSignal, Vec<u32>, usize)>> {
        let sampled = classes.iter().flat_map(|class| self.changed(class).take(SAMPLED_EARLIER));
        let earlier = self.earlier(sampled).await?;
        let mut collapsed = Vec::new();
        for class in classes {
            let sample: Vec<u32> = self.changed(&class).take(SAMPLED_EARLIER).collect();
            let n_earlier = self.n_different(&class, &sample, &earlier);
            if n_earlier >= self.min_earlier(&class) {
                collapsed.push((class, n_earlier));
            }
        }
        // A page that says much of what it said before says something of its own.
        let others = collapsed.iter().flat_map(|(class, _)| self.changed(class).skip(SAMPLED_EARLIER));
        let others = self.earlier(others).await?;
        let stubs = |(class, n_earlier): (Class, usize)| {
            let centre = self.text(class.centre);
            let is_own = |row: u32| {
                let id = self.batch.id(row);
                let before = [&earlier, &others].into_iter().flatten().find_map(|earlier| text_in(earlier, &id));
                let now = self.text(row).zip(centre.as_ref());
                before.zip(now).is_some_and(|(before, (now, centre))| {
                    [&now, centre].into_iter().any(|text| !before.is_different(text, &self.verifier))
                })
            };
            let is_stub = |&row: &u32| !is_own(row);
            let rows = class.rows.iter().copied().filter(is_stub).collect();
            (class, StubSignal::Collapse, rows, n_earlier)
        };
        Ok(collapsed.into_iter().map(stubs).collect())
    }

    /// Counts how many texts the pages of a sample had before of which each is different from the others, and from what they
    /// say now. It counts no further than is needed.
    fn n_different(&self, class: &Class, sample: &[u32], earlier: &Option<QueryBatch>) -> usize {
        let Some(centre) = self.text(class.centre) else { return 0 };
        let mut different = vec![centre];
        for &row in sample {
            let before = earlier.as_ref().and_then(|earlier| text_in(earlier, &self.batch.id(row)));
            let Some(before) = before.filter(|before| before.fingerprint.is_some()) else { continue };
            if different.iter().all(|other| other.is_different(&before, &self.verifier)) {
                different.push(before);
            }
            if different.len() > MIN_EARLIER_OF_LONG {
                break;
            }
        }
        different.len() - 1
    }

    fn text(&self, row: u32) -> Option<Text<'_>> {
        Some(text_of(self.batch, row, *self.batch.text_hashes.get(row)?))
    }

    /// Reads what pages were before. `None` means that there is nothing to read.
    async fn earlier(&self, rows: impl Iterator<Item = u32>) -> Result<Option<QueryBatch>> {
        let mut of_nights: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for EarlierState { night, run_row, .. } in rows.filter_map(|row| self.recrawls.state_before(row)) {
            of_nights.entry(night).or_default().push(run_row);
        }
        let nights = self.store.all_nights(Origin::OWN);
        let mut stored = Vec::new();
        for (night, mut rows) in of_nights {
            rows.sort_unstable();
            rows.dedup();
            stored.extend(nights.stored_rows(night, &rows).await?);
        }
        match stored.is_empty() {
            true => Ok(None),
            false => batch_of_stored(&stored, self.resources.counted_bytes()).map(Some),
        }
    }
}

fn text_of(batch: &QueryBatch, row: u32, hash: [u8; 16]) -> Text<'_> {
    Text {
        hash,
        fingerprint: batch.fingerprints.get(row).copied(),
        sketch: batch.sketches.get(row),
        n_features: batch.n_features.get(row).copied(),
    }
}

fn text_in<'a>(batch: &'a QueryBatch, id: &str) -> Option<Text<'a>> {
    let row = batch.row_of(id)?;
    Some(text_of(batch, row, *batch.text_hashes.get(row)?))
}

impl Stubs {
    /// Returns the number of stubs.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.stubs.len() as u64
    }

    /// Returns the classes with most pages.
    #[must_use]
    pub fn largest(&self) -> Vec<StubClass> {
        let mut classes: Vec<&StubClass> = self.classes.iter().collect();
        classes.sort_by(|a, b| b.n_documents.cmp(&a.n_documents).then_with(|| a.stub_id.cmp(&b.stub_id)));
        let short = |class: &StubClass| StubClass {
            stub_id: excerpt(&class.stub_id),
            source: excerpt(&class.source),
            ..class.clone()
        };
        classes.into_iter().take(LISTED).map(short).collect()
    }

    /// Returns the stubs, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stub> {
        self.stubs.iter()
    }

    /// Returns the source of each stub.
    pub(crate) fn sources(&self) -> impl Iterator<Item = u32> {
        self.stubs.iter().map(|stub| stub.source)
    }

    /// Writes the dataset of the stubs below a folder.
    ///
    /// # Errors
    /// The disk is full.
    pub fn write(&self, folder: &Path) -> Result<Vec<StagedFile>> {
        let mut writer = DatasetWriter::new(folder, "stubs", &STUBS, &[]);
        for stubs in self.stubs.chunks(BATCH_ROWS) {
            let classes = || stubs.iter().map(|stub| &self.classes[stub.class]);
            #[allow(clippy::cast_precision_loss, reason = "a share of pages")]
            let share = |class: &StubClass| class.n_documents as f64 / class.n_of_source.max(1) as f64;
            let arrays: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values(stubs.iter().map(|stub| &stub.id))),
                Arc::new(StringArray::from_iter_values(classes().map(|class| &class.source))),
                Arc::new(StringArray::from_iter_values(classes().map(|class| class.signal.name()))),
                Arc::new(StringArray::from_iter_values(classes().map(|class| &class.stub_id))),
                Arc::new(Int64Array::from_iter_values(classes().map(|class| class.n_documents.cast_signed()))),
                Arc::new(Float64Array::from_iter_values(classes().map(share))),
                Arc::new(Int64Array::from_iter_values(classes().map(|class| class.n_earlier_texts.cast_signed()))),
            ];
            let rows = RecordBatch::try_new(Arc::clone(&STUBS), arrays);
            writer.write(rows.map_err(|e| Fault::internal("stubs", e))?)?;
        }
        writer.finish()
    }
}
