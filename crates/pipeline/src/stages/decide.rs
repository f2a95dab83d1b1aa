//! The decisions about the documents of a night.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::{Alike, hamming_distance};
use nearprint_join::{
    Canonical, ClassNeighbours, ClassOfRows, Clusters, Decision, DropRule, ExistingNeighbour, Gathered, JudgedPairs,
    KeptExisting, LossLimit, Origin, QueryRows, Representative, RowSet, Superseding, UnionFind, component, lost_share,
    n_kept_in_vain, star, star_bound,
};
use nearprint_parquet::schema::{DROP, KEEP, SKIP};
use nearprint_store::{ExistingShort, NewCanonical, RESTORED};
use nearprint_tasks::{ClassPairs, QueryBatch, SkipReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stages::existing::ReferenceNames;
use crate::stages::stubs::{STUB, Stubs};

/// The rule by which documents of a cluster are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClusterRule {
    /// Documents that make a verified pair with a kept one are dropped.
    #[default]
    Star,
    /// All documents but one of each connected component are dropped, however far apart its ends are.
    Component,
}

impl From<ClusterRule> for DropRule {
    fn from(rule: ClusterRule) -> Self {
        match rule {
            ClusterRule::Star => Self::Star,
            ClusterRule::Component => Self::Component,
        }
    }
}

/// The data that decisions follow from.
pub struct DecisionBasis {
    pub(crate) rule: ClusterRule,
    /// The largest lost share with which the rule drops a document.
    pub(crate) loss: LossLimit,
    pub(crate) gathered: Gathered,
    /// The verified pairs of different classes, for the star rule only.
    pub(crate) class_pairs: Arc<ClassPairs>,
    /// The pairs of classes that the judge took for near-duplicates.
    pub(crate) judged: Arc<JudgedPairs>,
}

/// The decision about a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowDecision {
    pub(super) outcome: Outcome,
    /// The distance of a dropped document from its canonical one. Equal short texts have one too.
    pub(super) distance: Option<u8>,
    canonical: CanonicalOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Skip(SkipReason),
    Unique,
    Canonical,
    /// Near a kept existing document, which lacks too much of it.
    Fuller,
    TooShort,
    Exact,
    Near,
    /// The canonical document contains the text, or begins as it does.
    Contained,
}

/// The document that is canonical for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CanonicalOf {
    Itself,
    /// A row of the batch.
    Row(u32),
    /// The kept existing document of a class, or of a component by its root.
    Existing(u32),
    /// The existing short text with the same hash.
    ExistingShort,
}

/// The decisions, one for each row of the batch.
pub struct Decisions {
    pub(super) rows: Vec<RowDecision>,
    clusters: Clusters,
    existing: HashMap<u32, KeptExisting>,
    existing_short: ExistingShort,
    pub(super) references: ReferenceNames,
    /// The lost shares of dropped rows that the judge has counted.
    judged_loss: HashMap<u32, f64>,
    /// The kept existing documents that kept rows contain, in order of (id, row, origin).
    pub(super) superseded: Vec<(Superseding, u32)>,
    /// The bound, and the component rule's drops; without the documents that no rule of near-duplicates decides about.
    star: Option<StarQuality>,
}

/// The rows that the star rule kept, beside those that could have been kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StarQuality {
    /// A number that no set of the night's documents exceeds in which none may be dropped for another one, or for an
    /// existing one.
    ///
    /// [`star_bound`](nearprint_join::star_bound()) says how it is found.
    pub n_keep_bound: u64,
    /// The number of kept documents that may be dropped for another kept one, which had its turn later. The other kept
    /// documents are at most `n_keep_bound`.
    pub n_kept_in_vain: u64,
    /// The number of kept documents that `clusters = "component"` would have dropped.
    pub n_kept_beyond_component: u64,
}

/// The numbers of documents by decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionCounts {
    /// The number of kept documents.
    pub n_keep: u64,
    /// The number of dropped documents.
    pub n_drop: u64,
    /// The number of skipped documents.
    pub n_skip: u64,
    /// The numbers of documents by decision and reason.
    pub by_reason: BTreeMap<String, u64>,
    /// The number of pairs of an earlier kept document and a kept one of the night that contains it.
    pub n_superseded: u64,
    /// The number of clusters of two or more of the night's documents.
    pub n_clusters: u64,
    /// The number of documents in the largest of these clusters.
    pub largest_cluster: u64,
    /// The quality of the star rule. `None` means that the component rule decided.
    #[serde(flatten)]
    pub star: Option<StarQuality>,
}

