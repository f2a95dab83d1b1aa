//! The differences between two generations of a night, in one output or in two.

mod rows;
mod sorted;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use nearprint_fault::Result;
use nearprint_night::{Generation, Generations};
use nearprint_storage::{InputFile, Progress, Storage};
use schemars::JsonSchema;
use serde::Serialize;

use self::rows::{Decisions, Pairs};
use self::sorted::{Cursor, SortedRows, order};

/// The generations to compare.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// The night.
    pub dt: String,
    /// The first generation. Without a second one, and without digits, it is the one before the newest.
    pub a: DiffPlace,
    /// The second generation. `None` stands for the newest of the first one's output.
    pub b: Option<DiffPlace>,
    /// The most examples of each kind of change.
    pub n_examples: usize,
}

/// A generation of a night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPlace {
    /// The root of the results.
    pub output: String,
    /// The first digits of the generation. `None` stands for the newest.
    pub generation: Option<String>,
}

/// The changes from generation A of a night to generation B. All counts are complete; only examples are limited.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// The night.
    pub dt: String,
    /// Generation A.
    pub a: DiffSide,
    /// Generation B.
    pub b: DiffSide,
    /// The things from which the two were not made alike, as far as their manifests say it: `release`, `algorithm`,
    /// `configuration` (of the fingerprints), `inputs`, `earlier_nights`.
    pub made_from_other: Vec<&'static str>,
    /// The documents.
    pub documents: DocumentsDiff,
    /// The pairs.
    pub pairs: PairsDiff,
}

impl Diff {
    /// Returns whether the two have the same decisions and the same pairs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.documents.changes.is_empty() && self.pairs.n_only_a + self.pairs.n_only_b + self.pairs.n_details == 0
    }
}

/// One of the two generations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffSide {
    /// The root of the results.
    pub output: String,
    /// The generation.
    pub generation: String,
    /// The release that made it.
    pub release: String,
    /// The number of documents that are kept.
    pub n_keep: u64,
    /// The number of documents that are dropped.
    pub n_drop: u64,
    /// The number of documents that are skipped.
    pub n_skip: u64,
    /// The number of pairs.
    pub n_pairs: u64,
}

/// The documents whose decisions changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DocumentsDiff {
    /// The documents that are the same in each column that both generations have.
    pub n_same: u64,
    /// The documents with another decision.
    pub n_decision: u64,
    /// The documents with the same decision for another reason.
    pub n_reason: u64,
    /// The documents with the same decision and reason that another document represents.
    pub n_canonical: u64,
    /// The documents of which only the distance, the cluster, the lost share, the family or the history changed.
    pub n_details: u64,
    /// The documents that only A has.
    pub n_only_a: u64,
    /// The documents that only B has.
    pub n_only_b: u64,
    /// The changes: those of one kind together, the most frequent first.
    pub changes: Vec<Change>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Another decision.
    Decision,
    /// The same decision for another reason.
    Reason,
    /// The same decision and reason, and another canonical document.
    Canonical,
    /// Another distance, cluster, lost share, family or history, and nothing else.
    Details,
    /// The document is in A only.
    OnlyA,
    /// The document is in B only.
    OnlyB,
}

/// Documents that changed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// Decision and reason in A, such as `drop near`. `None` means that A has not the documents.
    pub from: Option<String>,
    /// Decision and reason in B. `None` means that B has not the documents.
    pub to: Option<String>,
    /// The number of documents.
    pub n: u64,
    /// The first of these documents by id. There are more if `n` is larger.
    pub examples: Vec<ChangedDocument>,
}

/// A document that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedDocument {
    /// The document.
    pub doc_id: String,
    /// The document that represents it in A. `None` means that it is not dropped there, or that it is a stub.
    pub canonical_a: Option<String>,
    /// The document that represents it in B.
    pub canonical_b: Option<String>,
}

