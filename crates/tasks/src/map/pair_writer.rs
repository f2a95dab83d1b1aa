//! The rows behind pairs of fingerprints, in batches for the reduce.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanBuilder, RecordBatch, StringBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use nearprint_fault::{Fault, Result};
use nearprint_join::{JudgedPairs, Key, Origin, RowPair, UndecidedPair, lost_share, spanning_forest};
use nearprint_parquet::BATCH_ROWS;
use nearprint_storage::blocking;

use super::class_pairs::OwnClassPairs;
use super::context::{MapContext, Want};
use super::existing_documents::ExistingDocument;
use super::undecided::OwnUndecided;
use crate::stream::{Sender, TaskBatch, TaskBatches, produce};

/// The columns of pairs for the reduce, which sorts by all of them in this order. `a` is a row of the batch, and so is
/// `b` if the other document is `new`. The `id_b` of an existing document stands between the ids of the rows `b` − 1
/// and `b`. So `b`, `new`, `id_b` sort as ids do, and new documents need not carry their ids. `store_b` is the number of
/// the [`Origin`] of an existing document.
const ALL_PAIRS: [&str; 7] = ["a", "b", "new", "id_b", "store_b", "distance", "sketch_distance"];

/// The columns of forest candidates, nearest first: the columns of pairs, and the `fingerprint_b`, `text_hash_b` and
/// `n_features_b` of an existing document. An `edge` may join two components. A `kept` document may become canonical.
const FOREST: [&str; 12] = [
    "distance",
    "a",
    "b",
    "new",
    "id_b",
    "store_b",
    "sketch_distance",
    "fingerprint_b",
    "edge",
    "kept",
    "text_hash_b",
    "n_features_b",
];

/// Returns the schema of the pairs that map tasks return.
#[must_use]
pub fn pair_schema(want: Want) -> SchemaRef {
    let field = |name: &&str| {
        let (data_type, nullable) = match *name {
            "a" | "b" => (DataType::UInt32, false),
            "id_b" => (DataType::Utf8, false),
            "distance" | "store_b" => (DataType::UInt8, false),
            "sketch_distance" => (DataType::UInt16, true),
            "fingerprint_b" => (DataType::UInt64, true),
            "text_hash_b" => (DataType::Binary, true),
            "n_features_b" => (DataType::UInt32, true),
            _ => (DataType::Boolean, false),
        };
        Field::new(*name, data_type, nullable)
    };
    let fields: Vec<Field> = match want {
        Want::AllPairs => ALL_PAIRS.iter().map(field).collect(),
        Want::Forest => FOREST.iter().map(field).collect(),
    };
    Arc::new(Schema::new(fields))
}

/// Builds batches of pairs and sends them.
pub(super) struct PairWriter<'a> {
    context: &'a MapContext,
    sender: Sender,
    rows: PairRows,
    /// Pairs of new documents. Only the pairs of a forest of them are sent.
    forest: Vec<RowPair>,
    class_pairs: OwnClassPairs,
    undecided: OwnUndecided,
}

/// The number of pairs of new documents that are held before those that no forest needs are dropped.
const FOREST_PAIRS_HELD: usize = 1 << 18;

#[derive(Default)]
struct PairRows {
    n: usize,
    a: UInt32Builder,
    id_b: StringBuilder,
    store_b: UInt8Builder,
    distance: UInt8Builder,
    sketch_distance: UInt16Builder,
    new: BooleanBuilder,
    b: UInt32Builder,
    fingerprint_b: UInt64Builder,
    edge: BooleanBuilder,
    kept: BooleanBuilder,
    text_hash_b: BinaryBuilder,
    n_features_b: UInt32Builder,
}

/// The other side of a pair.
enum Far<'a> {
    /// A row of this part of the batch.
    New(u32),
    Existing {
        document: &'a ExistingDocument,
        fingerprint: u64,
        edge: bool,
    },
}

impl<'a> PairWriter<'a> {
    pub(super) fn new(context: &'a MapContext, sender: Sender) -> Self {
        let (rows, class_pairs, undecided) = (PairRows::default(), OwnClassPairs::default(), OwnUndecided::default());
        Self { context, sender, rows, forest: Vec::new(), class_pairs, undecided }
    }