/// Returns whether the reason of a decision is that of a near-duplicate: the canonical document has another text, which is
/// near or contains this one.
#[must_use]
pub fn is_near_duplicate(reason: &str) -> bool {
    matches!(reason, NEAR | CONTAINED)
}

const NEAR: &str = "near";
const CONTAINED: &str = "contained";

impl DecisionCounts {
    /// Returns the number of documents that are dropped as near-duplicates.
    #[must_use]
    pub fn n_near_duplicates(&self) -> u64 {
        let is_counted = |name: &str| name.strip_prefix("drop_").is_some_and(is_near_duplicate);
        self.by_reason.iter().filter(|(name, _)| is_counted(name)).map(|(_, n)| n).sum()
    }
}

impl Outcome {
    pub(super) fn decision(self) -> &'static str {
        match self {
            Self::Skip(_) => SKIP,
            Self::Unique | Self::Canonical | Self::Fuller | Self::TooShort => KEEP,
            Self::Exact | Self::Near | Self::Contained => DROP,
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Skip(reason) => reason.name(),
            Self::Unique => "unique",
            Self::Canonical => "canonical",
            Self::Fuller => "fuller",
            Self::TooShort => "too_short",
            Self::Exact => "exact",
            Self::Near => NEAR,
            Self::Contained => CONTAINED,
        }
    }
}

impl Decisions {
    /// Decides about all documents, from the data that the forest pass gathered.
    pub fn new(
        batch: &QueryBatch,
        rows: &QueryRows,
        found: DecisionBasis,
        existing_short: ExistingShort,
        references: ReferenceNames,
    ) -> Result<Self> {
        // Every document counts as skipped until it is decided.
        let skipped = |row| keep_or(Outcome::Skip(batch.skipped.get(row).copied().unwrap_or(SkipReason::Empty)));
        let mut decided = Self {
            rows: batch.rows().map(skipped).collect(),
            clusters: Clusters::default(),
            existing: HashMap::new(),
            existing_short,
            references,
            judged_loss: HashMap::new(),
            superseded: Vec::new(),
            star: None,
        };
        let DecisionBasis { rule, loss, mut gathered, class_pairs, judged } = found;
        match rule {
            ClusterRule::Star => {
                let n_component = n_kept_by_component(batch, &mut gathered);
                let pairs = class_pairs.take(rows, &judged, loss)?;
                let neighbours = pairs.neighbours();
                decided.by_star(batch, &neighbours, &mut gathered);
                let n_kept_in_vain = decided.n_kept_in_vain(batch, &neighbours, &gathered);
                drop(neighbours);
                let mut rivals = pairs.rivals();
                let n_keep = fingerprinted_rows(batch).filter(|&row| decided.is_kept(row)).count() as u64;
                decided.star = Some(StarQuality {
                    n_keep_bound: star_bound(&mut rivals, |class| !decided.existing.contains_key(&class)),
                    n_kept_in_vain,
                    n_kept_beyond_component: n_keep.saturating_sub(n_component),
                });
            }
            ClusterRule::Component => decided.by_component(batch, &mut gathered)?,
        }
        decided.by_judge(rows, &judged, &gathered.classes);
        decided.short_texts(batch);
        decided.refuse_undecided(batch)?;
        let Gathered { mut sets, classes, less, paired, .. } = gathered;
        drop((classes, less, paired));
        join_short_texts(batch, &mut sets);
        decided.clusters = Clusters::of(sets, batch.rows().end);
        Ok(decided)
    }

    /// Checks that no document with a text is skipped, and that each dropped document has a canonical one.
    fn refuse_undecided(&self, batch: &QueryBatch) -> Result<()> {
        debug_assert_eq!(self.rows.len(), batch.len(), "a decision for each document");
        for (row, made) in batch.rows().zip(&self.rows) {
            let without_text = matches!(batch.skipped.get(row), Some(SkipReason::Empty | SkipReason::NullText));
            if matches!(made.outcome, Outcome::Skip(_)) != without_text {
                return Err(defect(format!("'{}' is not decided", batch.id(row).escape_debug())));
            }
            self.canonical_id(batch, row)?;
        }
        debug_assert!(
            self.rows.iter().all(|made| match made.canonical {
                CanonicalOf::Row(other) => self.is_kept(other),
                _ => true,
            }),
            "a document that is dropped is represented by one that is kept"
        );
        Ok(())
    }