/// The pairs that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PairsDiff {
    /// The pairs that are the same.
    pub n_same: u64,
    /// The pairs whose distances, scope or reason changed.
    pub n_details: u64,
    /// The pairs that only A has.
    pub n_only_a: u64,
    /// The pairs that only B has.
    pub n_only_b: u64,
    /// The first pairs that only A has.
    pub examples_a: Vec<(String, String)>,
    /// The first pairs that only B has.
    pub examples_b: Vec<(String, String)>,
}

/// Compares two generations of a night. Decisions and pairs are sorted, so both are read once, side by side, and the
/// memory holds a batch of each and the examples.
///
/// # Errors
/// A generation is not there, or a file of it is damaged.
pub async fn diff(storage: &Storage, request: &DiffRequest, progress: &Progress) -> Result<Diff> {
    let (a, b) = generations(storage, request).await?;
    progress.start("compare", "documents", a.counts().documents.n_documents);
    let mut documents = Changes { n_examples: request.n_examples, ..Changes::default() };
    merge::<Decisions>(a.files("decisions").await?, b.files("decisions").await?, |met| {
        documents.meet(met);
        progress.advance(u64::from(!matches!(met, Met::OnlyB(..))));
    })
    .await?;
    progress.start("compare", "pairs", a.counts().pairs.n_pairs);
    let mut pairs = PairsDiff::default();
    merge::<Pairs>(a.files("pairs").await?, b.files("pairs").await?, |met| {
        pairs.meet(met, request.n_examples);
        progress.advance(u64::from(!matches!(met, Met::OnlyB(..))));
    })
    .await?;
    Ok(Diff {
        dt: request.dt.clone(),
        a: DiffSide::of(&a),
        b: DiffSide::of(&b),
        made_from_other: a.made_from_other(&b),
        documents: documents.finish(),
        pairs,
    })
}

async fn generations(storage: &Storage, request: &DiffRequest) -> Result<(Generation, Generation)> {
    let of_a = Generations::open(storage, &request.a.output, &request.dt).await?;
    let b = match &request.b {
        None => of_a.newest().await?,
        Some(place) => {
            let of_b = Generations::open(storage, &place.output, &request.dt).await?;
            match &place.generation {
                Some(digits) => of_b.named(digits).await?,
                None => of_b.newest().await?,
            }
        }
    };
    let a = match (&request.a.generation, &request.b) {
        (Some(digits), _) => of_a.named(digits).await?,
        (None, Some(_)) => of_a.newest().await?,
        (None, None) => of_a.before_newest().await?,
    };
    Ok((a, b))
}

impl DiffSide {
    fn of(generation: &Generation) -> Self {
        let counts = generation.counts();
        Self {
            output: generation.output().to_owned(),
            generation: generation.digest.clone(),
            release: generation.release().to_owned(),
            n_keep: counts.decisions.n_keep,
            n_drop: counts.decisions.n_drop,
            n_skip: counts.decisions.n_skip,
            n_pairs: counts.pairs.n_pairs,
        }
    }
}