    pub(super) fn new_new(&mut self, value_a: u32, value_b: u32, distance: u8) -> Result<()> {
        let (context, rows) = (self.context, &self.context.rows);
        let (mut outcome, mut judging) = (Ok(()), Ok(()));
        let (mut left, to) = (std::mem::take(&mut self.undecided), self.sender.clone());
        let places = &*context.places;
        let undecided = |pair: UndecidedPair| {
            if judging.is_ok() {
                let pair = UndecidedPair { a: places.class(pair.a), b: places.class(pair.b), ..pair };
                judging = left.add(pair, context.max_looks).and_then(|full| send_notes(&to, full));
            }
        };
        match context.want {
            Want::AllPairs => {
                let found = |pair| {
                    if outcome.is_ok() {
                        outcome = self.push_new(&pair);
                    }
                };
                rows.all_pairs(value_a, value_b, distance, &context.own_verifier, found, undecided);
            }
            Want::Forest => {
                let (forest, own, sender) = (&mut self.forest, &mut self.class_pairs, &self.sender);
                let found_classes = |a, b| {
                    if outcome.is_ok() && context.notes_classes {
                        let (a, b) = (places.class(a), places.class(b));
                        outcome = own.add(a, b, distance).and_then(|full| send_notes(sender, full));
                    }
                };
                let found = |pair| forest.push(pair);
                rows.forest_pairs((value_a, value_b), distance, &context.own_verifier, found, found_classes, undecided);
                if self.forest.len() >= FOREST_PAIRS_HELD {
                    spanning_forest(&mut self.forest);
                    if self.forest.len() >= FOREST_PAIRS_HELD / 2 {
                        self.send_forest()?;
                    }
                }
            }
        }
        self.undecided = left;
        outcome.and(judging)
    }

    fn push_new(&mut self, pair: &RowPair) -> Result<()> {
        self.push(pair.a, &Far::New(pair.b), pair.distance, pair.sketch_distance)
    }

    fn send_forest(&mut self) -> Result<()> {
        let mut forest = std::mem::take(&mut self.forest);
        let sent = forest.iter().try_for_each(|pair| self.push_new(pair));
        forest.clear();
        self.forest = forest;
        sent
    }

    /// Writes the pairs of the documents of a class and of existing documents with one fingerprint, at a distance from that of
    /// the class, that `key` finds.
    pub(super) fn new_existing(
        &mut self,
        key: Key,
        (class, distance): (u32, u8),
        fingerprint: u64,
        members: &[&ExistingDocument],
    ) -> Result<()> {
        let context = self.context;
        let sketch = context.rows.sketch(class);
        let verified = members.iter().filter_map(|document| {
            let found = context.verifier.verify_by(key, distance, sketch, document.sketch.as_ref())?;
            Some((*document, found.bits()))
        });
        match context.want {
            Want::AllPairs => {
                for (document, sketch_distance) in verified {
                    self.all_of_class(class, document, distance, sketch_distance, fingerprint)?;
                }
                Ok(())
            }
            Want::Forest => self.few_of_class(class, verified, distance, fingerprint),
        }
    }

    fn all_of_class(
        &mut self,
        class: u32,
        document: &ExistingDocument,
        distance: u8,
        sketch_distance: Option<u16>,
        fingerprint: u64,
    ) -> Result<()> {
        for &row in self.context.rows.members(class) {
            if document.same_id_row != Some(self.context.places.row(row)) {
                self.push(row, &Far::Existing { document, fingerprint, edge: true }, distance, sketch_distance)?;
            }
        }
        Ok(())
    }