    /// Returns the bytes that deciding about `n_rows` rows takes at its peak, besides the data of the forest pass and
    /// the pairs of classes.
    pub(crate) fn bytes_of(n_rows: usize) -> usize {
        n_rows * size_of::<RowDecision>() + Clusters::bytes_of(n_rows).max(ClassNeighbours::bytes_of(n_rows, 0))
    }

    /// Returns the id of a dropped document's canonical one. `None` means that the document is not dropped.
    pub(crate) fn canonical_id<'a>(&'a self, batch: &'a QueryBatch, row: u32) -> Result<Option<Cow<'a, str>>> {
        let existing = match self.rows[row as usize].canonical {
            CanonicalOf::Itself => return Ok(None),
            CanonicalOf::Row(other) => return Ok(Some(batch.id(other))),
            CanonicalOf::Existing(_) | CanonicalOf::ExistingShort => self.existing_canonical(batch, row),
        };
        let unknown = || defect(format!("'{}' is dropped for no document", batch.id(row).escape_debug()));
        existing.map(|(id, _)| Some(Cow::Borrowed(id))).ok_or_else(unknown)
    }

    /// Returns a dropped document's canonical one. `None` means that the document is not dropped.
    pub(crate) fn canonical(&self, batch: &QueryBatch, row: u32) -> Result<Option<NewCanonical>> {
        let reference = self.reference(batch, row).map(Arc::from);
        debug_assert_eq!(
            reference.is_none(),
            self.existing_canonical(batch, row).is_none_or(|(_, origin)| origin == Origin::OWN),
            "each reference store has a name, and the night's own store has none"
        );
        let id = self.canonical_id(batch, row)?;
        Ok(id.map(|id| NewCanonical { id: id.as_ref().into(), reference }))
    }

    /// Returns the id of a dropped document's canonical one, if that is a document of the night's own store, or of the batch.
    pub(crate) fn own_canonical_id<'a>(&'a self, batch: &'a QueryBatch, row: u32) -> Result<Option<Cow<'a, str>>> {
        match self.existing_canonical(batch, row) {
            Some((_, origin)) if origin != Origin::OWN => Ok(None),
            _ => self.canonical_id(batch, row),
        }
    }

    /// Returns the row of a dropped document's canonical one, if that is a document of the batch.
    pub(crate) fn canonical_row(&self, row: u32) -> Option<u32> {
        match self.rows[row as usize].canonical {
            CanonicalOf::Row(other) => Some(other),
            CanonicalOf::Itself | CanonicalOf::Existing(_) | CanonicalOf::ExistingShort => None,
        }
    }

    /// Returns the id of a dropped document's canonical one, if that is an existing document of the night's own store.
    pub(crate) fn own_existing_canonical(&self, batch: &QueryBatch, row: u32) -> Option<&str> {
        self.existing_canonical(batch, row).filter(|(_, origin)| *origin == Origin::OWN).map(|(id, _)| id)
    }

    /// Returns the decision about a row.
    pub(super) fn outcome(&self, row: u32) -> Outcome {
        self.rows[row as usize].outcome
    }