/// A key of two sorted datasets, with the rows that have it.
enum Met<'a, R> {
    OnlyA(&'a R, usize),
    OnlyB(&'a R, usize),
    Both((&'a R, usize), (&'a R, usize)),
}

impl<R> Clone for Met<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Met<'_, R> {}

/// Meets each key of two sorted datasets once, in order.
async fn merge<R: SortedRows>(a: Vec<InputFile>, b: Vec<InputFile>, mut meet: impl FnMut(Met<'_, R>)) -> Result<()> {
    let (mut a, mut b) = (Cursor::<R>::open(a).await?, Cursor::<R>::open(b).await?);
    while let Some(order) = order(&a, &b) {
        match (order, a.get(), b.get()) {
            (Ordering::Less, Some((rows, row)), _) => meet(Met::OnlyA(rows, row)),
            (Ordering::Greater, _, Some((rows, row))) => meet(Met::OnlyB(rows, row)),
            (_, Some(a), Some(b)) => meet(Met::Both(a, b)),
            _ => {}
        }
        if order != Ordering::Greater {
            a.advance().await?;
        }
        if order != Ordering::Less {
            b.advance().await?;
        }
    }
    Ok(())
}

/// The kind of a change, and what it leads from and to.
type ChangeOf = (ChangeKind, Option<String>, Option<String>);

/// The changes of documents so far.
#[derive(Debug, Default)]
struct Changes {
    n_examples: usize,
    n_same: u64,
    changes: BTreeMap<ChangeOf, (u64, Vec<ChangedDocument>)>,
}

impl Changes {
    fn meet(&mut self, met: Met<'_, Decisions>) {
        match met {
            Met::OnlyA(rows, row) => self.note(ChangeKind::OnlyA, Some((rows, row)), None),
            Met::OnlyB(rows, row) => self.note(ChangeKind::OnlyB, None, Some((rows, row))),
            Met::Both((a, i), (b, j)) => {
                let ((decision, reason), (other, other_reason)) = (a.decided(i), b.decided(j));
                let kind = match () {
                    () if decision != other => ChangeKind::Decision,
                    () if reason != other_reason => ChangeKind::Reason,
                    () if !a.has_same_canonical(i, b, j) => ChangeKind::Canonical,
                    () if !a.has_same_details(i, b, j) => ChangeKind::Details,
                    () => {
                        self.n_same += 1;
                        return;
                    }
                };
                self.note(kind, Some((a, i)), Some((b, j)));
            }
        }
    }

    fn note(&mut self, kind: ChangeKind, a: Option<(&Decisions, usize)>, b: Option<(&Decisions, usize)>) {
        let decided = |side: Option<(&Decisions, usize)>| {
            side.map(|(rows, row)| rows.decided(row)).map(|(decision, reason)| format!("{decision} {reason}"))
        };
        let (n, examples) = self.changes.entry((kind, decided(a), decided(b))).or_default();
        *n += 1;
        // A change is of a document that one of the two has.
        if examples.len() < self.n_examples
            && let Some((rows, row)) = a.or(b)
        {
            let canonical =
                |side: Option<(&Decisions, usize)>| side.and_then(|(rows, row)| rows.canonical(row)).map(str::to_owned);
            let doc_id = rows.key(row).0.to_owned();
            examples.push(ChangedDocument { doc_id, canonical_a: canonical(a), canonical_b: canonical(b) });
        }
    }

    fn finish(self) -> DocumentsDiff {
        let change = |((kind, from, to), (n, examples))| Change { kind, from, to, n, examples };
        let mut changes: Vec<Change> = self.changes.into_iter().map(change).collect();
        changes.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.n.cmp(&a.n)));
        let n_of = |kind| changes.iter().filter(|change| change.kind == kind).map(|change| change.n).sum();
        DocumentsDiff {
            n_same: self.n_same,
            n_decision: n_of(ChangeKind::Decision),
            n_reason: n_of(ChangeKind::Reason),
            n_canonical: n_of(ChangeKind::Canonical),
            n_details: n_of(ChangeKind::Details),
            n_only_a: n_of(ChangeKind::OnlyA),
            n_only_b: n_of(ChangeKind::OnlyB),
            changes,
        }
    }
}

impl PairsDiff {
    fn meet(&mut self, met: Met<'_, Pairs>, n_examples: usize) {
        let (n, examples, (rows, row)) = match met {
            Met::OnlyA(rows, row) => (&mut self.n_only_a, &mut self.examples_a, (rows, row)),
            Met::OnlyB(rows, row) => (&mut self.n_only_b, &mut self.examples_b, (rows, row)),
            Met::Both((a, i), (b, j)) => {
                let same = a.has_same_details(i, b, j);
                *(if same { &mut self.n_same } else { &mut self.n_details }) += 1;
                return;
            }
        };
        *n += 1;
        if examples.len() < n_examples {
            let (a, b) = rows.key(row);
            examples.push((a.to_owned(), b.to_owned()));
        }
    }
}