    /// Writes the few pairs of a class and an existing fingerprint that are needed. The forest needs the first pair by
    /// (id_a, id_b). Of the kept existing documents, decisions need the first by (id, origin) among those for which the
    /// class may be dropped. If there is none, they need those that may be dropped for the class, or any if there is
    /// none of these either.
    fn few_of_class<'d>(
        &mut self,
        class: u32,
        verified: impl Iterator<Item = (&'d ExistingDocument, Option<u16>)>,
        distance: u8,
        fingerprint: u64,
    ) -> Result<()> {
        let (mut any, mut keepers, mut less) = (Smallest::default(), Smallest::default(), Smallest::default());
        let mut superseded = Vec::new();
        for found in verified {
            any.offer(found);
            if !found.0.kept {
                continue;
            }
            let (lost, lost_by_it) = self.lost_shares(class, found);
            if self.context.loss.allows(lost) {
                keepers.offer(found);
            } else {
                less.offer(found);
                superseded.extend(self.context.loss.allows(lost_by_it).then_some(found));
            }
        }
        let members = self.context.rows.members(class);
        if !self.context.itself {
            // Nothing else joins the members, so each needs a pair of its own.
            for row in members {
                if let Some((document, sketch_distance)) = any.other_than(self.context.places.row(*row)) {
                    self.push(*row, &Far::Existing { document, fingerprint, edge: true }, distance, sketch_distance)?;
                }
            }
            return Ok(());
        }
        // The batch joined with itself replaces existing documents of its ids, so any pair is allowed.
        let edge = any.two[0];
        if let Some((document, sketch_distance)) = edge {
            self.push(members[0], &Far::Existing { document, fingerprint, edge: true }, distance, sketch_distance)?;
        }
        if let Some(found) = keepers.two[0].or(less.two[0].filter(|_| superseded.is_empty())) {
            superseded = vec![found];
        }
        for (document, sketch_distance) in superseded {
            if !edge.is_some_and(|(other, _)| std::ptr::eq(other, document)) {
                let far = Far::Existing { document, fingerprint, edge: false };
                self.push(members[0], &far, distance, sketch_distance)?;
            }
        }
        Ok(())
    }

    /// Returns the lost share of a class for an existing document, and that of the document for the class.
    fn lost_shares(&self, class: u32, (document, sketch_distance): VerifiedDocument<'_>) -> (Option<f64>, Option<f64>) {
        let counted = self.context.rows.n_features(class).zip(document.n_features).zip(sketch_distance);
        let shares = counted.map(|((own, existing), distance)| {
            (lost_share(own, existing, distance), lost_share(existing, own, distance))
        });
        shares.unzip()
    }

    /// Adds a pair of rows of this part of the batch, or of one and an existing document.
    fn push(&mut self, a: u32, far: &Far<'_>, distance: u8, sketch_distance: Option<u16>) -> Result<()> {
        debug_assert!(!matches!(far, Far::New(b) if *b <= a), "of two new rows, the lesser comes first");
        let (rows, places) = (&mut self.rows, &self.context.places);
        rows.n += 1;
        rows.a.append_value(places.row(a));
        rows.distance.append_value(distance);
        rows.sketch_distance.append_option(sketch_distance);
        match far {
            Far::New(row) => rows.far(places.row(*row), true, "", Origin::OWN),
            Far::Existing { document, .. } => rows.far(document.before_row, false, &document.id, document.origin),
        }
        if self.context.want == Want::Forest {
            rows.candidate(far);
        }
        if self.rows.n >= BATCH_ROWS { self.send() } else { Ok(()) }
    }

    /// Writes the pairs of documents behind a judged pair of classes.
    fn judged(&mut self, pair: &UndecidedPair) -> Result<()> {
        let (a, b) = (self.context.rows.members(pair.a), self.context.rows.members(pair.b));
        let (distance, sketch_distance) = (pair.distance, Some(pair.sketch_distance));
        let row_pair = |a: u32, b: u32| RowPair { a: a.min(b), b: a.max(b), distance, sketch_distance };
        match self.context.want {
            Want::AllPairs => a.iter().try_for_each(|&a| b.iter().try_for_each(|&b| self.push_new(&row_pair(a, b)))),
            Want::Forest => {
                // Behind one value, the first row of both classes may become the centre of each row of the other.
                let (centre, others) = if a[0] < b[0] { (a[0], b) } else { (b[0], a) };
                let others = if distance == 0 { others } else { &others[..1] };
                others.iter().try_for_each(|&row| self.push_new(&row_pair(centre, row)))?;
                if self.context.notes_classes {
                    let full = self.class_pairs.add(pair.a, pair.b, distance)?;
                    send_notes(&self.sender, full)?;
                }
                Ok(())
            }
        }
    }

    fn send(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let batch = rows.into_batch(self.context.want)?;
        self.sender.send_blocking(TaskBatch::Rows(batch))
    }