    /// Returns the reason of the decision about a row.
    pub(crate) fn reason(&self, row: u32) -> &'static str {
        self.outcome(row).reason()
    }

    /// Returns the reason of the decision about a row of an earlier night that is decided again.
    pub(crate) fn reason_again(&self, row: u32) -> &'static str {
        if self.is_kept(row) { RESTORED } else { self.reason(row) }
    }

    /// Returns the id and the store of a dropped document's canonical one, if that is an existing document.
    fn existing_canonical(&self, batch: &QueryBatch, row: u32) -> Option<(&str, Origin)> {
        match self.rows[row as usize].canonical {
            CanonicalOf::Itself | CanonicalOf::Row(_) => None,
            CanonicalOf::Existing(of) => self.existing.get(&of).map(|kept| (&*kept.id, kept.origin)),
            CanonicalOf::ExistingShort => {
                let hash = batch.text_hashes.get(row)?;
                self.existing_short.get(hash).map(|short| (short.id.as_str(), short.origin))
            }
        }
    }

    /// Returns the reference store of a dropped document's canonical one. `None` means that the document is not dropped,
    /// or that its canonical one is in the night's own store.
    pub(crate) fn reference(&self, batch: &QueryBatch, row: u32) -> Option<&str> {
        self.references.of(self.existing_canonical(batch, row)?.1)
    }

    /// Returns the share of its features that a dropped document loses with its canonical one. `None` means that the
    /// document is not dropped, or that the share is unknown.
    pub fn lost_share(&self, batch: &QueryBatch, row: u32) -> Option<f64> {
        let made = &self.rows[row as usize];
        match made.canonical {
            CanonicalOf::Itself => None,
            _ if made.outcome == Outcome::Exact => Some(0.0),
            CanonicalOf::Row(other) => self.judged_loss.get(&row).copied().or_else(|| lost_share_of(batch, row, other)),
            CanonicalOf::Existing(of) => self.existing.get(&of)?.lost_share,
            CanonicalOf::ExistingShort => None,
        }
    }

    /// Returns the first row and the number of rows of a document's cluster. `None` means that the document is skipped.
    pub fn cluster(&self, row: u32) -> Option<(u32, u32)> {
        let is_skipped = matches!(self.outcome(row), Outcome::Skip(_));
        (!is_skipped).then(|| (self.clusters.first_row(row), self.clusters.n_rows(row)))
    }

    /// Returns whether a document is kept.
    pub fn is_kept(&self, row: u32) -> bool {
        self.outcome(row).decision() == KEEP
    }

    /// Returns whether a document is dropped for another one that has another text.
    pub fn is_near(&self, row: u32) -> bool {
        is_near_duplicate(self.reason(row))
    }

    /// Returns the numbers of decisions, with those about stubs, and of clusters.
    pub fn counts(&self, stubs: &Stubs) -> DecisionCounts {
        let mut counts = DecisionCounts { n_superseded: self.superseded.len() as u64, ..DecisionCounts::default() };
        let mut by_reason: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (row, made) in (0..).zip(&self.rows) {
            *by_reason.entry((made.outcome.decision(), made.outcome.reason())).or_default() += 1;
            if let Some((first, n)) = self.cluster(row)
                && first == row
                && n > 1
            {
                counts.n_clusters += 1;
                counts.largest_cluster = counts.largest_cluster.max(u64::from(n));
            }
        }
        for ((decision, reason), n) in by_reason {
            match decision {
                KEEP => counts.n_keep += n,
                DROP => counts.n_drop += n,
                _ => counts.n_skip += n,
            }
            counts.by_reason.insert(format!("{decision}_{reason}"), n);
        }
        debug_assert_eq!(
            counts.n_keep + counts.n_drop + counts.n_skip,
            self.rows.len() as u64,
            "each document has one decision"
        );
        if stubs.n() > 0 {
            counts.n_drop += stubs.n();
            counts.by_reason.insert(format!("{DROP}_{STUB}"), stubs.n());
        }
        // Every rule keeps the first of equal short texts.
        // A reason without documents is not listed.
        let n_short = counts.by_reason.get("keep_too_short").copied().unwrap_or_default();
        counts.star = self.star.map(|star| StarQuality { n_keep_bound: star.n_keep_bound + n_short, ..star });
        counts
    }

    fn by_star(&mut self, batch: &QueryBatch, neighbours: &ClassNeighbours, gathered: &mut Gathered) {
        self.existing = std::mem::take(&mut gathered.kept);
        let superseding = std::mem::take(&mut gathered.superseding);
        let (made, existing, gathered) = (&mut self.rows, &self.existing, &*gathered);
        // A class has one nearest existing document, so the class alone identifies it.
        let nearest =
            |class| existing.get(&class).map(|kept| ExistingNeighbour { distance: kept.distance, existing: class });
        // At most one row of a class is kept.
        let mut fuller: HashMap<u32, u32> = HashMap::new();
        let decide = |row: u32, decision: Decision| {
            made[row as usize] = match decision {
                Decision::Keep => match gathered.classes.of(row).filter(|&class| gathered.less.contains(class)) {
                    Some(class) => {
                        fuller.insert(class, row);
                        keep_or(Outcome::Fuller)
                    }
                    None => kept(gathered, row),
                },
                Decision::Drop { canonical: Canonical::Row(other), distance } => {
                    dropped(batch, row, batch.text_hashes.get(other), CanonicalOf::Row(other), Some(distance))
                }
                Decision::Drop { canonical: Canonical::Existing(class), distance } => {
                    let hash = existing.get(&class).and_then(|kept| kept.text_hash.as_ref());
                    dropped(batch, row, hash, CanonicalOf::Existing(class), Some(distance))
                }
            };
        };
        star(fingerprinted_rows(batch), |row| gathered.classes.of(row), neighbours, nearest, decide);
        let by_kept = |of: Superseding| fuller.get(&of.class).map(|&row| (of, row));
        self.superseded = superseding.into_iter().filter_map(by_kept).collect();
        self.superseded
            .sort_unstable_by(|(a, row_a), (b, row_b)| (&a.id, row_a, a.origin).cmp(&(&b.id, row_b, b.origin)));
    }

    /// Says of the rows that are dropped for one with which the judge paired them what they lose, and whether that one
    /// contains them.
    fn by_judge(&mut self, rows: &QueryRows, judged: &JudgedPairs, classes: &ClassOfRows) {
        if judged.iter().len() == 0 {
            return;
        }
        for (row, made) in (0..).zip(&mut self.rows) {
            let CanonicalOf::Row(other) = made.canonical else { continue };
            let Some((class, keeper)) = classes.of(row).zip(classes.of(other)) else { continue };
            let Some(pair) = judged.get(class, keeper).filter(|_| made.outcome == Outcome::Near) else { continue };
            if pair.verdict.alike == Alike::Contained && rows.n_features(class) <= rows.n_features(keeper) {
                made.outcome = Outcome::Contained;
            }
            self.judged_loss.extend(judged.lost_share(rows, class, keeper).map(|lost| (row, lost)));
        }
    }

    /// Returns the number of kept documents that may be dropped for another kept one.
    fn n_kept_in_vain(&self, batch: &QueryBatch, neighbours: &ClassNeighbours, gathered: &Gathered) -> u64 {
        let mut kept = RowSet::default();
        for class in
            fingerprinted_rows(batch).filter(|&row| self.is_kept(row)).filter_map(|row| gathered.classes.of(row))
        {
            debug_assert!(!kept.contains(class), "of a class, whose documents are all equal, at most one is kept");
            kept.insert(class);
        }
        n_kept_in_vain(neighbours, |class| kept.contains(class))
    }

    /// Decides by component. The canonical document of a component is its first kept existing document by (id, origin)
    /// or, if it has none, its first row in keep order.
    fn by_component(&mut self, batch: &QueryBatch, gathered: &mut Gathered) -> Result<()> {
        for (_, found) in std::mem::take(&mut gathered.kept) {
            // The share is one class's, and the document may represent others of the component.
            let found = KeptExisting { lost_share: None, ..found };
            match self.existing.entry(gathered.sets.find(found.node)) {
                Entry::Vacant(entry) => {
                    entry.insert(found);
                }
                Entry::Occupied(mut entry) => {
                    if (&found.id, found.origin) < (&entry.get().id, entry.get().origin) {
                        entry.insert(found);
                    }
                }
            }
        }
        let mut made = Vec::with_capacity(batch.len());
        component(
            fingerprinted_rows(batch),
            &mut gathered.sets,
            |root| self.existing.contains_key(&root),
            |row, by| made.push((row, by)),
        );
        for (row, by) in made {
            let distance = |other: Option<&u64>| distance_of(batch, row, other).map(Some);
            self.rows[row as usize] = match by {
                Representative::Itself => kept(gathered, row),
                Representative::Row(other) => {
                    let distance = distance(batch.fingerprints.get(other))?;
                    dropped(batch, row, batch.text_hashes.get(other), CanonicalOf::Row(other), distance)
                }
                Representative::Existing(root) => {
                    let found = self.existing.get(&root);
                    let distance = distance(found.map(|found| &found.fingerprint))?;
                    let hash = found.and_then(|found| found.text_hash.as_ref());
                    dropped(batch, row, hash, CanonicalOf::Existing(root), distance)
                }
            };
        }
        Ok(())
    }

    /// Decides about texts below the feature floor: only those with equal normalised texts are dropped.
    fn short_texts(&mut self, batch: &QueryBatch) {
        let mut first: HashMap<[u8; 16], u32> = HashMap::new();
        for (row, hash) in short_rows(batch) {
            let canonical = if self.existing_short.get(&hash).is_some() {
                CanonicalOf::ExistingShort
            } else {
                match *first.entry(hash).or_insert(row) {
                    other if other == row => CanonicalOf::Itself,
                    other => CanonicalOf::Row(other),
                }
            };
            self.rows[row as usize] = match canonical {
                CanonicalOf::Itself => keep_or(Outcome::TooShort),
                canonical => RowDecision { outcome: Outcome::Exact, distance: Some(0), canonical },
            };
        }
    }
}

