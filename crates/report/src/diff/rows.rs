//! The rows of decisions and pairs, as they are compared.

use arrow::array::{Array, Float64Array, Int32Array, Int64Array, PrimitiveArray, StringArray};
use arrow::datatypes::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type};
use nearprint_fault::Result;
use nearprint_parquet::Columns;
use nearprint_parquet::schema::{LOST_SHARE, REFERENCE};

use super::sorted::SortedRows;

/// Decisions.
pub struct Decisions {
    ids: StringArray,
    decisions: StringArray,
    reasons: StringArray,
    canonical: StringArray,
    references: StringArray,
    distances: Int32Array,
    clusters: StringArray,
    cluster_sizes: Int64Array,
    lost_shares: Float64Array,
}

impl SortedRows for Decisions {
    const COLUMNS: &'static [&'static str] = &[
        "doc_id",
        "decision",
        "canonical_id",
        "distance",
        "reason",
        "cluster_id",
        "cluster_size",
        LOST_SHARE,
        REFERENCE,
    ];

    fn of(columns: Columns<'_>) -> Result<Self> {
        Ok(Self {
            ids: columns.strings("doc_id")?.clone(),
            decisions: columns.strings("decision")?.clone(),
            reasons: columns.strings("reason")?.clone(),
            canonical: columns.strings("canonical_id")?.clone(),
            references: columns.strings(REFERENCE)?.clone(),
            distances: columns.primitive::<Int32Type>("distance")?.clone(),
            clusters: columns.strings("cluster_id")?.clone(),
            cluster_sizes: columns.primitive::<Int64Type>("cluster_size")?.clone(),
            lost_shares: columns.primitive::<Float64Type>(LOST_SHARE)?.clone(),
        })
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn key(&self, row: usize) -> (&str, &str) {
        (self.ids.value(row), "")
    }
}

impl Decisions {
    /// Returns a row's decision and reason.
    pub fn decided(&self, row: usize) -> (&str, &str) {
        (self.decisions.value(row), self.reasons.value(row))
    }

    /// Returns the canonical document of a row.
    pub fn canonical(&self, row: usize) -> Option<&str> {
        text(&self.canonical, row)
    }

    /// Returns whether two rows have the same canonical document, of the same store.
    pub fn has_same_canonical(&self, row: usize, other: &Self, at: usize) -> bool {
        self.canonical(row) == other.canonical(at) && text(&self.references, row) == text(&other.references, at)
    }

    /// Returns whether two rows have the same distance, cluster and lost share.
    pub fn has_same_details(&self, row: usize, other: &Self, at: usize) -> bool {
        let lost = |rows: &Self, row| value(&rows.lost_shares, row).map(f64::to_bits);
        let cluster = (text(&self.clusters, row), text(&other.clusters, at));
        value(&self.distances, row) == value(&other.distances, at)
            && value(&self.cluster_sizes, row) == value(&other.cluster_sizes, at)
            && lost(self, row) == lost(other, at)
            && cluster.0 == cluster.1
    }
}

fn text(values: &StringArray, row: usize) -> Option<&str> {
    values.is_valid(row).then(|| values.value(row))
}

fn value<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    values.is_valid(row).then(|| values.value(row))
}

/// Pairs.
pub struct Pairs {
    a: StringArray,
    b: StringArray,
    distances: Int32Array,
    sketch_distances: Int32Array,
    scopes: StringArray,
    references: StringArray,
}

impl SortedRows for Pairs {
    const COLUMNS: &'static [&'static str] = &["id_a", "id_b", "distance", "sketch_distance", "scope", REFERENCE];

    fn of(columns: Columns<'_>) -> Result<Self> {
        Ok(Self {
            a: columns.strings("id_a")?.clone(),
            b: columns.strings("id_b")?.clone(),
            distances: columns.primitive::<Int32Type>("distance")?.clone(),
            sketch_distances: columns.primitive::<Int32Type>("sketch_distance")?.clone(),
            scopes: columns.strings("scope")?.clone(),
            references: columns.strings(REFERENCE)?.clone(),
        })
    }

    fn len(&self) -> usize {
        self.a.len()
    }

    fn key(&self, row: usize) -> (&str, &str) {
        (self.a.value(row), self.b.value(row))
    }
}

impl Pairs {
    /// Returns whether two rows have the same distances, scope and store of the existing document.
    pub fn has_same_details(&self, row: usize, other: &Self, at: usize) -> bool {
        value(&self.distances, row) == value(&other.distances, at)
            && value(&self.sketch_distances, row) == value(&other.sketch_distances, at)
            && self.scopes.value(row) == other.scopes.value(at)
            && text(&self.references, row) == text(&other.references, at)
    }
}