    /// Sends what is held. Returns the number of pairs that were left to the judge.
    pub(super) fn finish(mut self) -> Result<u64> {
        spanning_forest(&mut self.forest);
        self.send_forest()?;
        send_notes(&self.sender, self.class_pairs.take()?)?;
        send_notes(&self.sender, self.undecided.take(self.context.max_looks)?)?;
        if self.rows.n > 0 {
            self.send()?;
        }
        Ok(self.undecided.n_found)
    }
}

/// Returns the rows and notes of the pairs that a judge took for near-duplicates, as a map task would have returned them.
pub fn judged_pairs(context: &Arc<MapContext>, judged: &Arc<JudgedPairs>) -> TaskBatches {
    let (context, judged) = (Arc::clone(context), Arc::clone(judged));
    produce("judge", move |sender| async move {
        blocking("judge", move || {
            let mut out = PairWriter::new(&context, sender);
            judged.iter().try_for_each(|judged| out.judged(&judged.pair))?;
            out.finish().map(drop)
        })
        .await
    })
}

fn send_notes(sender: &Sender, notes: Option<RecordBatch>) -> Result<()> {
    notes.map_or(Ok(()), |notes| sender.send_blocking(TaskBatch::Notes(notes)))
}

impl PairRows {
    fn far(&mut self, b: u32, new: bool, id: &str, origin: Origin) {
        self.b.append_value(b);
        self.new.append_value(new);
        self.id_b.append_value(id);
        self.store_b.append_value(origin.into());
    }

    fn candidate(&mut self, far: &Far<'_>) {
        let (fingerprint, edge, kept, text_hash, n_features) = match far {
            Far::New(_) => (None, true, false, None, None),
            Far::Existing { document, fingerprint, edge } => {
                (Some(*fingerprint), *edge, document.kept, document.text_hash.as_ref(), document.n_features)
            }
        };
        self.fingerprint_b.append_option(fingerprint);
        self.edge.append_value(edge);
        self.kept.append_value(kept);
        self.text_hash_b.append_option(text_hash);
        self.n_features_b.append_option(n_features);
    }

    fn into_batch(mut self, want: Want) -> Result<RecordBatch> {
        let mut column = |name: &str| -> ArrayRef {
            match name {
                "a" => Arc::new(self.a.finish()),
                "id_b" => Arc::new(self.id_b.finish()),
                "store_b" => Arc::new(self.store_b.finish()),
                "distance" => Arc::new(self.distance.finish()),
                "sketch_distance" => Arc::new(self.sketch_distance.finish()),
                "new" => Arc::new(self.new.finish()),
                "b" => Arc::new(self.b.finish()),
                "fingerprint_b" => Arc::new(self.fingerprint_b.finish()),
                "edge" => Arc::new(self.edge.finish()),
                "kept" => Arc::new(self.kept.finish()),
                "text_hash_b" => Arc::new(self.text_hash_b.finish()),
                _ => Arc::new(self.n_features_b.finish()),
            }
        };
        let schema = pair_schema(want);
        let mut columns: Vec<ArrayRef> = schema.fields().iter().map(|f| column(f.name())).collect();
        // Sorts count the capacity of a batch, not its rows, and many tasks have few pairs.
        columns.iter_mut().for_each(Array::shrink_to_fit);
        RecordBatch::try_new(schema, columns).map_err(|e| Fault::internal("map", e))
    }
}

type VerifiedDocument<'d> = (&'d ExistingDocument, Option<u16>);

/// The first two documents by (id, origin). Two are held, because a row never pairs with the document of its own id.
#[derive(Default)]
struct Smallest<'d> {
    two: [Option<VerifiedDocument<'d>>; 2],
}

impl<'d> Smallest<'d> {
    fn offer(&mut self, found: VerifiedDocument<'d>) {
        let key = |(document, _): VerifiedDocument<'d>| (&document.id, document.origin);
        let before = |other: &Option<VerifiedDocument<'d>>| other.is_none_or(|other| key(found) < key(other));
        let known = self.two.iter().flatten().any(|&other| key(other) == key(found));
        if known {
            return;
        }
        if before(&self.two[0]) {
            self.two[1] = self.two[0].replace(found);
        } else if before(&self.two[1]) {
            self.two[1] = Some(found);
        }
    }

    /// Returns the first document that is not that of a row of the batch.
    fn other_than(&self, row: u32) -> Option<VerifiedDocument<'d>> {
        self.two.into_iter().flatten().find(|(document, _)| document.same_id_row != Some(row))
    }
}