/// Returns the distance of a row with a fingerprint from another fingerprint.
fn distance_of(batch: &QueryBatch, row: u32, other: Option<&u64>) -> Result<u8> {
    let both = batch.fingerprints.get(row).zip(other);
    let distance = both.and_then(|(&a, &b)| u8::try_from(hamming_distance(a, b)).ok());
    distance.ok_or_else(|| defect(format!("'{}' has no distance from its cluster", batch.id(row).escape_debug())))
}

pub(super) fn defect(reason: String) -> Fault {
    Fault::internal("decisions", reason)
}

fn keep_or(outcome: Outcome) -> RowDecision {
    RowDecision { outcome, distance: None, canonical: CanonicalOf::Itself }
}

fn kept(gathered: &Gathered, row: u32) -> RowDecision {
    keep_or(if gathered.paired.contains(row) { Outcome::Canonical } else { Outcome::Unique })
}

/// Returns the lost share of a row for another, if both have sketches and their features are counted.
fn lost_share_of(batch: &QueryBatch, row: u32, keeper: u32) -> Option<f64> {
    let (own, keepers) = (batch.n_features.get(row)?, batch.n_features.get(keeper)?);
    let distance = batch.sketches.get(row)?.distance(batch.sketches.get(keeper)?);
    Some(lost_share(*own, *keepers, u16::try_from(distance).ok()?))
}

/// Returns the decision about a dropped row whose canonical document has the normalised text of `hash`.
fn dropped(
    batch: &QueryBatch,
    row: u32,
    hash: Option<&[u8; 16]>,
    canonical: CanonicalOf,
    distance: Option<u8>,
) -> RowDecision {
    let own = batch.text_hashes.get(row);
    let outcome = if own.is_some() && own == hash { Outcome::Exact } else { Outcome::Near };
    RowDecision { outcome, distance, canonical }
}

fn fingerprinted_rows(batch: &QueryBatch) -> impl Iterator<Item = u32> {
    batch.keep_order().filter(|&row| batch.fingerprints.get(row).is_some())
}

fn short_rows(batch: &QueryBatch) -> impl Iterator<Item = (u32, [u8; 16])> {
    let short = |row: &u32| batch.skipped.get(*row) == Some(&SkipReason::TooShort);
    batch.keep_order().filter(short).filter_map(|row| batch.text_hashes.get(row).map(|&hash| (row, hash)))
}

/// Returns how many documents with a fingerprint the component rule would keep: one of each component without a kept
/// existing document.
fn n_kept_by_component(batch: &QueryBatch, gathered: &mut Gathered) -> u64 {
    let Gathered { sets, classes, less, kept, .. } = gathered;
    let mut decided = RowSet::default();
    let is_near_existing = |class| kept.contains_key(&class) || less.contains(class);
    for row in fingerprinted_rows(batch).filter(|&row| classes.of(row).is_some_and(is_near_existing)) {
        decided.insert(sets.find(row));
    }
    let mut n_kept = 0;
    for row in fingerprinted_rows(batch) {
        let root = sets.find(row);
        if !decided.contains(root) {
            decided.insert(root);
            n_kept += 1;
        }
    }
    n_kept
}

/// Joins equal short texts to clusters.
fn join_short_texts(batch: &QueryBatch, sets: &mut UnionFind) {
    let mut first: HashMap<[u8; 16], u32> = HashMap::new();
    for (row, hash) in short_rows(batch) {
        let other = *first.entry(hash).or_insert(row);
        sets.union(row, other);
    }
}
